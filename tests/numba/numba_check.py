#!/usr/bin/env python3
"""Runs Numba's scenarios under gpumem and holds the report against the simulator's own totals.

    numba_check.py BUILD

One line per scenario, PASS or FAIL with figures; exit code 1 if any failed. Run by run_numba.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..", "torch")]
import run as e2e  # noqa: E402
import trace_reader as t  # noqa: E402

SCENARIOS = os.path.join(HERE, "numba_scenarios.py")
build = os.path.abspath(sys.argv[1])


def record(name, **environment):
    """The report of one run, and its trace read by trace_reader."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", LD_PRELOAD=build + "/preload/libgpumem.so",
                           **environment)
        subprocess.run([sys.executable, SCENARIOS, name], cwd=folder, env=environment, check=True,
                       stdout=subprocess.DEVNULL)
        [trace] = glob.glob(folder + "/*.trace")
        shown = subprocess.check_output([build + "/report/gpumem", "report", "--json", trace])
        return json.loads(shown), t.Trace(trace)


def frees_before(trace, mark):
    """Of linear memory, until the mark."""
    frees = 0
    for record_, _ in trace.records():
        if record_.type == t.MARK and trace.string(record_.aux) == mark:
            return frees
        frees += record_.type == t.FREE
    raise AssertionError(f"no mark {mark}")


def totals(name):
    """Same output both ways, all totals the oracle's."""
    good = e2e.hold(build, [sys.executable, SCENARIOS, name], {}, leaks=False)
    return ([] if good else list(e2e.problems)), "output equal, totals those of the oracle"


def late_frees():
    late = frees_before(record("late_frees")[1], "queued")
    at_once = frees_before(record("late_frees", NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT="0")[1], "queued")
    problems = [] if late < at_once == 7 else [f"{late} frees of 7 with the queue, {at_once} without"]
    return problems, f"{late} of 7 arrays freed with the queue, {at_once} without"


def place():
    report, _ = record("kept_results")
    owner = report["devices"][0]["at_peak"]["owners"][0]
    with open(SCENARIOS, encoding="utf-8") as file:
        line = next(number for number, text in enumerate(file, 1) if "the report must name" in text)
    frames = [(os.path.basename(frame["file"] or ""), frame["line"]) for frame in owner["stack"]]
    library = max(report["devices"][0]["libraries"], key=lambda row: row["at_peak"]["bytes"])["library"]
    problems = [] if (os.path.basename(SCENARIOS), line) in frames else [f"line {line} is not among {frames}"]
    if library != "Numba":
        problems.append(f"not Numba's but {library}'s")
    return problems, f"largest owner {owner['bytes']} bytes in {owner['count']}, line {line}, library {library}"


def main():
    failed = False
    checks = [(name, lambda name=name: totals(name)) for name in ("arrays", "pinned", "managed", "late_frees",
                                                                  "kept_results", "refused")]
    for name, check in [*checks, ("late_frees/queue", late_frees), ("kept_results/place", place)]:
        problems, figures = check()
        failed |= bool(problems)
        print(f"{'FAIL' if problems else 'PASS'} {name}: {figures}", flush=True)
        for problem in problems:
            print("    ", problem)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
