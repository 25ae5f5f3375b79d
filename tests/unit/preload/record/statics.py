#!/usr/bin/env python3
"""
What a forked child finds in the library's own variables: statics.py LIBRARY PRELOAD LIST.

Every variable of the library that can change is either mentioned by a function that the table `reset_after_fork` of
process.c leads to (in the file that has the variable), or named in LIST with the reason why it may stay as it is. A
line of LIST is "FILE NAME reason"; lines for variables that are reset, or do not exist, are wrong too. "?FILE" is a
file of a library that is linked in: not every version of it has the variable.
"""
import os
import re
import subprocess
import sys

FUNCTION = re.compile(r"^(?:[a-z_][^\n]*[ *])?(\w+)\([^;{}]*\)\n\{\n(.*?)^\}", re.M | re.S)


def sources(folder):
    for root, _, names in os.walk(folder):
        for name in sorted(names):
            if name.endswith(".c"):
                with open(os.path.join(root, name), encoding="utf-8") as file:
                    yield name, re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)


def reset_bodies(folder):
    """By file, the text of all functions that a child runs to reset what it has of its parent."""
    bodies, table = {}, None
    for name, text in sources(folder):
        for function, body in FUNCTION.findall(text):
            bodies.setdefault(function, []).append((name, body))
        found = re.search(r"reset_after_fork\[\]\)\(void\) = \{(.*?)\};", text, re.S)
        table = found.group(1) if found else table
    if not table:
        sys.exit("FAIL: no table reset_after_fork")
    waiting, done, texts = re.findall(r"\w+", table), set(), {}
    while waiting:
        function = waiting.pop()
        if function in done:
            continue
        done.add(function)
        for name, body in bodies.get(function, []):
            texts[name] = texts.get(name, "") + body
            waiting += re.findall(r"\b(\w+)\(", body)
    return texts


def variables(library):
    """(file, name) of all that is in a writable section; file "-" for what other files can name."""
    listing = subprocess.run(["readelf", "-SW", library], capture_output=True, text=True, check=True).stdout
    writable = {number for number, name in re.findall(r"\[ *(\d+)\] (\S+)", listing)
                if name in (".data", ".bss", ".tdata", ".tbss")}
    symbols = subprocess.run(["readelf", "-sW", library], capture_output=True, text=True, check=True).stdout
    symbols = symbols[symbols.index("'.symtab'"):]
    file, found = "-", set()
    of_compiler = ("__TMC_END__", "__dso_handle")
    for line in symbols.splitlines():
        fields = line.split()
        if len(fields) < 7 or not fields[0].endswith(":"):
            continue
        if fields[3] == "FILE":
            file = fields[7] if len(fields) > 7 else "-"
        elif fields[3] in ("OBJECT", "TLS") and fields[6] in writable and file != "crtstuff.c" and \
                fields[7] not in of_compiler:
            found.add((file, re.sub(r"\.\d+$", "", fields[7])))
    return found


def main():
    library, folder, reasons = sys.argv[1:4]
    texts = reset_bodies(folder)
    all_text = "".join(texts.values())
    with open(reasons, encoding="utf-8") as file:
        lines = [line.split(None, 2) for line in file if line.strip() and not line.startswith("#")]
    stays = {(line[0].removeprefix("?"), line[1]) for line in lines if len(line) == 3}
    of_some_versions = {(line[0][1:], line[1]) for line in lines if len(line) == 3 and line[0].startswith("?")}
    wrong = [f"no reason: {' '.join(line)}" for line in lines if len(line) < 3]
    found = variables(library)
    if len(found) < 50:
        wrong.append(f"only {len(found)} variables: is the library stripped?")
    reset = {(file, name) for file, name in found
             if re.search(rf"\b{name}\b", all_text if file == "-" else texts.get(file, ""))}
    wrong += [f"{file} {name}: survives a fork without a reason" for file, name in sorted(found - reset - stays)]
    wrong += [f"{file} {name}: is reset, or not there: not to be listed" for file, name in
              sorted(stays - (found - reset) - (of_some_versions - found))]
    for line in wrong:
        print("FAIL:", line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
