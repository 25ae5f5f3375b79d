#!/usr/bin/env python3
"""Calls that are no allocations and are refused for lack of memory, and a device that fails: refusals.py BUILD

The simulated device is full but for less than a context, a module or a kernel's local memory takes. Each program runs as
without the recorder. Of one that gives up the report says OUT OF MEMORY, for what, by which function and who held the
device; of one that could do without, it says that it was survived. What a failed device refuses to free is no leak.
"""
import json
import os
import subprocess
import sys
import tempfile

build = os.path.abspath(sys.argv[1])
gpumem, program = build + "/report/gpumem", build + "/tests/refusals"
environment = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", LC_ALL="C.UTF-8", GPUMEM_SIM_MEMORY="64M",
                   GPUMEM_SIM_TAKES="context:8M,code:5M,launch:16M,limit:16M,stream:16M,event:16M,graph:16M")
for name in ("LD_PRELOAD", "GPUMEM_SIM_FAIL", "GPUMEM_SIM_ERROR"):
    environment.pop(name, None)
HELD = 48 << 20
failures = 0


def expect(what, good, found=""):
    global failures
    failures += not good
    print(("ok   " if good else "FAIL ") + what + ("" if good else f": {found}"), flush=True)


def run(*arguments, folder=None, **more):
    return subprocess.run(arguments, capture_output=True, text=True, env=dict(environment, **more), cwd=folder, timeout=60,
                          check=False)


class Recorded:
    """A run of the program: what it did, its report as JSON and as text, the gate's answer, the oracle."""

    def __init__(self, *arguments, **more):
        with tempfile.TemporaryDirectory() as folder:
            self.what = " ".join(arguments) + "".join(f" {name}={value}" for name, value in more.items())
            bare = run(program, *arguments, folder=folder, **more)
            done = run(gpumem, "run", "-q", "--", program, *arguments, folder=folder,
                       GPUMEM_SIM_ORACLE=folder + "/oracle", **more)
            code = bare.returncode if bare.returncode >= 0 else 128 - bare.returncode
            self.output = done.stdout
            expect(f"{self.what}: as without the recorder", (done.stdout, done.returncode) == (bare.stdout, code),
                   (done, bare))
            self.report = json.loads(run(gpumem, "report", "--json", folder=folder).stdout)
            self.page = " ".join(run(gpumem, "report", folder=folder).stdout.split())
            self.long = " ".join(run(gpumem, "report", "-v", folder=folder).stdout.split())
            self.html = run(gpumem, "report", "--html", "page.html", folder=folder)
            self.check = run(gpumem, "check", folder=folder)
            self.judged = run(gpumem, "check", "--on-cut", "judge", folder=folder)
            self.sarif = run(gpumem, "check", "--format", "sarif=out.sarif", folder=folder)
            self.oracle = json.loads(run(build + "/sim/sim-oracle", folder + "/oracle").stdout)

    def expect(self, what, good, found=""):
        expect(f"{self.what}: {what}", good, found or self.page)


def refused(call, purpose, words, api):
    it = Recorded(call)
    it.expect("refused", "error 2" in it.output, it.output)
    it.expect("counted", it.report["failed"] == it.oracle["failed"] == 1, (it.report["failed"], it.oracle["failed"]))
    [one] = it.report["failed_allocations"]
    it.expect("the function, and for what", (one["api"], one["purpose"], one["out_of_memory"], one["device"], one["request"])
              == (api, purpose, True, 0, 0), one)
    it.expect("its place", [frame["function"] for frame in it.report["stacks"][one["stack"]]["frames"]][1:] ==
              ["refused", "main"], it.report["stacks"][one["stack"]])
    it.expect("who held the device then", one["live"]["bytes"] == HELD, one)
    it.expect("the page", f"OUT OF MEMORY on device 0, not survived: {words}" in it.page)
    it.expect("the holder", "when memory ran out, 48.0 MiB were live" in it.page)
    it.expect("in full", f"{words}, on device 0 by {api}: out of memory" in it.long, it.long)
    findings = [(finding["code"], finding["severity"]) for finding in it.report["findings"]]
    it.expect("one finding", findings == [("out-of-memory", "error")], findings)
    it.expect("the leak is told too, and fails the gate", it.check.returncode == 1 and it.report["leaked"]["leak"]["bytes"]
              == HELD, it.check)
    it.expect("HTML", it.html.returncode == 0, it.html)


def survived(call, words):
    it = Recorded(call, "survive")
    it.expect("refused", "error 2" in it.output, it.output)
    it.expect("the page", f"Out of memory on device 0, survived: {words}" in it.page)
    severities = {finding["severity"] for finding in it.report["findings"]}
    it.expect("no error", "error" not in severities, it.report["findings"])
    it.expect("passes", it.check.returncode == 0 and it.report["complete"], it.check)


for calls in (("context", "context", "making a context", "cuCtxCreate_v4"),
              ("context_v2", "context", "making a context", "cuCtxCreate_v2"),
              ("module", "code", "loading code", "cuModuleLoadData"),
              ("library", "code", "loading code", "cuLibraryGetModule"),
              ("launch", "launch", "launching a kernel", "cuLaunchKernel"),
              ("launch_ex", "launch", "launching a kernel", "cuLaunchKernelEx"),
              ("launch_cooperative", "launch", "launching a kernel", "cuLaunchCooperativeKernel"),
              ("limit", "limit", "setting a limit of a context", "cuCtxSetLimit"),
              ("stream", "stream", "making a stream", "cuStreamCreate"),
              ("event", "event", "making an event", "cuEventCreate"),
              ("graph", "graph", "a graph", "cuGraphInstantiateWithFlags"),
              ("runtime_stream", "stream", "making a stream", "cudaStreamCreate"),
              ("runtime_limit", "limit", "setting a limit of a context", "cudaDeviceSetLimit")):
    refused(*calls)
    survived(calls[0], calls[2])

# The first call of a runtime makes the context, on a device that others have filled.
for first in ("cudaMalloc", "cudaSetDevice"):
    none = Recorded("first", first, GPUMEM_SIM_TAKES="context:100M")
    none.expect("refused", "error 2" in none.output, none.output)
    none.expect("the page", "OUT OF MEMORY on device 0, not survived: making a context" in none.page)
    none.expect("simulated", none.report["simulated"])
    none.expect("one refusal", [(one["api"], one["purpose"]) for one in none.report["failed_allocations"]] ==
                [(first, "context")], none.report["failed_allocations"])

# A device that failed.
for ending, code, frees in (("well", 0, 9), ("badly", 1, 9), ("unseen", 1, 9), ("at_once", 1, 0)):
    dead = Recorded("dead", ending, GPUMEM_SIM_ERROR="700:launch:1")
    failed = dead.report["device_failed"]
    dead.expect("what it failed with", failed and (failed["status"], failed["refused_frees"]) == (700, frees), failed)
    dead.expect("when", failed and 0 < failed["time_ns"] <= dead.report["duration_ns"], failed)
    dead.expect("no leaks", dead.report["verdict"]["state"] == "live" and dead.report["leaked"]["leak"]["count"] == 0 and
                dead.report["leaked"]["live"]["count"] == 9, dead.report["verdict"])
    dead.expect("the page", "DEVICE FAILED: error 700, an illegal memory address" in dead.page and "leak" not in
                dead.page.replace("refusals", ""))
    dead.expect("how it ended", dead.report["ending"] == "failed" and dead.report["exit_code"] == code, dead.report["ending"])
    dead.expect("not judged, as a crash", dead.check.returncode == 3 and "error 700" in dead.check.stdout, dead.check)
    dead.expect("judged if asked to", dead.judged.returncode == 1, dead.judged)
    dead.expect("SARIF", dead.sarif.returncode == 3, dead.sarif)
    dead.expect("totals", dead.report["devices"][0]["live"] == dead.oracle["devices"][0]["live"] == 8 << 20, dead.oracle)

aborted = Recorded("dead", "abort", GPUMEM_SIM_ERROR="719:launch:1")
aborted.expect("both are said", "DEVICE FAILED: error 719" in aborted.page and "crashed by SIGABRT" in aborted.page)
aborted.expect("not judged", aborted.check.returncode == 3, aborted.check)
for status in (214, 710, 716, 717, 718):
    other = Recorded("dead", "badly", GPUMEM_SIM_ERROR=f"{status}:launch:1")
    other.expect("failed", other.report["device_failed"] and other.report["device_failed"]["status"] == status)
flight = Recorded("dead", "badly", GPUMEM_SIM_ERROR="700:launch:1", GPUMEM_MODE="flight", GPUMEM_FLIGHT_SIZE="16K")
flight.expect("failed", flight.report["device_failed"] and flight.check.returncode == 3, flight.check)

# Errors that say nothing of the device.
wrong = Recorded("mistakes")
wrong.expect("no failure, no leak", wrong.report["device_failed"] is None and wrong.check.returncode == 0, wrong.check)
wrong = Recorded("dead", "badly", GPUMEM_SIM_FAIL="free:2")
wrong.expect("leaks", wrong.report["device_failed"] is None and wrong.check.returncode == 1 and
             wrong.report["verdict"]["state"] == "leaks", wrong.check)
sys.exit(1 if failures else 0)
