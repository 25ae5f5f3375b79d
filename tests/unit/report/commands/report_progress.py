#!/usr/bin/env python3
"""What `gpumem report` tells a reader at a terminal while it works.

    report_progress.py GPUMEM WAIT_AFTER_FORK SOURCE

The process that reads the trace is held up by WAIT_AFTER_FORK until the test lets it go: the line appears, says what is
read, is gone in the end, and stdout is what it is without.
"""
import os
import pty
import select
import subprocess
import sys

PATIENCE = 60 # seconds until the line is given up
problems = 0


def expect(good, text):
    global problems
    if not good:
        problems += 1
        print("FAIL: " + text, file=sys.stderr)


def read_terminal(terminal):
    try:
        return os.read(terminal, 4096)
    except OSError: # nobody has the other end open any more
        return b""


def start(gpumem, library, trace, stderr):
    """The process, and the descriptor whose closing lets its reader go."""
    waits, lets = os.pipe()
    environment = dict(os.environ, LD_PRELOAD=library, WAIT_FD=str(waits))
    process = subprocess.Popen([gpumem, "report", trace], stdout=subprocess.PIPE, stderr=stderr, env=environment,
                               pass_fds=[waits])
    os.close(waits)
    return process, lets


def main():
    gpumem, library, source = sys.argv[1:]
    trace = os.path.join(source, "tests/corpus", sorted(
        name for name in os.listdir(os.path.join(source, "tests/corpus")) if name.endswith(".trace"))[0])
    plain = subprocess.run([gpumem, "report", trace], capture_output=True, check=True)
    terminal, other_end = pty.openpty()
    process, lets = start(gpumem, library, trace, other_end)
    os.close(other_end)
    shown = b""
    while b" s" not in shown and select.select([terminal], [], [], PATIENCE)[0]:
        shown += read_terminal(terminal)
    expect(b"reading " + os.path.basename(trace).encode() in shown, f"no progress: {shown!r}")
    os.close(lets)
    out = process.communicate()[0]
    while piece := read_terminal(terminal):
        shown += piece
    last = shown.decode().replace("\r\n", "\n").rsplit("\n", 1)[-1].rstrip("\r").rsplit("\r", 1)[-1]
    expect(not last.strip(), f"the line is still there: {shown!r}")
    expect(out == plain.stdout, "the report is another one while progress is told")
    expect(process.returncode == plain.returncode, f"exit code {process.returncode}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
