#!/usr/bin/env python3
"""Realistic programs and the findings of their reports: findings.py BUILD [PROGRAM]...

Each program runs with and without named steps. Comments in its source mark the lines that must have a finding or a leak
(programs.h); there must be no other.
"""
import json
import os
import re
import subprocess
import sys
import tempfile


HERE = os.path.dirname(os.path.abspath(__file__))
FUNCTION = re.compile(r"^static \w+ (\w+)\(.*\)$")
PART = r"(?:finding: [a-z-]+|marked: [a-z-]+|note: [a-z-]+|leak)"
COMMENT = re.compile(rf"/\* ({PART}(?:; {PART})*) \*/$")


def expectations(names):
    """{program: {(file, line): {"finding": CODE, "marked": CODE, "note": CODE, "leak": ""}}}; a program's own functions stand above
    it."""
    found = {name: {} for name in names}
    for file_name in ("sound.c", "sick.c"):
        open_lines, function = {}, None
        with open(os.path.join(HERE, file_name), encoding="utf-8") as file:
            for number, line in enumerate(map(str.rstrip, file), 1):
                begins, comment = FUNCTION.match(line), COMMENT.search(line)
                function = begins[1] if begins else function
                if comment:
                    parts = (part.partition(": ") for part in comment[1].split("; "))
                    open_lines[file_name, number] = {kind: code for kind, _, code in parts}
                if line == "}" and function in found:
                    found[function], open_lines = open_lines, {}
        assert not open_lines, open_lines
    return found


def wanted(expected, marked):
    """(findings, leaks) of a run, as sets of (code, file, line)."""
    kinds = ("marked", "finding") if marked else ("finding",)
    findings, leaks = set(), set()
    for place, parts in expected.items():
        code = next((parts[kind] for kind in kinds if kind in parts), None)
        if code:
            findings.add((code, *place))
        if "note" in parts:
            findings.add((parts["note"] + ", a note", *place))
        if "leak" in parts:
            leaks.add(("leak", *place))
    return findings, leaks


def line_of_work():
    """The line in work() that allocates what libraries allocate: many programs do so often, which is a note."""
    with open(os.path.join(HERE, "main.c"), encoding="utf-8") as file:
        lines = [number for number, line in enumerate(file, 1) if line.endswith("/* note: churn, if often */\n")]
    assert len(lines) == 1
    return "main.c", lines[0]


def found_in(report, notes):
    """(findings, leaks); those whose place must have a note say so, if they are one."""
    findings, count = set(), 0
    for one in report["findings"]:
        place = os.path.basename(one["file"] or "?"), one["line"]
        if (one["code"], one["severity"], place) == ("churn", "note", line_of_work()):
            continue
        count += 1
        is_note = one["severity"] == "note" and notes.get(place) == one["code"]
        findings.add((one["code"] + ", a note" * is_note, *place))
    if len(findings) != count:
        findings.add(("one cause twice", "?", 0))
    leaks = {(one["class"], os.path.basename(one["file"] or "?"), one["line"]) for one in report["leaks"]}
    return findings, leaks


def problems(build, program, marked, expected):
    environment = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", GPUMEM_SIM_DEVICES="2")
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "x.trace")
        subprocess.run([build + "/report/gpumem", "run", "-q", "-o", trace, "--", build + "/tests/findings_programs",
                        program, *(["marked"] if marked else [])], env=environment, timeout=60, check=True)
        report = json.loads(subprocess.run([build + "/report/gpumem", "report", "--json", trace], check=True,
                                                       capture_output=True, timeout=60).stdout)
    texts, notes = [], {place: parts.get("note") for place, parts in expected.items()}
    for want, found in zip(wanted(expected, marked), found_in(report, notes)):
        texts += [f"missing: {one}" for one in sorted(want - found)]
        texts += [f"not expected: {one}" for one in sorted(found - want)]
    if texts:
        texts += [f"  {one['severity']} {one['code']}: {one['cause']}" for one in report["findings"]]
    return texts


def main():
    build = os.path.abspath(sys.argv[1])
    names = subprocess.run([build + "/tests/findings_programs"], env=dict(os.environ, LD_LIBRARY_PATH=build + "/sim"),
                           capture_output=True, text=True, timeout=60, check=True).stdout.split()
    expected, failed = expectations(names), False
    for name in sys.argv[2:] or names:
        for marked in (False, True):
            texts = problems(build, name, marked, expected[name])
            failed |= bool(texts)
            print("FAIL" if texts else "ok  ", name, "with named steps" if marked else "")
            for text in texts:
                print("    ", text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
