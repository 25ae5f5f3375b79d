#!/usr/bin/env python3
"""Phases from Python: recorded with the preload, shown by the report, and nothing without the preload.

    test_phases.py BUILD FOLDER SOURCE
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
import blocks  # noqa: E402
from report_json import with_stacks  # noqa: E402
from trace_reader import MARK  # noqa: E402

STEPS, KEPT, WORK = 8, 1 << 20, 5 << 20


def run(build, folder, source, where, **environment):
    environment = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", PYTHONPATH=source + "/python", **environment)
    done = subprocess.run([sys.executable, os.path.join(HERE, "phases.py"), folder], cwd=where, env=environment,
                          capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def phase(report, *path):
    found = [one for one in report["phases"] if one.get("path") == list(path)]
    assert len(found) == 1, (path, [one.get("path") for one in report["phases"]])
    return found[0]


def pool(one):
    return next(place for place in one["memory"] if place["where"] == "pool")


def check_report(report):
    step, forward = phase(report, "step"), phase(report, "step", "forward")
    assert step["count"] == forward["count"] == phase(report, "step", "step")["count"] == STEPS
    assert pool(step)["growth"] == STEPS * KEPT and pool(forward)["growth"] == STEPS * WORK, (step, forward)
    assert pool(step)["peak"] == STEPS * KEPT + WORK, step
    assert pool(phase(report, "step", "step"))["growth"] == -STEPS * WORK
    assert phase(report, "fails")["count"] == 1 and phase(report, "fails")["unfinished"] == 0
    assert phase(report, "thread \\xff")["count"] == 1
    owners = [(one["library"], one["pool"]) for one in report["devices"][0]["libraries"]]
    assert owners == [("application", "PyTorch")], owners  # ctypes calls the replica, not libtorch
    growing = [one for one in report["growing"] if one["is_block"]]
    assert [one["growth"] for one in growing] == [4 * KEPT], report["growing"]
    assert growing[0]["bytes"] == [KEPT * n for n in range(STEPS - 4, STEPS + 1)], growing
    frames = [frame["function"] for frame in growing[0]["stack"] if frame.get("language") == "python"]
    assert not frames or frames[0] == "keep_forever", frames
    return bool(frames)


def main():
    build, folder, source = map(os.path.abspath, sys.argv[1:])
    with tempfile.TemporaryDirectory() as where:
        assert run(build, folder, source, where) == f"alone {STEPS} forward\n"
        assert os.listdir(where) == []
        output = run(build, folder, source, where, LD_PRELOAD=build + "/preload/libgpumem.so")
        assert output == f"active {STEPS} forward\n", output
        trace = os.path.join(where, os.listdir(where)[0])
        names = [name for kind, name in blocks.Replay(trace).names if kind == MARK]
        shown = subprocess.run([build + "/report/gpumem", "report", "--json", trace], timeout=60, check=True,
                               capture_output=True).stdout
        report = with_stacks(json.loads(shown))
    assert names[:STEPS] == ["step"] * STEPS and names[STEPS + 1:] == ["17", ""], names
    named = check_report(report)
    print(f"{STEPS} steps, {STEPS} blocks that grow" + (", told by the line that keeps them" if named else ""))


if __name__ == "__main__":
    main()
