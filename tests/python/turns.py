"""Stacks that take turns: each allocation must be on the line that made it.

    turns.py BUILD          runs the program below under the preload and reads its trace
    turns.py BUILD program  the program: the size of an allocation identifies its line

The recorder remembers whole stacks where paths alternate, and guesses which one comes next. So here they come in an
unpredictable order, from lines that differ only in their number, through callbacks from C, and by code that is created
again and again at the place of the last.
"""
import ctypes
import functools
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS = 6000
FIRST_SIZE = 4096


def program():
    driver = ctypes.CDLL("libcuda.so.1")
    context, address = ctypes.c_void_p(), ctypes.c_uint64()
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0

    def allocate(size):
        assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0
        assert driver.cuMemFree_v2(address) == 0

    def make(number, through_c, lines_before):
        """A function at one of three lines; the size of its allocation identifies the line."""
        text = "\n" * lines_before + (
            f"def path_{number}_{lines_before}(allocate):\n"
            f"    {'sorted([1], key=lambda _: ' if through_c else '('}allocate({FIRST_SIZE + 16 * number + lines_before}))\n")
        names = {}
        exec(compile(text, "turns", "exec"), names)
        return names[f"path_{number}_{lines_before}"]

    def deeper(levels, function):
        return deeper(levels - 1, function) if levels else function(allocate)

    def through_c(levels, function):
        return functools.reduce(lambda _, __: deeper(levels, function), [0, 0])

    draw = random.Random(7)
    paths = [make(number, number % 2, number % 3) for number in range(12)]
    for _ in range(ROUNDS):
        kind = draw.random()
        function = make(draw.randrange(12), draw.randrange(2), draw.randrange(3)) if kind < 0.1 else draw.choice(paths)
        (through_c if kind < 0.5 else deeper)(draw.choice((0, 0, 1, 5)), function)


def check(build):
    sys.path.insert(0, os.path.join(HERE, "..", "torch"))
    import trace_reader
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", LD_PRELOAD=build + "/preload/libgpumem.so",
                           GPUMEM_OUTPUT=folder + "/turns.trace")
        subprocess.run([sys.executable, __file__, build, "program"], env=environment, check=True, timeout=300)
        trace = trace_reader.Trace(folder + "/turns.trace")
        checked = 0
        for record, _ in trace.records():
            if record.type != trace_reader.ALLOC or record.size < FIRST_SIZE:
                continue
            number, line = divmod(record.size - FIRST_SIZE, 16)
            frames = list(trace.script_frames(record.stack))
            names = [(function, at) for _, function, at in frames if function.startswith("path_")]
            wanted = f"path_{number}_{line}"
            if not names or {name.split(".")[0] for name, _ in names} != {wanted} or names[0][1] != line + 2:
                sys.exit(f"FAIL: an allocation of {wanted} is on {frames}")
            checked += 1
    if checked < ROUNDS:
        sys.exit(f"FAIL: {checked} allocations of {ROUNDS} or more")
    print(f"ok: {checked} allocations, each on its line")


if len(sys.argv) > 2:
    program()
else:
    check(os.path.abspath(sys.argv[1]))
