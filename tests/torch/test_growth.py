#!/usr/bin/env python3
"""What gpumem says of the programs of growth_programs.py: test_growth.py BUILD FOLDER [--score] [PROGRAM]...

A sound program has no warning and no error, and passes the gate; of a sick one, a finding or a leak names a line that
ends with "# cause". With --score it prints the marks and fails on nothing.
"""
import ast
import collections
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from report_json import with_stacks  # noqa: E402

PROGRAMS = os.path.join(HERE, "growth_programs.py")
ALL_LINES = {"sixty_lines": "many_lines.py"}  # a file of which each line is a cause
CODES = {"retained", "growing", "pinned-growth", "out-of-memory", "pool-fragmentation", "leak"}
FILLED = {"losses_until_full", "results_until_full", "joined_until_full", "jobs_until_full", "pages_until_full",
          "survived_by_dropping_a_batch", "optimizers_until_full", "copies_of_the_model_until_full",
          "folds_until_full"}  # by what grew: the error names it
SURE = {"state_carried_with_its_graph", "copies_of_the_model", "queue_joined_beside_inputs"}  # a note is not enough
REFUSED = {"model_load_refused"}  # that is no fault of its growth


class Program:
    """A function of growth_programs.py. `lines`: that are to blame; also of functions that it calls."""

    def __init__(self, function, functions, lines):
        decorator = function.decorator_list[0]
        self.name = function.name
        self.kind = decorator.func.id if isinstance(decorator, ast.Call) else decorator.id
        self.memory = decorator.keywords[0].value.value if isinstance(decorator, ast.Call) else None
        calls = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        mine = [one for one in functions if one is function or one.name in calls and not one.decorator_list]
        self.lines = {line for one in mine for line in lines if one.lineno <= line <= one.end_lineno}
        assert self.lines or self.kind == "sound" or self.name in ALL_LINES, self.name


def programs():
    with open(PROGRAMS, encoding="utf-8") as file:
        text = file.read()
    lines = {number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# cause")}
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return [Program(one, functions, lines) for one in functions if one.decorator_list]


def tool(build, *arguments):
    return subprocess.run([build + "/report/gpumem", *arguments], capture_output=True, text=True, timeout=300, check=False)


def record(build, libraries, program, folder):
    package = os.path.join(folder, "site-packages", "torch")
    os.makedirs(package)
    for file in ("replica_tensor.py", "growth_tensor.py"):
        shutil.copy(os.path.join(HERE, file), package)
    environment = dict(os.environ, PYTHONPATH=os.path.dirname(package), PYTHONDONTWRITEBYTECODE="1", REPLICA=libraries,
                       REPLICA_RUNTIME=build + "/sim/libcudart.so.13", LD_LIBRARY_PATH=build + "/sim",
                       GPUMEM_SIM_DEVICES="2", LD_PRELOAD=build + "/preload/libgpumem.so")
    if program.memory:
        environment["GPUMEM_SIM_MEMORY"] = program.memory
    done = subprocess.run([sys.executable, PROGRAMS, program.name], env=environment, cwd=folder, capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.returncode == 0, (program.name, done.stderr[-800:])
    trace, = glob.glob(folder + "/*.trace")
    return trace


def told(build, name, trace):
    """[(severity, code, line)], with line 0 for a place that is none of the program's, and the gate's exit code."""
    report = with_stacks(json.loads(tool(build, "report", "--json", trace).stdout))
    file = ALL_LINES.get(name, os.path.basename(PROGRAMS))
    found = []
    for one in report["findings"]:
        here = os.path.basename(one["file"] or "") == file
        found.append((one["severity"], one["code"], one["line"] if here else 0, one["cause"]))
    for leak in report["leaks"]:
        lines = [frame["line"] for frame in leak["stack"] if os.path.basename(frame["file"] or "") == file]
        if leak["class"] == "leak":
            found.append(("error", "leak", lines[0] if lines else 0, f"{leak['bytes']} bytes"))
    if name == "adam" and not re.search(r"By purpose: .*optimizer-state .*parameter ", tool(build, "report", trace).stdout):
        found.append(("error", "no purposes on the first page", 0, ""))
    return found, tool(build, "check", trace).returncode


def judge(program, found, code):
    """(whether it is right, the mark)."""
    if program.kind == "sound":
        wrong = [one for one in found if one[0] != "note" and not (program.name in REFUSED and one[1] == "out-of-memory")]
        return not wrong and not code, "FAILED" if code else "WARNED" if wrong else "left alone"
    right = [one for one in found if one[1] in CODES and (one[2] in program.lines or program.name in ALL_LINES and one[2])]
    if not right:
        return False, "MISSED"
    errors = [cause for _, finding, _, cause in found if finding == "out-of-memory"]
    if program.name in FILLED and not any(f"{os.path.basename(PROGRAMS)}:{line})" in cause and "filled the device" in cause
                                          for cause in errors for line in program.lines):
        return False, "CAUSE NOT NAMED FIRST"
    noted = all(one[0] == "note" for one in right)
    return not (noted and program.name in SURE), "noted" if noted else "failed" if code else "warned"


def examine(build, libraries, program):
    with tempfile.TemporaryDirectory() as folder:
        found, code = told(build, program.name, record(build, libraries, program, folder))
    return (program, found, *judge(program, found, code))


def main():
    build, libraries = map(os.path.abspath, sys.argv[1:3])
    wanted = [name for name in sys.argv[3:] if name != "--score"]
    chosen = [program for program in programs() if not wanted or program.name in wanted]
    marks, failed = collections.Counter(), False
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for program, found, right, mark in pool.map(lambda one: examine(build, libraries, one), chosen):
            marks[program.kind, mark] += 1
            failed |= not right
            print("ok  " if right else "FAIL", program.kind, program.name + ":", mark)
            for severity, code, line, cause in found if wanted or not right else ():
                print(f"      {severity} {code} at line {line}: {cause}")
    print("; ".join(f"{kind} {mark}: {count}" for (kind, mark), count in sorted(marks.items())))
    return 1 if failed and "--score" not in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
