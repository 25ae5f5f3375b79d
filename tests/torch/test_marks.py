#!/usr/bin/env python3
"""Marks: the recorder keeps their names and their order; without the preload they do nothing.

    test_marks.py BUILD PROGRAM
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import blocks  # noqa: E402
from trace_reader import MARK, RANGE_POP, RANGE_PUSH  # noqa: E402

EXPECTED = (
    [(RANGE_PUSH, "outer"), (MARK, ""), (MARK, ""), (MARK, "x" * 4096), (MARK, "by pointer")]
    + [(MARK, "step")] * 1000
    + [(RANGE_POP, ""), (RANGE_PUSH, "thread"), (MARK, "in the thread"), (RANGE_POP, ""), (RANGE_POP, "")]
)


def run(program, folder, **environment):
    done = subprocess.run([program], cwd=folder, env=dict(os.environ, **environment), capture_output=True, text=True,
                          timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", ""), done
    return os.listdir(folder)


def main():
    build, program = map(os.path.abspath, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        assert run(program, folder) == [], "a file without the preload"
        traces = run(program, folder, LD_PRELOAD=build + "/preload/libgpumem.so")
        assert len(traces) == 1, traces
        replay = blocks.Replay(os.path.join(folder, traces[0]))
    assert replay.names == EXPECTED, f"{len(replay.names)} records: {replay.names[:8]} ... {replay.names[-8:]}"
    assert not any(replay.trace.counters[:4]), replay.trace.counters
    steps = sum(name == "step" for _, name in replay.names)
    assert replay.trace.strings.count(b"step") == 1, "a name is kept once"
    print(f"{len(replay.names)} marks and ranges, {steps} of one name")


if __name__ == "__main__":
    main()
