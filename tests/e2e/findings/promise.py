#!/usr/bin/env python3
"""What the documents promise: no warning for a sound program. promise.py BUILD [PROGRAM]...

Each program runs with and without named steps. A sound one (promise_sound.c) has no warning, no error and no leak, and passes
the gate as it is by default. Of a sick one (promise_sick.c) each line that says so is named by that finding.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(sys.argv[1])
PROGRAMS = BUILD + "/tests/promise_programs"
ENVIRONMENT = dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim", GPUMEM_SIM_MEMORY="8G")
FUNCTION = re.compile(r"^static [^=;]*?(\w+)\([^;]*\)$")
SICK = re.compile(r"/\* sick: ([a-z-]+)(, without marks)? \*/$")


def run(*words):
    return subprocess.run([BUILD + "/report/gpumem", *words], env=ENVIRONMENT, capture_output=True, timeout=120, check=False)


def sick_lines():
    """{program, with marks: {(code, line)}} of promise_sick.c."""
    found, function = {}, None
    with open(os.path.join(HERE, "promise_sick.c"), encoding="utf-8") as file:
        for number, line in enumerate(map(str.rstrip, file), 1):
            begins, names = FUNCTION.match(line), SICK.search(line)
            function = begins[1] if begins else function
            if names:
                for marked in (False, True):
                    found.setdefault((function, marked), set()).update(() if marked and names[2] else {(names[1], number)})
    return found


def problems(program, marked, sick):
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "x.trace")
        run("run", "-q", "-o", trace, "--", PROGRAMS, program, *(["marked"] if marked else []))
        report = json.loads(run("report", "--json", trace).stdout)
        gate = run("check", trace)
    told = [f"{one['severity']} {one['code']} at {os.path.basename(one['file'] or '?')}:{one['line']}: {one['cause']}" for one in report["findings"]]
    if sick is None:
        loud = [text for text in told if not text.startswith("note ")]
        if report["verdict"]["state"] != "no leaks":
            loud.append(f"the verdict is {report['verdict']['state']}")
        return loud or ([] if gate.returncode == 0 else [f"the gate ends with {gate.returncode}: {gate.stdout.decode()}"])
    named = {("retained" if one["code"] == "growing" else one["code"], one["line"]) for one in report["findings"]}
    return [f"not named: {one}" for one in sorted(sick - named)] + (told if sick - named else [])


def main():
    names = subprocess.run([PROGRAMS], env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=True).stdout.split()
    sick = sick_lines()
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
    return 1 if any(found) or len(sound) < 100 * (len(sys.argv) == 2) else 0


if __name__ == "__main__":
    sys.exit(main())
