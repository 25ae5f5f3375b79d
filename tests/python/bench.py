"""Cost of a Python stack in ns, for every installed interpreter.

    python bench.py PROBE

Columns: Python depth; walk only; walk and intern if the stack is that of the event before; if its three innermost
frames differ; and if nothing is the same.
"""

import os
import sys

import run

CODE = """
import ctypes
probe = ctypes.CDLL({probe!r})
probe.probe_bench.restype = ctypes.c_double
def down(n):
    if n:
        return down(n - 1)
    return [probe.probe_bench(forget) for forget in (-1, 0, 3, 256)]
for depth in (5, 20, 50):
    print("{version:10} %5d %8.0f %8.0f %8.0f %8.0f" % (depth, *down(depth - 2)))
"""


def main():
    probe = os.path.abspath(sys.argv[1])
    print("%-10s %5s %8s %8s %8s %8s" % ("CPython", "depth", "walk", "same", "3 differ", "all"))
    for python in run.interpreters():
        about = run.describe(python)
        if about and not about[1] and about[0] in run.KNOWN:
            code = CODE.format(probe=probe, version=about[2])
            print(run.run(python, ["-c", code], {})[1], end="", flush=True)


if __name__ == "__main__":
    main()
