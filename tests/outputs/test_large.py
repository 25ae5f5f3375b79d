#!/usr/bin/env python3
"""A long trace takes no memory of its size, whatever is asked about it.

    test_large.py GPUMEM EXPORT_TRACES

The trace has three million events of a training loop, 60 MB. Each command runs by itself, and its largest resident
memory is held against a bound. A command that kept the file, or each life in it, would need 60 to 400 MiB.

A snapshot of PyTorch's takes no more than one and a half times its size, though a dict of Python is large and what is
pickled names it by a number: the reader takes frames, stacks and events out of it while it goes.
"""
import multiprocessing
import os
import pickle
import random
import subprocess
import sys
import tempfile

gpumem, export_traces = map(os.path.abspath, sys.argv[1:3])
MIB = 1 << 20
ASKED = (
    (("report",), 50),
    (("report", "-v"), 50),
    (("summarize",), 50),
    (("report", "--at", "1s"), 60),
    (("report", "--thread", "0"), 60),
    (("export", "-f", "collapsed", "--at", "1s"), 60),
)


def resident(*words):
    """The most memory that the command had, in bytes."""
    with subprocess.Popen([gpumem, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"FAIL: {' '.join(words)}: exit code {process.returncode}")
    return usage.ru_maxrss * 1024


def write_snapshot(path, events):
    """As PyTorch writes them: each event has a list of its own, of frames that it shares with others."""
    choice = random.Random(1)
    frames = [{"name": f"f{i}", "filename": f"/app/layer{i % 50}.py", "line": i} for i in range(3000)]
    stacks = [choice.choices(frames, k=40) for _ in range(500)]
    history, live = [], []
    for i in range(events):
        event = {"action": "alloc", "addr": 0x7f0000000000 + 4096 * i, "size": 4096, "stream": 0, "time_us": 10 * i,
                 "frames": list(choice.choice(stacks))}
        if len(live) > 3000:
            event |= {"action": "free_completed", "addr": live.pop(choice.randrange(len(live)))}
        else:
            live.append(event["addr"])
        history.append(event)
    with open(path, "wb") as file:
        pickle.dump({"segments": [], "device_traces": [history]}, file)


def main():
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "large.trace")
        subprocess.run([export_traces, "training", trace, "3000000"], check=True)
        for words, bound in ASKED:
            used = resident(*words, trace) / MIB
            print(f"{' '.join(words)}: {used:.0f} MiB, {bound} at most")
            failed = failed or used > bound
        snapshot = os.path.join(folder, "large.pickle")
        writer = multiprocessing.Process(target=write_snapshot, args=(snapshot, 200000))
        writer.start() # a process of its own: a child begins with the memory that its parent has
        writer.join()
        used, bound = resident("report", snapshot) / MIB, 1.5 * os.path.getsize(snapshot) / MIB
        print(f"report of a snapshot: {used:.0f} MiB, {bound:.0f} at most")
        failed = failed or used > bound
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
