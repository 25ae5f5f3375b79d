#!/usr/bin/env python3
"""gpumem reads small traces that demand much in part, says so, and disturbs no file that a trace names.

    bombs.py GPUMEM BOMBS

Each costs at most 256 MB (the steps are counted by the tool itself; the limit on CPU time is a watchdog). The exit code
is 3, the JSON is complete, and other traces next to a bad one are reported.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time

MEMORY = 256 << 20
# kind: the commands that must refuse it. Deep stacks cost only where all are written.
KINDS = {kind: ("check",) for kind in ("alloc", "doubling", "graph", "lanes", "multicast", "undo")}
KINDS["deep"] = ("report --json",)
failed = []


def expect(condition, text):
    if not condition:
        failed.append(text)
        print("FAIL:", text)


def run(gpumem, arguments, folder, address_space=resource.RLIM_INFINITY):
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))

    with open(os.path.join(folder, "out"), "w+b") as out:
        process = subprocess.Popen([gpumem, *arguments], stdout=out, stderr=subprocess.DEVNULL, cwd=folder,
                                   preexec_fn=limit)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return process.returncode, usage.ru_maxrss * 1024, out.read()


def try_bombs(gpumem, bombs, folder):
    for kind, commands in KINDS.items():
        subprocess.run([bombs, kind, f"{folder}/{kind}.trace"], check=True)
        for command in commands:
            code, memory, out = run(gpumem, [*command.split(), f"{kind}.trace"], folder)
            expect(code == 3, f"{kind}: {command}: exit code {code}, not 3")
            expect(memory <= MEMORY, f"{kind}: {command}: {memory >> 20} MiB")
            if "--json" in command:
                json.loads(out)


def try_among_others(gpumem, bombs, folder):
    subprocess.run([bombs, "path", f"{folder}/good.trace", "/nonexistent"], check=True)
    code, _, out = run(gpumem, ["report", "--json", "good.trace", "alloc.trace", "missing.trace", "good.trace"], folder)
    traces = json.loads(out)["traces"]
    expect(code == 3, f"one bad trace of several: exit code {code}, not 3")
    expect(len(traces) == 3 and [trace["damaged"] for trace in traces] == [0, 1, 0], "one bad trace of several")


def try_out_of_memory(gpumem, folder):
    """Memory really runs out, in the middle of a trace."""
    with open(gpumem, "rb") as file:
        if b"__asan_init" in file.read():
            print("SKIP: AddressSanitizer needs all of the address space")
            return
    traces = ["good.trace", "alloc.trace", "good.trace"]
    code, _, out = run(gpumem, ["report", "--no-limits", "--json", *traces], folder, 128 << 20)
    expect(code == 3 and len(json.loads(out)["traces"]) == 2, f"out of memory: report --json: exit code {code}")
    code, _, out = run(gpumem, ["report", "--no-limits", *traces], folder, 128 << 20)
    expect(code == 3 and out.count(b"good.trace") >= 2, f"out of memory: report: exit code {code}")
    code, _, out = run(gpumem, ["report", "--no-limits", "--json", "alloc.trace"], folder, 128 << 20)
    expect(code == 3 and out == b"", f"out of memory: one trace: exit code {code}")
    for command in (["check"], ["info"]):
        code, _, out = run(gpumem, [*command, *traces], folder, 64 << 20)
        expect(code == 3 and out.count(b"good.trace") == 2, f"out of memory: {command}: exit code {code}")


def wait_in_open(path):
    """Starts a thread that waits for a reader of the pipe; returns once it waits."""
    ids = []

    def write():
        ids.append(threading.get_native_id())
        os.close(os.open(path, os.O_WRONLY))

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    while True:
        time.sleep(0.01)
        if ids:
            with open(f"/proc/self/task/{ids[0]}/stat", encoding="ascii") as file:
                if file.read().split(")")[1].split()[0] == "S":
                    return thread


def try_pipe(gpumem, bombs, folder):
    pipe = folder + "/pipe"
    os.mkfifo(pipe)
    thread = wait_in_open(pipe)
    subprocess.run([bombs, "path", f"{folder}/pipe.trace", pipe], check=True)
    for options in ((), ("--sysroot", "/"), ("--no-local-files",)):
        run(gpumem, ["report", *options, "pipe.trace"], folder)
    thread.join(timeout=0.5)
    expect(thread.is_alive(), "a pipe that a trace names was opened")
    if thread.is_alive():
        os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
        thread.join()


def main():
    gpumem, bombs = (os.path.abspath(path) for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        try_bombs(gpumem, bombs, folder)
        try_among_others(gpumem, bombs, folder)
        try_out_of_memory(gpumem, folder)
        try_pipe(gpumem, bombs, folder)
    print("failed" if failed else "all good")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
