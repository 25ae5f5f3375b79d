#!/usr/bin/env python3
"""
The table of the recorder's limits in docs/reliability.md, held against the code: limits.py ROOT

Each row names a limit, its value, the constant that the code has it by, and the counter that tells when something was
left out. The constant must have that value, the recorder must count by that counter, and every counter that is one of
a limit must stand in the table.
"""
import os
import re
import sys

root = sys.argv[1]
problems = []


def read(*path):
    with open(os.path.join(root, *path), encoding="utf-8") as file:
        return file.read()


def sources(folder):
    for place, _, names in os.walk(os.path.join(root, folder)):
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                yield read(place, name)


code = {folder: "\n".join(sources(folder)) for folder in ("preload", "include")}
text = "\n".join(code.values())


def value_of(name, depth=0):
    """A constant's value; None if it is not there, or not a number."""
    found = re.search(rf"^\s*#define {name}\s+(.+?)\s*(?:/\*.*)?$", text, re.M) or re.search(rf"\b{name} = (.+?)[,\s]", text)
    if not found or depth > 5:
        return None
    expression = re.sub(r"UINT(?:64|32)_C\((\w+)\)", r"\1", found[1])
    expression = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", expression)
    for word in set(re.findall(r"\b[A-Z_a-z]\w*", expression)) - {"x"}:
        if not word.startswith("0x"):
            expression = re.sub(rf"\b{word}\b", str(value_of(word, depth + 1)), expression)
    if not re.fullmatch(r"[\w\s()+*/<-]+", expression) or "None" in expression:
        return None
    return int(eval(expression.replace("/", "//"), {"__builtins__": {}})) # pylint: disable=eval-used


def number(words):
    """'256 KiB' or '65,536' as a number."""
    found = re.fullmatch(r"([\d,]+)(?: (KiB|MiB))?", words)
    return int(found[1].replace(",", "")) << {None: 0, "KiB": 10, "MiB": 20}[found[2]] if found else None


table = re.search(r"<!-- limits of the recorder -->\n((?:\|.*\n)+)", read("docs", "reliability.md"))
rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in table[1].splitlines()[2:]]
counters = re.findall(r"^    GM_COUNT_(\w+),", read("include", "gpumem", "trace.h"), re.M)
listed = set()
for what, value, constant, counter in rows:
    listed.add(counter.upper())
    if number(value) is None or value_of(constant) != number(value):
        problems.append(f"{what}: {constant} is {value_of(constant)}, the table has {value}")
    if counter.upper() not in counters:
        problems.append(f"{what}: there is no counter {counter}")
    elif not re.search(rf"\bGM_COUNT_{counter.upper()}\b", code["preload"]):
        problems.append(f"{what}: the recorder never counts {counter}")
of_limits = {name for name in counters if name.endswith("_LIMIT")} | {"STRING_CUT", "CONTEXT_DEPTH", "STACK_TRUNCATED"}
problems += [f"{name.lower()}: counts what is beyond a limit, and stands in no row" for name in sorted(of_limits - listed)]
if len(rows) < 15:
    problems.append(f"only {len(rows)} rows")
print("\n".join(problems) or f"limits: {len(rows)} as in the code")
sys.exit(1 if problems else 0)
