#!/usr/bin/env python3
"""What the documents promise: no warning for a sound program. promise.py BUILD [PROGRAM]...

Each program runs with and without named steps. A sound one (promise_sound.c) has no warning, no error and no leak, and passes
the gate as it is by default. Of a sick one (promise_sick.c) each line that says so is named.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
from report_json import with_stacks  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(sys.argv[1])
PROGRAMS = BUILD + "/tests/promise_programs"
ENVIRONMENT = dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim", GPUMEM_SIM_MEMORY="8G")
FUNCTION = re.compile(r"^static [^=;]*?(\w+)\([^;]*\)$")
FILLED = re.compile(r"^\w+ \(promise_sick\.c:(\d+)\) filled the device")
SICK = re.compile(r"/\* (sick|tidy): ([a-z-]+)(, without marks)? \*/$")


def run(*words):
    return subprocess.run([BUILD + "/report/gpumem", *words], env=ENVIRONMENT, capture_output=True, timeout=120, check=False)


def sick_lines(names):
    """{program, with marks: {(code, line, whether a note will do)}} of promise_sick.c; a program's own functions stand above it."""
    found, lines, function = {}, set(), None
    with open(os.path.join(HERE, "promise_sick.c"), encoding="utf-8") as file:
        for number, line in enumerate(map(str.rstrip, file), 1):
            begins, sick = FUNCTION.match(line), SICK.search(line)
            function = begins[1] if begins else function
            if sick:
                lines.add((sick[2], number, sick[1] == "tidy", bool(sick[3])))
            if line == "}" and function in names and lines:
                for marked in (False, True):
                    found[function, marked] = {one[:3] for one in lines if not (marked and one[3])}
                lines = set()
    assert not lines, lines
    return found


def named_by(report):
    """{(code, line, whether it is but a note)}: what the report says of lines; a leak counts as an error."""
    here = HERE + "/promise_sick.c"
    said = {("retained" if one["code"] == "growing" else one["code"], one["line"], one["severity"] == "note") for one in report["findings"]}
    said |= {("cause", int(line), False) for one in report["findings"] for line in FILLED.findall(one["cause"])}
    for leak in report["leaks"]:
        frame = next((frame for frame in leak["stack"] if frame["file"] == here), None)
        if frame and leak["class"] == "leak":
            said |= {("leak", frame["line"], False), ("retained", frame["line"], False)}
    return said


def problems(program, marked, sick):
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "x.trace")
        run("run", "-q", "-o", trace, "--", PROGRAMS, program, *(["marked"] if marked else []))
        report = with_stacks(json.loads(run("report", "--json", trace).stdout))
        gate = run("check", trace)
    told = [f"{one['severity']} {one['code']} at {os.path.basename(one['file'] or '?')}:{one['line']}: {one['cause']}" for one in report["findings"]]
    if any('see "retained"' in one["cause"] for one in report["findings"]) and not {"retained", "growing"} & {one["code"] for one in report["findings"]}:
        return ["an error refers to a finding that is not there", *told]
    if sick is None:
        loud = [text for text in told if not text.startswith("note ")]
        if report["verdict"]["state"] != "no leaks":
            loud.append(f"the verdict is {report['verdict']['state']}")
        return loud or ([] if gate.returncode == 0 else [f"the gate ends with {gate.returncode}: {gate.stdout.decode()}"])
    named = named_by(report)
    missed = [one for one in sorted(sick) if not any(one[:2] == other[:2] and (one[2] or not other[2]) for other in named)]
    return [f"not named{' but as a note' * any(one[:2] == other[:2] for other in named)}: {one[0]} at line {one[1]}" for one in missed] + \
        (told if missed else [])


def main():
    names = subprocess.run([PROGRAMS], env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=True).stdout.split()
    sick = sick_lines(names)
    cases = [(name, marked, sick.get((name, marked))) for name in sys.argv[2:] or names for marked in (False, True)]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda case: problems(*case), cases))
    for (name, marked, lines), texts in zip(cases, found):
        if texts:
            print("FAIL", name, "(sick)" if lines else "(sound)", "with named steps" * marked)
            print(*texts, sep="\n")
    sound = [bool(texts) for case, texts in zip(cases, found) if case[2] is None]
    ill = [bool(texts) for case, texts in zip(cases, found) if case[2] is not None]
    print(f"sound: {sound.count(False)} of {len(sound)} without a warning; sick: {ill.count(False)} of {len(ill)} named")
    return 1 if any(found) or len(sys.argv) == 2 and (len(sound) < 100 or len(ill) < 100) else 0


if __name__ == "__main__":
    sys.exit(main())
