#!/usr/bin/env python3
"""Physical memory that comes and goes under a live pool: test_sleep.py BUILD [FOLDER]

On the replica in FOLDER, else on the PyTorch of this interpreter. What must hold:
  - all totals are the simulator's own, whether the program ends awake or asleep;
  - asleep, the blocks stay alive and the device holds nothing for them; awake, it holds what the pool reserved;
  - the peak is that of one waking, however often it slept.
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "e2e")]
import blocks  # noqa: E402
import run as e2e  # noqa: E402
import trace_reader as t  # noqa: E402

failures = []


def expect(condition, text):
    print(("ok   " if condition else "FAIL ") + text)
    if not condition:
        failures.append(text)


class AtMarks(blocks.Replay):
    """Remembers (mark, bytes of live blocks, bytes mapped) at each mark."""

    def event(self, record, detail):
        super().event(record, detail)
        if record.type == t.MARK:
            pool = self.pool(0)
            self.__dict__.setdefault("marks", []).append(
                (self.trace.string(record.aux), pool.allocated, pool.reserved))


def record(build, command, environment):
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", GPUMEM_OUTPUT=folder + "/trace",
                           LD_PRELOAD=build + "/preload/libgpumem.so", **environment)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        allocated, reserved = map(int, done.stdout.split()[1:3])
        shown = subprocess.run([build + "/report/gpumem", "report", "--json", folder + "/trace"],
                               capture_output=True, text=True, check=False)
        expect(shown.returncode == 0, f"report: exit code {shown.returncode} {shown.stderr}")
        return allocated, reserved, json.loads(shown.stdout), AtMarks(folder + "/trace")


def check(build, end, environment):
    command = [sys.executable, os.path.join(HERE, "sleep_mode.py"), build + "/tests/torch/libsleep_allocator.so", end]
    expect(e2e.hold(build, command, environment, leaks=False), f"{end}: output and totals are the oracle's")
    allocated, reserved, report, replay = record(build, command, environment)
    vmm = report["devices"][0]["kinds"]["vmm"]
    [told] = report["framework_blocks"]
    expect(told["live"] == allocated, f"{end}: {allocated} bytes of blocks live ({told['live']})")
    live = 0 if end == "asleep" else reserved
    expect(vmm["live"] == live, f"{end}: {live} bytes are held on the device ({vmm['live']})")
    expect(vmm["peak"] == reserved, f"{end}: at most {reserved} bytes ever were ({vmm['peak']})")
    states = replay.marks
    expect(states == [("asleep", allocated, 0), ("awake", allocated, reserved)] * 3, f"{end}: at the marks {states}")
    expect(not replay.problems, f"{end}: no contradiction in the events {replay.problems[:2]}")


def main():
    build = os.path.abspath(sys.argv[1])
    environment = {"REPLICA": os.path.abspath(sys.argv[2])} if len(sys.argv) > 2 else {}
    for end in ("awake", "asleep"):
        check(build, end, environment)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
