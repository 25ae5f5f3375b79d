"""The loop of the benchmarks in Python: pairs of cuMemAlloc and cuMemFree from 8 lines at a given depth.

    loop.py PAIRS DEPTH

Prints ns per event, wall time. Most of it is the cost of ctypes: the cost of Python stacks is the difference between a
run with them and one without.
"""
import ctypes
import sys
import time

driver = ctypes.CDLL("libcuda.so.1")
allocate, free = driver.cuMemAlloc_v2, driver.cuMemFree_v2
allocate.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
free.argtypes = (ctypes.c_uint64,)


def begin():
    context = ctypes.c_void_p()
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0


def work(pairs):
    value = ctypes.c_uint64()
    address = ctypes.addressof(value)
    started = time.perf_counter_ns()
    for _ in range(pairs // 8):
        allocate(address, 64)
        free(value.value)
        allocate(address, 80)
        free(value.value)
        allocate(address, 96)
        free(value.value)
        allocate(address, 112)
        free(value.value)
        allocate(address, 128)
        free(value.value)
        allocate(address, 144)
        free(value.value)
        allocate(address, 160)
        free(value.value)
        allocate(address, 176)
        free(value.value)
    return (time.perf_counter_ns() - started) / (pairs // 8 * 16)


def down(depth, pairs):
    return down(depth - 1, pairs) if depth > 1 else work(pairs)


def main():
    pairs, depth = int(sys.argv[1]), int(sys.argv[2])
    begin()
    below = max(depth - 3, 1)  # the module's, main's and work's frames count too
    down(below, 1000)
    print(f"{down(below, pairs):.2f}")


main()
