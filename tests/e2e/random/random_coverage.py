"""The functions of the table that the random programs must call, and whether they did.

They are those of every section of preload/hooks/api.table that the simulator implements: strong symbols of its driver,
and per-thread forms of them; exports of its runtime that are not generated stubs. LEFT_OUT lists those that no random
program calls successfully, with the reason; a function that is called must leave the list.
"""
import os
import re
import subprocess

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../preload/hooks/api.table")
PER_THREAD = re.compile(r"_ptsz$|_ptds$")

LEFT_OUT = {
    "cuMemGetHandleForAddressRange": "always refused: the simulated devices have no DMA-BUF",
    "cuIpcGetEventHandle": "the simulator has no events of other processes",
    "cuIpcOpenEventHandle": "the simulator has no events of other processes",
    "cuGetProcAddress": "a road, not memory: the tests of the roads call it",
    "cuGetProcAddress_v2": "a road, not memory: the tests of the roads call it",
}


def table():
    """{symbol: section} of all functions that the table hooks."""
    section, found = "", {}
    with open(TABLE, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("["):
                section = line.strip()
            elif line.strip().startswith("symbols:"):
                for symbol in line.split(":", 1)[1].split():
                    found[symbol.split("@")[0]] = section
    return found


def exported(library):
    """{name: letter of nm} of a library's dynamic symbols."""
    lines = subprocess.check_output(["nm", "-D", "--defined-only", library], text=True).splitlines()
    return {line.split()[-1].split("@")[0]: line.split()[-2] for line in lines}


def implemented(build):
    driver, runtime = exported(build + "/sim/libcuda.so.1"), exported(build + "/sim/libcudart.so.13")
    with open(build + "/sim/runtime/stubs.c", encoding="utf-8") as source:
        stubs = set(re.findall(r"^int (cuda\w+)\(void\);", source.read(), re.M))
    return {name for name in table() if driver.get(PER_THREAD.sub("", name)) == "T"} | \
           {name for name in table() if name in runtime and name not in stubs}


def check(build, called):
    sections, wanted = table(), implemented(build)
    missing = sorted(wanted - called - set(LEFT_OUT), key=lambda name: (sections[name], name))
    stale = sorted(name for name in LEFT_OUT if name in called or name not in wanted)
    print(f"{len(wanted & called)} of the {len(wanted)} functions of the table that the simulator has were called,"
          f" {len(LEFT_OUT)} are left out")
    for name in missing:
        print(f"never called with success: {sections[name]}: {name}")
    for name in stale:
        print(f"left out without need: {name}")
    return not missing and not stale
