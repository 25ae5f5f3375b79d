#!/usr/bin/env python3
"""What the documentation says of commands, options, exit codes and variables is so: documented.py BUILD

Every `gpumem COMMAND ... --option` in README and docs is held against the command's own --help, and every option of
--help must be known to the parser. GPUMEM_... variables must be known to the code, and those that the recorder reads
must stand in the README.
"""
import glob
import os
import re
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
failed = []


def expect(condition, text):
    if not condition:
        failed.append(text)
        print("FAIL:", text)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def documents():
    names = [SOURCE + "/README.md", SOURCE + "/CONTRIBUTING.md", *sorted(glob.glob(SOURCE + "/docs/**/*.md", recursive=True))]
    return {os.path.relpath(name, SOURCE): read(name) for name in names}


def shown_commands(text):
    """Spans and lines of code that begin with `gpumem COMMAND` or hold it behind a variable, a prompt or a pipe."""
    fenced = re.findall(r"^```.*?\n(.*?)^```", text, re.M | re.S)
    spans = re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))
    lines = [line for block in fenced for line in block.replace("\\\n", " ").split("\n")]
    for line in (" ".join(piece.split()) for piece in lines + spans):
        for found in re.finditer(r"(?:^|[|;&$(] ?|[\s/])gpumem (?!-)([a-z-]+)([^|;&#]*)", line):
            yield found[1], found[2].split(" -- ")[0]


def help_of(gpumem, *command):
    done = subprocess.run([gpumem, *command, "--help"], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def check_options(gpumem):
    helps = {}
    for name, text in documents().items():
        for command, rest in shown_commands(text):
            helps.setdefault(command, help_of(gpumem, command))
            if helps[command] is None:
                # Prose such as "gpumem reads a trace" is no command; with an option or a file behind it, it would be one.
                expect(not OPTION.search(rest), f"{name}: gpumem {command}{rest}: there is no such command")
                continue
            for option in OPTION.findall(rest):
                expect(option in helps[command], f"{name}: gpumem {command} has no {option}")
    expect({"run", "report", "check", "info"} <= set(helps), f"the documentation shows only {sorted(helps)}")


def check_parsers(gpumem):
    """An option that --help names is not refused as unknown."""
    overview = help_of(gpumem)
    for command in re.findall(r"^  ([a-z][\w-]*) +\S", overview, re.M):
        for option in set(re.findall(r"^ {2,8}(?:-\w, )?(--[a-z][\w-]*)", help_of(gpumem, command), re.M)):
            done = subprocess.run([gpumem, command, option, "--help"], capture_output=True, text=True, check=False,
                                  stdin=subprocess.DEVNULL)
            expect("unrecognized option" not in done.stderr and "unknown option" not in done.stderr,
                   f"gpumem {command} {option}: {done.stderr}")


def check_variables():
    code = "\n".join(read(path) for folder in ("preload", "report", "sim", "tests", "scripts", "include", "python", "cmake")
                     for path in glob.glob(f"{SOURCE}/{folder}/**/*", recursive=True) if os.path.isfile(path)
                     and not path.endswith((".pyc", ".xz")) and b"\0" not in open(path, "rb").read(1024))
    code += read(SOURCE + "/CMakeLists.txt") + read(SOURCE + "/Makefile")
    for name, text in documents().items():
        for variable in set(re.findall(r"\bGPUMEM_[A-Z0-9_]*[A-Z0-9]\b", text)):
            expect(variable in code, f"{name}: nothing knows {variable}")
    known = set(re.findall(r'"(GPUMEM_[A-Z_]+)"', read(SOURCE + "/include/gpumem/settings.h")))
    known |= set(re.findall(r'"(GPUMEM_[A-Z_]+)"', read(SOURCE + "/preload/base/config.c")))
    own = {"GPUMEM_RUN", "GPUMEM_NVTX_NEXT"}  # set by `gpumem run` for the recorder, not by users
    for variable in known - own:
        expect(variable in read(SOURCE + "/README.md"), f"README.md does not name {variable}")


def main():
    gpumem = os.path.abspath(sys.argv[1]) + "/report/gpumem"
    check_options(gpumem)
    check_parsers(gpumem)
    check_variables()
    print("FAILED" if failed else "passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
