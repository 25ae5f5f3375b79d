#!/usr/bin/env python3
"""No trace that the recorder wrote is too much for the reader, however extreme the program.

    extremes.py BUILD [SCALE]

The programs leak from one line, destroy contexts, launch graphs, or have many stacks, deep stacks or many threads.
report, report --json and check must give the same with and without the limits of the reader. SCALE (1) multiplies the
work of the programs.
"""
import os
import subprocess
import sys
import tempfile

# name: what the program does, how often, and the recorder's settings. NOOP: the simulator's no-op mode.
NOOP = {"GPUMEM_SIM_NOOP": "1"}
PROGRAMS = {
    "leaks": ("leaks", 500000, NOOP),
    "contexts": ("contexts", 4000, {}),
    "launches": ("launches", 20000, {}),
    "stacks": ("stacks", 20000, NOOP),
    "deep": ("deep", 1000, {"GPUMEM_DEPTH": "256", **NOOP}),
    "threads": ("threads", 1000, NOOP),
    "flight": ("threads", 1000, {"GPUMEM_MODE": "flight", "GPUMEM_FLIGHT_SIZE": "1M", **NOOP}),
}
failed = []


def expect(condition, text):
    if not condition:
        failed.append(text)
        print("FAIL:", text)


def record(build, folder, name, scale):
    kind, number, settings = PROGRAMS[name]
    environment = dict(os.environ, LD_LIBRARY_PATH=f"{build}/sim", LD_PRELOAD=f"{build}/preload/libgpumem.so",
                       GPUMEM_OUTPUT=f"{folder}/{name}.trace", **settings)
    subprocess.run([f"{build}/tests/extremes", kind, str(int(number * scale))], env=environment, check=True)


def read(build, folder, name):
    def run(command, *options):
        return subprocess.run([f"{build}/report/gpumem", *command, *options, f"{name}.trace"], cwd=folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    for command in (["report"], ["report", "--json"]):
        limited, free = run(command), run(command, "--no-limits")
        expect(limited.returncode == 0 and free.returncode == 0, f"{name}: {command}: exit code {limited.returncode}")
        expect(limited.stdout == free.stdout, f"{name}: {command}: another output without limits")
        expect(limited.stderr == b"", f"{name}: {command}: {limited.stderr}")
    judged = run(["check"], "--on-cut", "judge" if name == "flight" else "fail")
    expect(judged.returncode in (0, 1) and judged.stderr == b"", f"{name}: check: {judged.returncode} {judged.stderr}")


def main():
    build = os.path.abspath(sys.argv[1])
    scale = float(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory() as folder:
        for name in PROGRAMS:
            record(build, folder, name, scale)
            read(build, folder, name)
            os.unlink(f"{folder}/{name}.trace")
    print("failed" if failed else "all good")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
