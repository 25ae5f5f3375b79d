#!/usr/bin/env python3
"""Programs on a driver written from NVIDIA's text (driver.c), and on the simulator: stub.py BUILD

What the simulator does more tamely than a driver may do it (handles and addresses that are used again at once, contexts
that are one another's, errors that stay) no program on the simulator can show. Each row of the table says what a program
leaves behind by the comments of cuda.h, and how the gate judges it. It runs as without the recorder, in a trace that grows
and in a flight recorder's, and one that makes no difference to that from Python, too.
"""
import json
import os
import subprocess
import sys
import tempfile

build = os.path.abspath(sys.argv[1])
gpumem, program, library = build + "/report/gpumem", build + "/tests/stub_programs", build + "/tests/libstub_programs.so"
MIB = 1 << 20
DRIVERS = {"stub": build + "/tests/stub", "simulator": build + "/sim"}
FROM_PYTHON = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).run_program(sys.argv[2].encode(), b''))"
failures = 0


def expect(what, good, found=""):
    global failures
    failures += not good
    if not good:
        print(f"FAIL {what}: {found}", flush=True)


class Row:
    """`device`, `host`: MiB that live at the end. `check`: what the gate answers, as a rule by whether anything does."""

    def __init__(self, name, device=0, host=0, ending="", check=None, drivers=("stub", "simulator"), python=True, look=None,
                 code=0, **environment):
        self.name, self.ending, self.drivers, self.code = name, ending, drivers, code
        self.device, self.host = int(device * MIB), int(host * MIB)
        self.check = check if check is not None else int(device + host > 0)
        self.python, self.look, self.environment = python and not ending, look, environment


def is_refused(symbol, purpose, device):
    """Out of memory, with the function, what for, and who held the device: others, if this process had nothing."""
    def look(report, page):
        failed = report["failed_allocations"]
        if "larger than all that was held" in page or (not device) != ("This process held nothing there" in page):
            return False
        return (len(failed) == 1 and failed[0]["api"] == symbol and failed[0]["out_of_memory"] and
                failed[0].get("purpose") == purpose and "OUT OF MEMORY on device 0" in page)
    return look


def refused(symbol, purpose, device=64):
    return Row("refused", device=device, code=9, drivers=["stub"], look=is_refused(symbol, purpose, device), STUB_REFUSE=symbol)


def is_failed(status):
    def look(report, page):
        failed = report["device_failed"]
        return (failed["status"], failed["refused_frees"]) == (status, 9) and report["leaked"]["leak"]["bytes"] == 0 and \
            f"DEVICE FAILED: error {status}" in page
    return look


def failed(status):
    return Row("failed", device=512, host=1, check=3, look=is_failed(status), STUB_ERROR=str(status),
               GPUMEM_SIM_ERROR=f"{status}:launch:1")


def exited_with(code):
    def look(report, page):
        return report["exit_code"] == code and f"exit code {code}, without its destructors" in page
    return look


def has_managed(size):
    return lambda report, page: report["devices"][0]["kinds"]["managed"]["live"] == size * MIB


ROWS = [
    Row("set_ids", device=3),
    Row("no_fallocate", device=3),
    *(refused(*row) for row in [
        ("cuDevicePrimaryCtxRetain", "context", 0), ("cuCtxCreate_v4", "context"), ("cuModuleLoadData", "code"),
        ("cuModuleGetFunction", "code"), ("cuLibraryLoadData", "code"), ("cuLaunchKernel", "launch"),
        ("cuCtxSetLimit", "limit"), ("cuStreamCreate", "stream"), ("cuEventCreate", "event"),
        ("cuGraphInstantiateWithFlags", "graph")]),
    failed(700), failed(719), failed(214),
    Row("bare_exit", look=exited_with(0)),
    Row("bare_exit_of_a_thread", device=3, code=7, look=exited_with(7)),
    *(Row("pools", device=117, host=1792, look=has_managed(107), ending=ending)
      for ending in ("", "_exit", "quick_exit", "system call")),
    Row("pools_again", device=4, host=9),
    Row("pools_race", device=20 / 256, host=20 / 256),
    Row("external_events", device=66),
    Row("external_waits", device=3),
    *(Row("green", **green) for green in ({}, {"STUB_GREEN": "1"})),
    *(Row("green_beside", device=3, **green) for green in ({}, {"STUB_GREEN": "1"})),
    Row("contexts_race"),
    Row("graphs_race"),
    Row("imported", device=256),
    Row("imported_and_gone"),
    Row("tiles", device=8),
    Row("tiles_of_none"),
]


def run(row, driver, mode, command):
    what = f"{row.name} {row.ending} {row.environment or ''} on the {driver}, {mode}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GPUMEM", "LD_"))}
    environment.update(row.environment, LC_ALL="C.UTF-8", LD_LIBRARY_PATH=DRIVERS[driver], GPUMEM_RING="4K")
    if mode == "flight":
        environment.update(GPUMEM_MODE="flight", GPUMEM_FLIGHT_SIZE="1M")
    with tempfile.TemporaryDirectory() as folder:
        def start(*arguments):
            return subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, timeout=120,
                                  check=False)
        bare, recorded = start(*command), start(gpumem, "run", "-q", "--", *command)
        expect(f"{what}: as without the recorder", (bare.stdout, bare.returncode) == (recorded.stdout, recorded.returncode) and
               bare.returncode == row.code, (bare, recorded))
        own = [name for name in sorted(os.listdir(folder)) if name.endswith(".trace")][:1]
        if not own:
            expect(f"{what}: a trace", False, recorded)
            return
        report = json.loads(start(gpumem, "report", "--json", *own).stdout)
        page = " ".join(start(gpumem, "report", *own).stdout.split())
        live = (sum(device["live"] for device in report["devices"]), sum(kind["live"] for kind in report["host"].values()))
        expect(f"{what}: bytes alive", live == (row.device, row.host), live)
        expect(f"{what}: complete", report["complete"] or row.check == 3, report["gaps"])
        check = start(gpumem, "check", *own)
        expect(f"{what}: the gate", check.returncode == row.check, check)
        expect(f"{what}: what is told", not row.look or row.look(report, page), (page, report["failed_allocations"]))


for row in ROWS:
    for driver in row.drivers:
        for mode in ("full", "flight"):
            run(row, driver, mode, [program, row.name, row.ending])
    if row.python:
        run(row, row.drivers[0], "python", [sys.executable, "-c", FROM_PYTHON, library, row.name])
print(f"{len(ROWS)} programs: {failures} differences")
sys.exit(failures != 0)
