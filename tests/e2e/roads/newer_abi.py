#!/usr/bin/env python3
"""A driver with ABIs from the future: newer_abi.py BUILD

The program must get the driver's own functions where the table does not know the ABI and ours otherwise, over each road
and in any order; info, report, JSON and check say which calls were not seen.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

build = os.path.abspath(sys.argv[1])
failures = []
PROGRAM = build + "/tests/newer_abi"


def expect(what, good, found=""):
    print(("ok   " if good else "FAIL ") + what + ("" if good else f": {found}"), flush=True)
    if not good:
        failures.append(what)


def gpumem(folder, *arguments):
    done = subprocess.run([build + "/report/gpumem", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def run(steps, road, program=PROGRAM, processes=1):
    """The reports of a run that prints the same without and with the preload."""
    environment = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", GPUMEM_SIM_DRIVER_VERSION="14020")
    doings = []
    with tempfile.TemporaryDirectory() as folder:
        for preload in ({}, {"LD_PRELOAD": build + "/preload/libgpumem.so"}):
            done = subprocess.run([program, steps, road], cwd=folder, env=dict(environment, **preload), text=True,
                                  capture_output=True, timeout=120, check=False)
            doings.append((done.returncode, done.stdout, done.stderr))
        what = f"{road}, {steps}"
        expect(f"{what}: runs as without the preload", doings[0] == doings[1] and doings[0][0] == 0, doings)
        traces = [name for name in os.listdir(folder) if name.endswith(".trace")]
        expect(f"{what}: {processes} traces", len(traces) == processes, traces)
        return what, [{"info": gpumem(folder, "info", trace)[1],
                       "report": re.sub(r"\s+", " ", gpumem(folder, "report", "-v", trace)[1]),
                       "json": json.loads(gpumem(folder, "report", "--json", trace)[1]),
                       "check": gpumem(folder, "check", trace)} for trace in traces]


def newer_abis_are_told(steps, road, names, lookups, **settings):
    what, traces = run(steps, road, **settings)
    for told in traces:
        recorder = told["json"]["recorder"]
        expect(f"{what}: {lookups} lookups counted", recorder["newer_abi"] == lookups, recorder)
        found = [(entry["name"], entry["form"], entry["cuda_version"]) for entry in told["json"]["newer_abi"]]
        expect(f"{what}: named", sorted(found) == sorted(names), found)
        expect(f"{what}: not complete", not told["json"]["complete"])
        expect(f"{what}: no check passes", told["check"][0] == 3, told["check"])
        for name, form, version in names:
            shown = name + (f"_v{form}" if form else "") + \
                (f" of CUDA {version // 1000}.{version % 1000 // 10}" if version else "")
            for page in ("info", "report"):
                expect(f"{what}: {page} names {shown}", shown in told[page] and "not seen" in told[page], told[page])
    return traces


def today_is_seen(told, what, seen):
    """The allocations by today's ABIs, which also free each of them."""
    kinds = told["json"]["devices"][0]["kinds"]["device"] if told["json"]["devices"] else {}
    expect(f"{what}: {seen} allocations of today are seen", kinds.get("allocs") == seen and kinds.get("frees") == seen, kinds)


ALL = [("cuMemAlloc", 0, 14000), ("cuMemFree", 0, 14010), ("cuMemAllocAsync", 0, 14000), ("cuMemsetD8", 0, 14000)]
FORMS = [("cuMemAlloc", 3, 0), ("cuMemAllocAsync", 2, 0)]
for each in ("proc", "proc_old", "entry_point"):
    # Before there is a trace and after; future first, today first; both once more.
    for order in ("abiAB", "baiBA", "iabAB", "ibaBA", "iaAbBA", "iaAbBabAB"):
        for trace in newer_abis_are_told(order, each, ALL, 5 * order.count("b")):
            today_is_seen(trace, f"{each}, {order}", 2 * order.count("A"))
for each in ("dlsym", "default"):
    for order in ("abiAB", "iaAbBA"):
        newer_abis_are_told(order, each, FORMS, 3)
newer_abis_are_told("iabAB", "linked", FORMS, 3, program=PROGRAM + "_linked")
# A child has the pointers of its parent.
for trace in newer_abis_are_told("abfiAB", "proc", ALL, 5, processes=2):
    today_is_seen(trace, "a process and its child", 2)
# No call of today's ABIs, although the program used the driver.
newer_abis_are_told("b", "proc", ALL, 5)

[told] = run("iaA", "proc")[1]
expect("today alone: nothing to tell", told["json"]["complete"] and told["check"][0] == 0 and
       told["json"]["newer_abi"] == [] and "newer ABI" not in told["info"] + told["report"], told)
[told] = run("iaAc", "proc")[1]
expect("what only sets memory is told, and fails no check", told["json"]["complete"] and told["check"][0] == 0 and
       told["json"]["recorder"]["newer_abi"] == 1 and told["json"]["recorder"]["newer_abi_vital"] == 0 and
       "cuMemsetD8 of CUDA 14.0" in told["info"] and "cuMemsetD8 of CUDA 14.0" in told["report"], told)

sys.exit(1 if failures else 0)
