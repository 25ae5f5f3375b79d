#!/usr/bin/env python3
"""A pool whose physical memory sleeps: sleep_mode.py LIBRARY awake|asleep. It ends in that state.

With REPLICA set on the replica, else on PyTorch itself. Between the marks "asleep" and "awake" the blocks live and the
device holds nothing for them.
"""
import ctypes
import os
import sys

MIB = 1 << 20
SIZES = (1, 5, 9, 30, 64)
memory = ctypes.CDLL(sys.argv[1])


def mark(name):
    library = ctypes.CDLL(None)
    if hasattr(library, "gpumem_mark"):
        library.gpumem_mark(name.encode())


def blocks_of_the_replica():
    folder = os.environ["REPLICA"]
    cuda = ctypes.CDLL(os.path.join(folder, "libc10_cuda.so"))
    runtime = ctypes.CDLL("libcudart.so.13")
    assert runtime.cudaFree(None) == 0  # makes the context
    cuda.replica_malloc.restype = ctypes.c_void_p
    cuda.replica_malloc.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_int]
    cuda.replica_allocated.restype = cuda.replica_reserved.restype = ctypes.c_size_t
    cuda.replica_set_segments(memory.sleep_malloc, memory.sleep_free)
    kept = [cuda.replica_malloc(0, size * MIB, 0) for size in SIZES]
    return kept, cuda.replica_allocated(0), cuda.replica_reserved(0)


def blocks_of_pytorch():
    import torch
    allocator = torch.cuda.memory.CUDAPluggableAllocator(sys.argv[1], "sleep_malloc", "sleep_free")
    pool = torch.cuda.MemPool(allocator.allocator())
    with torch.cuda.use_mem_pool(pool):
        kept = [torch.empty(size * MIB, dtype=torch.uint8, device="cuda") for size in SIZES]
    return [pool, allocator, kept], torch.cuda.memory_allocated(), torch.cuda.memory_reserved()


def main():
    _kept, allocated, reserved = (blocks_of_the_replica if "REPLICA" in os.environ else blocks_of_pytorch)()
    for _ in range(3):
        memory.sleep_all()
        mark("asleep")
        memory.sleep_wake()
        mark("awake")
    if sys.argv[2] == "asleep":
        memory.sleep_all()
    print("FIGURES", allocated, reserved, flush=True)
    os._exit(0)  # at a normal end the allocator would touch missing memory


if __name__ == "__main__":
    main()
