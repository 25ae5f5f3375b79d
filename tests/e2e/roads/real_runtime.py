#!/usr/bin/env python3
"""NVIDIA's own runtime on the simulated driver: real_runtime.py BUILD CC CUDA_INCLUDE

The runtime finds out that the driver is not NVIDIA's and refuses; nothing here answers or avoids its check.
What must hold for the shared and for the static runtime: the program prints the same and ends the same with
and without libgpumem.so; the runtime looks up the same names, versions and flags and gets the same results,
and with libgpumem.so some of the answers are its functions. Exit code 77: there is no such runtime here.
"""
import glob
import os
import subprocess
import sys
import tempfile

build, cc, include = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3]
here = os.path.dirname(os.path.abspath(__file__))
ours = build + "/preload/libgpumem.so"
problems = []


def find(name):
    places = [include + "/..", os.environ.get("CUDA_HOME", "/nonexistent")]
    for place in places:
        for folder in ("lib64", "lib", "targets/*/lib"):
            for path in glob.glob(os.path.join(place, folder, name)):
                return os.path.realpath(path)
    return None


def compile_program(folder, name, *arguments):
    output = os.path.join(folder, name)
    subprocess.run([cc, "-isystem", include, *arguments, "-o", output, "-ldl", "-lrt", "-lpthread"], check=True)
    return output


def run(program, folder, libraries, preload):
    lookups = os.path.join(folder, "lookups")
    environment = dict(os.environ, LD_LIBRARY_PATH=libraries, LD_PRELOAD=":".join(preload), LOOKUPS=lookups)
    if ours in preload:
        environment["LIBGPUMEM"] = ours
    done = subprocess.run([program], env=environment, cwd=folder, capture_output=True, text=True, timeout=120,
                          check=False)
    lines = []
    if os.path.exists(lookups):
        with open(lookups) as file:
            lines = file.read().splitlines()
        os.unlink(lookups)
    return (done.stdout, done.stderr, done.returncode), lines


def hold(kind, program, folder, libraries, counter):
    bare, _ = run(program, folder, libraries, [])
    recorded, _ = run(program, folder, libraries, [ours])
    counted, lookups = run(program, folder, libraries, [counter])
    both, lookups_recorded = run(program, folder, libraries, [counter, ours])
    for what, result in (("libgpumem.so", recorded), ("the counter", counted), ("both", both)):
        if result != bare:
            problems.append(f"{kind}: with nothing preloaded {bare}, with {what} {result}")
    if bare[2] == 0 or "memory no" not in bare[0]:
        problems.append(f"{kind}: the runtime did not refuse the simulated driver: {bare}")
    substituted = [line for line in lookups_recorded if line.endswith(" ours")]
    if [line.removesuffix(" ours") for line in lookups_recorded] != lookups:
        problems.append(f"{kind}: {len(lookups)} lookups without libgpumem.so, {len(lookups_recorded)} with it, or "
                        "other ones")
    if len(lookups) < 100 or len(substituted) < 50:
        problems.append(f"{kind}: {len(lookups)} lookups seen, {len(substituted)} answered with our functions")
    print(f"{kind}: {len(lookups)} lookups, {len(substituted)} answered with our functions, then: "
          f"{bare[0].splitlines()[0]}")


def main():
    shared, static = find("libcudart.so.13"), find("libcudart_static.a")
    if not shared and not static:
        print("no CUDA runtime 13 of NVIDIA's here", file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as libraries:
        os.symlink(build + "/sim/libcuda.so.1", libraries + "/libcuda.so.1")
        counter = compile_program(libraries, "libcount.so", "-shared", "-fPIC", here + "/count_lookups.c")
        for kind, runtime in (("shared", shared), ("static", static)):
            if not runtime:
                print(f"{kind}: no such runtime here")
                continue
            if kind == "shared":
                os.symlink(runtime, libraries + "/libcudart.so.13")
            program = compile_program(libraries, kind, here + "/real_runtime.c", runtime)
            hold(kind, program, folder, libraries, counter)
    for text in problems:
        print("FAIL: " + text, file=sys.stderr)
    return 1 if problems else 0


sys.exit(main())
