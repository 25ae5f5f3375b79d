#!/usr/bin/env python3
"""gpumem reads small traces that demand much in part, says so, and disturbs no file that a trace names.

    bombs.py GPUMEM BOMBS

Each costs at most 256 MB and 2 s, also where its file is padded to 2 MB (the tool itself counts the steps; the limit on
CPU time is a watchdog). What demands too much makes the exit code 3, the JSON is complete, and other traces next to a
bad one are reported. What only looks like a bomb is read to its end.
"""
import json
import lzma
import os
import resource
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

MEMORY = 256 << 20
SECONDS = 2 * float(os.environ.get("GPUMEM_TEST_SLOWNESS", "1"))
PADDING = "2000000"
# Those that must be refused, and a command that costs most.
REFUSED = {
    "check": ("alloc", "graph", "lanes", "roads", "multicast", "undo", "pools", "times", "claims"),
    "report --json": ("deep", "phases"),
}
# Those that would cost much, and do not.
READ = ("doubling", "collisions", "branchless", "ranges", "crowd", "environment")
SOUND = ("loop", "launches")
failed = []


def expect(condition, text):
    if not condition:
        failed.append(text)
        print("FAIL:", text)


def run(gpumem, arguments, folder, address_space=resource.RLIM_INFINITY):
    """The exit code and the output. Other work on the machine adds to a run's CPU time, so the least of three counts."""
    seconds = []
    while len(seconds) < 3 and (not seconds or min(seconds) > SECONDS):
        code, out, used = run_once(gpumem, arguments, folder, address_space)
        seconds.append(used)
    expect(min(seconds) <= SECONDS, f"{arguments}: {min(seconds):.1f} s")
    return code, out


def run_once(gpumem, arguments, folder, address_space):
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))

    with open(os.path.join(folder, "out"), "w+b") as out:
        process = subprocess.Popen([gpumem, *arguments], stdout=out, stderr=subprocess.DEVNULL, cwd=folder,
                                   preexec_fn=limit)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        expect(usage.ru_maxrss * 1024 <= MEMORY, f"{arguments}: {usage.ru_maxrss >> 10} MiB")
        return process.returncode, out.read(), usage.ru_utime + usage.ru_stime


def try_bombs(gpumem, bombs, folder):
    for command, kinds in REFUSED.items():
        for kind in kinds:
            subprocess.run([bombs, kind, f"{folder}/{kind}.trace", PADDING], check=True)
            code, out = run(gpumem, [*command.split(), f"{kind}.trace"], folder)
            expect(code == 3, f"{kind}: {command}: exit code {code}, not 3")
            if "--json" in command:
                json.loads(out)
            code, out = run(gpumem, ["ask", f"{kind}.trace", "site", "00000000"], folder)
            expect(code in (2, 3) and "error" in json.loads(out), f"{kind}: ask site: exit code {code}")


def try_lesser_bombs(gpumem, bombs, folder):
    for kind in READ:
        subprocess.run([bombs, kind, f"{folder}/{kind}.trace", PADDING], check=True)
        code, _ = run(gpumem, ["check", f"{kind}.trace"], folder)
        expect(code in (0, 1, 4), f"{kind}: check: exit code {code}")


def try_sound(gpumem, bombs, folder):
    """However much there is for each byte: a recorder may have written it."""
    for kind in SOUND:
        subprocess.run([bombs, kind, f"{folder}/{kind}.trace"], check=True)
        code, limited = run(gpumem, ["report", "--json", f"{kind}.trace"], folder)
        _, free = run(gpumem, ["report", "--json", "--no-limits", f"{kind}.trace"], folder)
        expect(code == 0 and limited == free, f"{kind}: report --json: exit code {code}")


def try_among_others(gpumem, bombs, folder):
    for good in ("good.trace", "other.trace"):
        subprocess.run([bombs, "path", f"{folder}/{good}", "/nonexistent"], check=True)
    code, out = run(gpumem, ["report", "--json", "good.trace", "alloc.trace", "missing.trace", "other.trace"], folder)
    traces = json.loads(out)["traces"]
    expect(code == 3, f"one bad trace of several: exit code {code}, not 3")
    expect(len(traces) == 3 and [trace["damaged"] for trace in traces] == [0, 1, 0], "one bad trace of several")


def try_out_of_memory(gpumem, folder):
    """Memory really runs out, in the middle of a trace."""
    with open(gpumem, "rb") as file:
        if b"__asan_init" in file.read():
            print("SKIP: AddressSanitizer needs all of the address space")
            return
    traces = ["good.trace", "alloc.trace", "other.trace"]
    code, out = run(gpumem, ["report", "--no-limits", "--json", *traces], folder, 128 << 20)
    expect(code == 3 and len(json.loads(out)["traces"]) == 2, f"out of memory: report --json: exit code {code}")
    code, out = run(gpumem, ["report", "--no-limits", *traces], folder, 128 << 20)
    expect(code == 3 and b"4.00 KiB leaked" in out, f"out of memory: report: exit code {code}")
    code, out = run(gpumem, ["report", "--no-limits", "--json", "alloc.trace"], folder, 128 << 20)
    expect(code == 3 and out == b"", f"out of memory: one trace: exit code {code}")
    for command in (["check"], ["info"]):
        code, out = run(gpumem, [*command, *traces], folder, 64 << 20)
        expect(code == 3 and out.count(b"good.trace") == out.count(b"other.trace") == 1, f"out of memory: {command}: exit code {code}")


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


def elf_with_section(path, name, flags, content):
    """A shared library of one section, of whose address a trace has a frame."""
    names = b"\0.shstrtab\0" + name.encode() + b"\0"
    names_at, content_at = 120, 120 + (len(names) + 7) // 8 * 8
    sections_at = content_at + (len(content) + 7) // 8 * 8
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, sections_at, 0, 64, 56, 1, 64, 3, 1)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 0x2000, 0x2000, 4096)
    section = struct.Struct("<IIQQQQIIQQ").pack
    with open(path, "wb") as file:
        file.write(head + load + names)
        file.seek(content_at)
        file.write(content)
        file.seek(sections_at)
        file.write(bytes(64) + section(1, 3, 0, 0, names_at, len(names), 0, 0, 1, 0) +
                   section(11, 1, flags, 0, content_at, len(content), 0, 0, 8, 0))


def packed_zeros(packer, size):
    block = bytes(1 << 20)
    return b"".join(packer.compress(block) for _ in range(size >> 20)) + packer.flush()


def try_packed_modules(gpumem, bombs, folder):
    """Debug info of a module that unpacks to a hundred times what it may, in each form that is unpacked."""
    size = 512 << 20
    zeros = packed_zeros(zlib.compressobj(1), size)
    modules = {
        ".debug_info": (0x800, struct.pack("<IIQQ", 1, 0, size, 1) + zeros),
        ".zdebug_info": (0, b"ZLIB" + struct.pack(">Q", size) + zeros),
        ".gnu_debugdata": (0, packed_zeros(lzma.LZMACompressor(preset=0), size)),
    }
    for name, (flags, content) in modules.items():
        module, trace = folder + "/module" + name, f"module{name}.trace"
        elf_with_section(module, name, flags, content)
        subprocess.run([bombs, "path", f"{folder}/{trace}", module], check=True)
        code, out = run(gpumem, ["report", trace], folder)
        expect(code == 0 and b"unpacks to too much" in out, f"{name}: report: exit code {code}, {out.decode()}")


def main():
    gpumem, bombs = (os.path.abspath(path) for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        try_bombs(gpumem, bombs, folder)
        try_lesser_bombs(gpumem, bombs, folder)
        try_sound(gpumem, bombs, folder)
        try_among_others(gpumem, bombs, folder)
        try_out_of_memory(gpumem, folder)
        try_pipe(gpumem, bombs, folder)
        try_packed_modules(gpumem, bombs, folder)
    print("failed" if failed else "all good")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
