"""Runs a server until it is ready: until_ready.py -- COMMAND [ARGUMENT]...

`gpumem dry-run --until-ready` starts its command by this. What the command prints is passed on. Once a line says that it
serves, or once its processes have had nothing to do and its traces have stood still for STILL seconds, it is ended as by
Ctrl-C, and the exit code is 0: how a server ends that was told to says nothing of its memory. A command that ends by
itself has its own exit code.
"""
import glob
import os
import re
import signal
import subprocess
import sys
import threading
import time

# What servers print when they begin to answer requests.
READY = re.compile("|".join((
    r"Application startup complete",            # uvicorn: vLLM, SGLang and others
    r"The server is fired up and ready to roll",  # SGLang
    r"Started HTTPService at|Started GRPCInferenceService at",  # Triton Inference Server
    r"server is listening on http",              # llama.cpp
    r"Uvicorn running on|Running on http://|Listening at: http",  # uvicorn, Flask, gunicorn
)))
STILL = 30  # seconds
PATIENCE = (60, 20, 5)  # seconds until SIGTERM follows SIGINT, until SIGKILL follows that, and after it
BUSY = 0.05  # of a processor: event loops wake up now and then
TICKS = os.sysconf("SC_CLK_TCK")


class Passing(threading.Thread):
    """Passes on what comes out of a pipe, and notes when a line of it says that the command serves."""

    def __init__(self, pipe, to, ready):
        super().__init__(daemon=True)
        self.pipe, self.to, self.ready = pipe, to, ready
        self.start()

    def run(self):
        line = ""
        while True:
            piece = os.read(self.pipe.fileno(), 65536)
            if not piece:
                return
            sent = 0
            try:
                while sent < len(piece):
                    sent += os.write(self.to, piece[sent:])
            except OSError:
                pass  # nobody reads it any more: the command must not wait for that
            lines = (line + piece.decode("utf-8", "replace")).split("\n")
            line = lines[-1][-4096:]
            if any(READY.search(one) for one in lines):
                self.ready.set()


def of_this_run():
    """The other processes that inherited the environment of this dry run, and what they started: a title that a process
    gives itself can lie where its environment was, as of the engines and workers of vLLM."""
    mark = b"GPUMEM_DRY_STATUS=" + os.fsencode(os.environ.get("GPUMEM_DRY_STATUS", ""))
    parents, found = {}, {os.getpid()}
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/stat", "rb") as file:
                parents[int(process)] = int(file.read().rpartition(b")")[2].split()[1])
            with open(f"/proc/{process}/environ", "rb") as file:
                if mark in file.read().split(b"\0"):
                    found.add(int(process))
        except OSError:
            pass  # it has ended, or is another user's
    for process in parents:
        line = [process]
        while line[-1] in parents and line[-1] not in found:
            line.append(parents[line[-1]])
        if line[-1] in found:
            found.update(line)
    return found - {os.getpid()}


def work_done():
    """Ticks of processors that all processes have used, and whether a thread of theirs waits for one."""
    ticks, is_waiting = 0, False
    for process in of_this_run():
        try:
            for task in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{task}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
                is_waiting |= fields[0] in (b"R", b"D")
                ticks += int(fields[11]) + int(fields[12])
        except (OSError, IndexError, ValueError):
            pass  # it has ended
    return ticks, is_waiting


def traces():
    pattern = re.sub(r"%q\{[^}]*\}|%.", lambda found: "%" if found[0] == "%%" else "*",
                     os.environ.get("GPUMEM_OUTPUT", ""))
    found = []
    for path in sorted(glob.glob(pattern)):
        try:
            status = os.stat(path)
            found.append((path, status.st_size, status.st_mtime_ns))
        except OSError:
            pass
    return found


class Stillness:
    """For how long nothing has happened, as far as one can see from outside."""

    def __init__(self):
        self.since, self.ticks, self.seen, self.waits, self.looks = time.monotonic(), 0, [], 0, 0

    def look(self):
        """Whether all has been still for long."""
        now, seen, (ticks, is_waiting) = time.monotonic(), traces(), work_done()
        self.looks += 1
        self.waits += is_waiting
        is_busy = ticks - self.ticks > max(1.0, BUSY * (now - self.since) * TICKS) or self.waits > 1 + self.looks // 5
        if is_busy or not seen or seen != self.seen or ticks < self.ticks:
            self.since, self.ticks, self.seen, self.waits, self.looks = now, ticks, seen, 0, 0
        return now - self.since >= STILL


def end(process):
    """As a terminal does at Ctrl-C: to all of the group."""
    for number, seconds in zip((signal.SIGINT, signal.SIGTERM, signal.SIGKILL), PATIENCE):
        for other in of_this_run():
            try:
                if number == signal.SIGKILL or os.getpgid(other) == os.getpgrp():
                    os.kill(other, number)
            except OSError:
                pass
        try:
            process.wait(seconds)
            return
        except subprocess.TimeoutExpired:
            pass


def run(command):
    ready, stillness = threading.Event(), Stillness()
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        print(f"gpumem: {command[0]}: {error.strerror}", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: process.send_signal(number))
    signal.signal(signal.SIGINT, lambda *_: None)  # of a terminal: the command has it, too
    passing = [Passing(process.stdout, 1, ready), Passing(process.stderr, 2, ready)]
    why = None
    while process.poll() is None and not why:
        if ready.wait(0.5):
            why = "it says that it serves"
        elif stillness.look():
            why = f"nothing has happened for {STILL} seconds"
    if why and process.poll() is None:
        print(f"gpumem: {why}, and is ended", file=sys.stderr, flush=True)
        end(process)
    code = process.wait()
    for one in passing:
        one.join(5)  # what it started may hold the pipe
    return 0 if why else code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(run(sys.argv[sys.argv.index("--") + 1:]))
