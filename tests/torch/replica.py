#!/usr/bin/env python3
"""Drives the replica of PyTorch's allocator as a program would, and prints its answers.

    replica.py FOLDER EVENTS    FOLDER holds libc10_cuda.so; EVENTS of random churn

It prints the same with and without the preload, which is one of the tests.
"""
import ctypes
import gc
import os
import sys
import threading

MIB = 1 << 20
# Loaded as `import torch` loads them: their symbols stay local.
cuda = ctypes.CDLL(os.path.join(sys.argv[1], "libc10_cuda.so"))
core = ctypes.CDLL(os.path.join(sys.argv[1], "libc10.so"))
cuda.replica_malloc.restype = ctypes.c_void_p
cuda.replica_malloc.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_int]
cuda.replica_free.argtypes = [ctypes.c_int, ctypes.c_void_p]
cuda.replica_churn.argtypes = [ctypes.c_int, ctypes.c_uint, ctypes.c_size_t]
cuda.replica_allocated.restype = cuda.replica_reserved.restype = ctypes.c_size_t
core.replica_reports.restype = core.replica_digest.restype = ctypes.c_uint64
core.replica_cpu_malloc.restype = ctypes.c_void_p
core.replica_cpu_malloc.argtypes = [ctypes.c_size_t]
core.replica_cpu_free.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class Tensor:
    """A block that is freed when Python drops it: with the GIL held, sometimes by the collector."""

    def __init__(self, size, device=0, stream=0):
        self.device = device
        self.address = cuda.replica_malloc(device, size, stream)
        if not self.address:
            raise MemoryError(size)

    def __del__(self):
        if getattr(self, "address", None):
            cuda.replica_free(self.device, self.address)


def figures(name):
    print(name, "reports", core.replica_reports(), "digest", core.replica_digest(),
          "allocated", [cuda.replica_allocated(device) for device in range(2)],
          "reserved", [cuda.replica_reserved(device) for device in range(2)], flush=True)


def mark(name):
    """A phase for gpumem; does nothing without it."""
    library = ctypes.CDLL(None)
    if hasattr(library, "gpumem_mark"):
        library.gpumem_mark(name.encode())


def sizes():
    for size in (1, 512, 513, MIB, MIB + 1, 9 * MIB, 10 * MIB, 11 * MIB + 1, 40 * MIB):
        for stream in (0, 1):
            kept = [Tensor(size, 0, stream) for _ in range(3)]
            del kept[1]
            kept.append(Tensor(size, 0, stream))


def retained_list():
    return [Tensor(3 * MIB) for _ in range(20)]


def fragment():
    """Every second block lives: much is free, but nothing large fits."""
    blocks = [Tensor(8 * MIB) for _ in range(64)]
    return blocks[::2]


def exhaust():
    """Fills the device; the allocator returns its cache on the way, then the request fails."""
    cached = [Tensor(64 * MIB) for _ in range(4)]
    del cached
    blocks = []
    try:
        while True:
            blocks.append(Tensor(512 * MIB))
    except MemoryError as refused:
        print("refused", refused, "after", len(blocks))


def two_devices():
    blocks = [Tensor(5 * MIB, device) for device in (0, 1) for _ in range(4)]
    figures("two devices")
    del blocks


def host():
    address = core.replica_cpu_malloc(4096)
    core.replica_cpu_free(address, 4096)


def contend(seconds_of_work):
    """Threads that need the GIL and the allocator at the same time, and a collector that frees cycles."""
    def work():
        for _ in range(seconds_of_work):
            cycle = [Tensor(4096)]
            cycle.append(cycle)
            Tensor(2 * MIB)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()


def main():
    sizes()
    figures("sizes")
    mark("retained")
    kept = retained_list()
    figures("retained")
    mark("fragment")
    holes = fragment()
    figures("fragment")
    exhaust()
    figures("exhausted")
    del kept, holes
    cuda.replica_empty_cache(0)
    figures("empty")
    two_devices()
    host()
    cuda.replica_churn(0, 1, int(sys.argv[2]))
    figures("churn")
    before = core.replica_reports()
    contend(500)
    print("contend", core.replica_reports() - before)
    for device in range(2):
        cuda.replica_empty_cache(device)
    print("end", cuda.replica_allocated(0), cuda.replica_reserved(0), core.replica_reports())


main()
