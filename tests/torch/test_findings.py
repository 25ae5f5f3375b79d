#!/usr/bin/env python3
"""Findings on the replica of PyTorch's allocator, under real Python: test_findings.py BUILD FOLDER [SCENARIO]...

Every faulty scenario must give exactly the finding that its source announces, at that line; every sound one must give
none. A program prints the same with and without the preload.
"""
import ast
import glob
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import expected_findings  # noqa: E402

SCENARIOS = os.path.join(HERE, "replica_scenarios.py")
PROGRAMS = os.path.join(HERE, "replica_programs.py")  # run with and without named steps
PYTHON = os.path.join(HERE, "..", "..", "python")  # gpumem.py


def scenarios(path):
    with open(path, encoding="utf-8") as file:
        return [node.name for node in ast.parse(file.read()).body
                if isinstance(node, ast.FunctionDef) and node.decorator_list]


def run(build, libraries, command, folder, preload):
    """Copies the tensors' file to the place of a framework's files, so that findings name the lines of their
    callers."""
    package = os.path.join(folder, "site-packages", "torch")
    os.makedirs(package, exist_ok=True)
    shutil.copy(os.path.join(HERE, "replica_tensor.py"), package)
    environment = dict(os.environ, PYTHONPATH=os.path.dirname(package) + ":" + PYTHON, PYTHONDONTWRITEBYTECODE="1",
                       LD_LIBRARY_PATH=build + "/sim", GPUMEM_SIM_DEVICES="2", REPLICA=libraries,
                       REPLICA_RUNTIME=build + "/sim/libcudart.so.13")
    if preload:
        environment["LD_PRELOAD"] = build + "/preload/libgpumem.so"
    return subprocess.run([sys.executable, *command], env=environment, cwd=folder, capture_output=True,
                          text=True, timeout=120, check=False)


def check(build, libraries, path, name, marked):
    command = [path, name, *(["marked"] if marked else [])]
    with tempfile.TemporaryDirectory() as folder:
        bare = run(build, libraries, command, folder, preload=False)
        recorded = run(build, libraries, command, folder, preload=True)
        if bare.returncode != 0 or (bare.stdout, bare.stderr) != (recorded.stdout, recorded.stderr):
            return [f"exit codes {bare.returncode}, {recorded.returncode}: {bare.stderr[-500:]!r}, "
                    f"{recorded.stderr[-500:]!r}; outputs {bare.stdout!r}, {recorded.stdout!r}"], ""
        traces = glob.glob(folder + "/*.trace")
        if len(traces) != 1:
            return [f"one trace expected, not {traces}"], ""
        return expected_findings.problems(build + "/report/gpumem", traces[0], path, name, marked)


def main():
    build, libraries = map(os.path.abspath, sys.argv[1:3])
    failed = False
    runs = [(SCENARIOS, name, False) for name in scenarios(SCENARIOS)]
    runs += [(PROGRAMS, name, marked) for name in scenarios(PROGRAMS) for marked in (False, True)]
    for path, name, marked in runs:
        if sys.argv[3:] and name not in sys.argv[3:]:
            continue
        problems, found = check(build, libraries, path, name, marked)
        failed |= bool(problems)
        print("FAIL" if problems else "ok  ", name + (", steps named:" if marked else ":"), found)
        for problem in problems:
            print("    ", problem)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
