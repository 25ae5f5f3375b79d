#!/usr/bin/env python3
"""Holds the table of thresholds in docs/findings.md against the code of the rules, both ways.

    thresholds.py SOURCE

A threshold is a `#define` of a number in report/judge/findings/ and report/judge/rounds/; the table has its file, name, value and
reason. Units and things that are no threshold are listed here.
"""
import glob
import os
import re
import sys

NONE = {"ONCE"}  # the size of a table
DEFINE = re.compile(r"^#define ([A-Z][A-Z0-9_]+) +(?:\\\n +)?(\S.*?)(?: */\*.*| *\\)?$", re.M)
ROW = re.compile(r"^\| `([a-z_]+\.[ch])` `([A-Z0-9_]+)` \| ([^|]+) \| ([^|]+) \|$", re.M)


def plain(value):
    """"8", "8 MiB", "1 s": as the table has it."""
    value = value.strip("()").replace("u", "")
    value = re.sub(r"^(\d+) \* GM_MIB$", r"\1 MiB", value)
    return {"GM_MIB": "1 MiB", "1000000000": "1 s", "1e17": "3 years"}.get(value, value)


def main():
    source, problems = sys.argv[1], []
    code = {}
    for folder in ("judge/findings", "judge/rounds"):
        for path in sorted(glob.glob(os.path.join(source, "report", folder, "*.[ch]"))):
            with open(path, encoding="utf-8") as file:
                for name, value in DEFINE.findall(file.read()):
                    if name not in NONE and not name.startswith("GM_") and not name.endswith("_H"):
                        code[os.path.basename(path), name] = plain(value)
    with open(os.path.join(source, "docs/findings.md"), encoding="utf-8") as file:
        rows = ROW.findall(file.read())
    table = {(file, name): value.strip() for file, name, value, _ in rows}
    for place in sorted(code.keys() | table.keys()):
        if code.get(place) != table.get(place):
            problems.append(f"{place[0]} {place[1]}: {code.get(place)} in the code, {table.get(place)} in docs/findings.md")
    problems += [f"{file} {name}: no reason" for file, name, _, reason in rows if len(reason.strip()) < 20]
    problems += [] if len(code) > 30 else [f"only {len(code)} thresholds were found"]
    for problem in problems:
        print("FAIL: " + problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
