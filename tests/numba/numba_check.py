#!/usr/bin/env python3
"""Runs Numba's scenarios under gpumem and compares the report with the simulator's own totals.

    numba_check.py BUILD

One line per scenario, PASS or FAIL with figures; exit code 1 if any failed. Run by run_numba.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import framework_check  # noqa: E402
from framework_check import t  # noqa: E402

SCENARIOS = os.path.join(HERE, "numba_scenarios.py")
build = os.path.abspath(sys.argv[1])


def command(name):
    return [sys.executable, SCENARIOS, name]


def record(name, **environment):
    return framework_check.record(build, command(name), dict(environment, LD_LIBRARY_PATH=build + "/sim"))


def frees_before(trace, mark):
    """Events of linear memory before the mark."""
    frees = 0
    for record_, _ in trace.records():
        if record_.type == t.MARK and trace.string(record_.aux) == mark:
            return frees
        frees += record_.type == t.FREE
    raise AssertionError(f"no mark {mark}")


def totals(name):
    return framework_check.totals(build, command(name), {})


def late_frees():
    late = frees_before(record("late_frees")[1], "queued")
    at_once = frees_before(record("late_frees", NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT="0")[1], "queued")
    problems = [] if late < at_once == 7 else [f"{late} frees of 7 with the queue, {at_once} without"]
    return problems, f"{late} of 7 arrays freed with the queue, {at_once} without"


def place():
    return framework_check.place(record("kept_results")[0], SCENARIOS, "Numba")


def main():
    checks = [(name, lambda name=name: totals(name)) for name in ("arrays", "pinned", "managed", "late_frees",
                                                                  "kept_results", "refused")]
    return framework_check.run_all([*checks, ("late_frees/queue", late_frees), ("kept_results/place", place)])


if __name__ == "__main__":
    sys.exit(main())
