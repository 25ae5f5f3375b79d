#!/usr/bin/env python3
"""The reader finds any flipped bit of a trace that ended.

    flip_bits.py BUILD TRIES

Runs flip_bits on traces of the whole history and of a flight recorder that wrapped several times, of one thread and of
several, and of programs that end by exit, by _exit, by exec and that free after the end.
"""
import os
import subprocess
import sys
import tempfile

FLIGHT = {"GPUMEM_MODE": "flight", "GPUMEM_FLIGHT_SIZE": "72K", "GPUMEM_STACKS": "none"}
# program, its arguments, environment
RUNS = [
    ("random_program", ["5"], {}),
    ("churn", ["account", "100", "3000"], FLIGHT),
    ("life", ["threads_end"], {}),
    ("life", ["exit_handler"], {}),
    ("keep", ["_exit"], {"GPUMEM_STACKS": "none"}),
    ("keep", ["exec"], {"GPUMEM_STACKS": "none"}),
]


def try_run(build, tries, program, arguments, environment):
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", LD_PRELOAD=build + "/preload/libgpumem.so",
                           GPUMEM_RING="4K", **environment)
        subprocess.run([f"{build}/tests/{program}", *arguments], env=environment, cwd=folder, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        traces = sorted(name for name in os.listdir(folder) if name.endswith(".trace"))
        good = bool(traces)
        for name in traces[:2]:
            path = os.path.join(folder, name)
            tried = subprocess.run([build + "/tests/flip_bits", path, tries], capture_output=True, text=True, check=False)
            print(program, *arguments, f"({os.path.getsize(path)} bytes):", (tried.stdout + tried.stderr).strip())
            good = good and tried.returncode == 0
        return good


def main():
    build = os.path.abspath(sys.argv[1])
    results = [try_run(build, sys.argv[2], *run) for run in RUNS]
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
