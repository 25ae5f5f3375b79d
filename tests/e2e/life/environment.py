#!/usr/bin/env python3
"""
A trace tells the environment and the command that a process had, whatever it writes over them, and what it sets before
its first CUDA call: environment.py BUILD
"""
import os
import re
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(sys.argv[1])
STARTED = {"RANK": "3", "PYTORCH_CUDA_ALLOC_CONF": "garbage_collection_threshold:0.6", "XLA_FLAGS": "--one"}
CHANGED = {"RANK": "5", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
PYTHON = """
import ctypes, os
os.environ.update(RANK="5", COLOUR="blue", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True", GPUMEM_RING="1M")
del os.environ["XLA_FLAGS"]
ctypes.CDLL("libcudart.so.13").cudaFree(None)
"""
failures = []


def expect(what, wanted, found):
    print(("ok   " if wanted == found else "FAIL ") + what + ("" if wanted == found else f": {found}, not {wanted}"))
    if wanted != found:
        failures.append(what)


def trace_of(folder, command):
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "ASAN_OPTIONS", "TSAN_OPTIONS") if name in os.environ}
    environment = dict(inherited, **STARTED, COLOUR="red", LD_LIBRARY_PATH=BUILD + "/sim", GPUMEM_RING="256K",
                       GPUMEM_OUTPUT=folder + "/%r.%q{COLOUR}.trace", LD_PRELOAD=BUILD + "/preload/libgpumem.so")
    subprocess.run(command, env=environment, check=True, timeout=120)
    [name] = os.listdir(folder)
    return name


def check(mode, command, name, variables):
    with tempfile.TemporaryDirectory() as folder:
        expect(f"{mode}: name of the trace", name, trace_of(folder, command))
        told = subprocess.run([BUILD + "/report/gpumem", "info", os.path.join(folder, os.listdir(folder)[0])],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
    found = dict(re.findall(r"^environment +(\w+)=(.*)$", told, re.M))
    ring = found.pop("GPUMEM_RING", None)
    expect(f"{mode}: setting of the recorder", "256K", ring)
    for other in ("COLOUR", "GPUMEM_OUTPUT"):
        found.pop(other, None)
    if variables is not None:
        expect(f"{mode}: variables", variables, found)
    [line] = re.findall(r"^command +(.*)$", told, re.M)
    expect(f"{mode}: command", True, line.startswith(command[0]) and line.split()[1] == command[1])


def main():
    program = BUILD + "/tests/environment"
    check("as it was", [program, "plain"], "3.red.trace", STARTED)
    check("a title", [program, "title"], "3.red.trace", STARTED)
    check("a title behind a moved environment", [program, "moved"], "3.red.trace", STARTED)
    check("set", [program, "set"], "5.blue.trace", CHANGED)
    check("set by a child", [program, "child"], "5.blue.trace", CHANGED)
    check("set by Python", [sys.executable, "-c", PYTHON], "5.blue.trace", CHANGED)
    for turn in range(20):
        check(f"set by another thread, {turn}", [program, "race"], "3.red.trace", None)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
