#!/usr/bin/env python3
"""The flight recorder under load: the file does not grow, and what is alive is exact.

    flight.py BUILD [--pairs N] [--kills N]

churn allocates and frees in 4 threads and keeps some. With areas far smaller than the history, the following must hold:
  - at the end every kept allocation is live, nothing else, and the trace is complete and no larger than its bound;
  - killed at any moment, the live allocations are those alive then, except for the call that each thread was in;
  - read while it runs, the same holds of the moment of reading.
"""
import argparse
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
from report_json import with_stacks  # noqa: E402

THREADS, KEPT_SIZE = 4, 512
problems = 0


def expect(good, text):
    global problems
    if not good:
        problems += 1
        print("FAIL: " + text, file=sys.stderr)


class Run:
    """churn under the preload, in a folder of its own."""

    def __init__(self, build, folder, kept, pairs, size, ring="16K"):
        self.build, self.size, self.ring = build, size, ring
        self.trace = os.path.join(folder, "t.trace")
        self.accounts = os.path.join(folder, "accounts")
        for name in (self.trace, self.accounts):
            if os.path.exists(name):
                os.unlink(name)
        environment = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", LD_PRELOAD=build + "/preload/libgpumem.so",
                           GPUMEM_MODE="flight", GPUMEM_FLIGHT_SIZE=str(size), GPUMEM_RING=ring,
                           GPUMEM_OUTPUT=self.trace, GPUMEM_SIM_MEMORY="8G")
        self.process = subprocess.Popen([build + "/tests/churn", self.accounts, str(kept), str(pairs)], env=environment)

    def sums(self):
        """keeps begun, keeps done, allocs begun, allocs done, frees begun, frees done: of all threads."""
        with open(self.accounts, "rb") as file:
            numbers = struct.unpack("<32Q", file.read(256))
        return [sum(numbers[i::8]) for i in range(6)]

    def wait_until_full(self):
        """Returns when the area has certainly been filled more than once."""
        while not (os.path.exists(self.accounts) and os.path.getsize(self.accounts) == 4096 and self.sums()[4] > self.size // 4):
            time.sleep(0.001)

    def report(self):
        done = subprocess.run([self.build + "/report/gpumem", "report", "--json", self.trace], capture_output=True, check=False)
        expect(done.returncode == 0, f"report: {done.returncode} {done.stderr.decode()}")
        return with_stacks(json.loads(done.stdout))

    def bound(self):
        """docs/trace-format.md: header and preamble, the area, 5 rings, tables that a small program needs."""
        return self.size + 5 * (int(self.ring[:-1]) * 1024 + 8192) + (1 << 20)


def live(report, function):
    """Bytes and number of live allocations made in a function of churn.c."""
    leaks = [leak for leak in report["leaks"] if any(f["function"].split("(")[0] == function for f in leak["stack"])]
    return sum(leak["bytes"] for leak in leaks), sum(leak["count"] for leak in leaks)


def check(what, run, report, before, after):
    """`before` and `after`: sums read before and after the moment that the report describes."""
    size, kept = live(report, "keep_allocation")
    expect(before[1] <= kept <= after[0], f"{what}: {kept} kept, not {before[1]} to {after[0]}")
    expect(size == kept * KEPT_SIZE, f"{what}: {size} bytes in {kept}")
    taken = live(report, "allocate")[1]
    low, high = before[3] - after[4], after[2] - before[5]
    expect(low <= taken <= high, f"{what}: {taken} taken, not {low} to {high}")
    expect(report["lost"] == 0 and report["damaged"] == 0 and not report["truncated"],
           f"{what}: lost {report['lost']}, damaged {report['damaged']}")
    if report["ending"] != "running":  # then rings are read one after the other
        expect(report["unknown_frees"] == 0 and report["lost_frees"] == 0 and report["malformed"] == 0, f"{what}: unsound")
    expect(os.path.getsize(run.trace) <= run.bound(), f"{what}: {os.path.getsize(run.trace)} bytes")


def ended(build, folder, pairs):
    many = pairs > 1000000
    run = Run(build, folder, 12500, pairs, 15 << 20 if many else 4 << 20, ring="384K" if many else "16K")
    expect(run.process.wait() == 0, "churn fails")
    report = run.report()
    expect(report["complete"], "incomplete")
    expect(report["overwritten"] is not None, "nothing was overwritten")
    check("at the end", run, report, run.sums(), run.sums())
    expect(live(report, "keep_allocation")[1] == THREADS * 12500, f"{live(report, 'keep_allocation')} kept")
    print(f"{report['events']} of {(report['overwritten'] or {}).get('events', 0) + report['events']} events kept, "
          f"{os.path.getsize(run.trace)} bytes")


def killed(build, folder, seed):
    chance = random.Random(seed)
    size = chance.choice([256 << 10, 1 << 20])
    run = Run(build, folder, 300, 0, size)
    run.wait_until_full()
    time.sleep(chance.random() * 0.05)  # any moment will do
    run.process.send_signal(signal.SIGKILL)
    run.process.wait()
    report = run.report()
    expect(report["ending"] == "cut", report["ending"])
    expect(report["overwritten"] is not None, "nothing was overwritten")
    check(f"killed, seed {seed}", run, report, run.sums(), run.sums())


def running(build, folder, times):
    run = Run(build, folder, 300, 0, 256 << 10)
    run.wait_until_full()
    for _ in range(times):
        before = run.sums()
        report = run.report()
        expect(report["ending"] == "running", report["ending"])
        check("running", run, report, before, run.sums())
    run.process.kill()
    run.process.wait()


def main():
    options = argparse.ArgumentParser()
    options.add_argument("build")
    options.add_argument("--pairs", type=int, default=100000, help="of each thread")
    options.add_argument("--kills", type=int, default=10)
    arguments = options.parse_args()
    build = os.path.abspath(arguments.build)
    with tempfile.TemporaryDirectory() as folder:
        ended(build, folder, arguments.pairs)
        for seed in range(arguments.kills):
            killed(build, folder, seed)
        running(build, folder, arguments.kills)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
