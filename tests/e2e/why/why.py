#!/usr/bin/env python3
"""
What the recorder declined, as the debug build tells it: why.py BUILD

Programs with code that cannot be unwound, with lookups of names that only the recorder could answer, and with a thread
that runs no Python, run under the debug build; `gpumem info --why` must name each with its reason, in a trace that is
otherwise like any other. Of the build that users get it must say that the trace does not tell.
"""
import os
import re
import subprocess
import sys
import tempfile

build = os.path.abspath(sys.argv[1])
failures = []
DEBUG = build + "/preload/why/libgpumem.so"
PYTHON = """
import ctypes
hasattr(ctypes.CDLL(None), "cuMemAlloc_v2")
ctypes.CDLL("%s/tests/why_thread.so").start_thread()
""" % build


def expect(what, good, found):
    print(("ok   " if good else "FAIL ") + what + ("" if good else f": {found}"), flush=True)
    if not good:
        failures.append(what)


def lines_of(command, library, **environment):
    """The lines of `info --why`, without their first word."""
    with tempfile.TemporaryDirectory() as folder:
        base = dict(os.environ, LD_PRELOAD=library, GPUMEM_OUTPUT=folder + "/t.trace", **environment)
        base["LD_LIBRARY_PATH"] = build + "/sim"
        done = subprocess.run(command, env=base, capture_output=True, text=True, timeout=120, check=False)
        expect(f"{command[0]}: runs", done.returncode == 0 and done.stderr == "", done)
        info = subprocess.run([build + "/report/gpumem", "info", "--why", folder + "/t.trace"], capture_output=True,
                              text=True, check=False)
        expect("the trace is whole", re.search(r"^complete +yes$", info.stdout, re.M) and "damaged" not in info.stdout,
               info)
        return [line.split(None, 1)[1] for line in info.stdout.splitlines() if line.startswith("why ")]


def tells(lines, pattern):
    expect(f"says {pattern!r}", any(re.search(pattern, line) for line in lines), lines)


if "debug" in sys.argv[2:]: # this build is one itself
    DEBUG = build + "/preload/libgpumem.so"
for mode in ("full", "flight"):
    program = lines_of([build + "/tests/why_program"], DEBUG, GPUMEM_MODE=mode)
    tells(program, r"^[\d,]+ times: step left to libunwind: no unwind data for the code.* why_program\+0x[0-9a-f]+$")
script = lines_of([sys.executable, "-c", PYTHON], DEBUG)
tells(script, r"times: answered with nothing: without the recorder the name is not there: cuMemAlloc_v2$")
tells(script, r"times: no Python frames: the thread runs no Python$")
if "debug" not in sys.argv[2:]:
    user = lines_of([build + "/tests/why_program"], build + "/preload/libgpumem.so")
    expect("the build of users does not tell", user ==
           ["this trace does not tell: its recorder was not built with GPUMEM_WHY"], user)
sys.exit(1 if failures else 0)
