#!/usr/bin/env python3
"""A long trace takes no memory of its size, whatever is asked about it.

    test_large.py GPUMEM EXPORT_TRACES

The trace has three million events of a training loop, 60 MB. Each command runs by itself, and its largest resident
memory is held against a bound. A command that kept the file, or each life in it, would need 60 to 400 MiB.
"""
import os
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


def main():
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "large.trace")
        subprocess.run([export_traces, "training", trace, "3000000"], check=True)
        for words, bound in ASKED:
            used = resident(*words, trace) / MIB
            print(f"{' '.join(words)}: {used:.0f} MiB, {bound} at most")
            failed = failed or used > bound
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
