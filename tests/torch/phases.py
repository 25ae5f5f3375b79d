#!/usr/bin/env python3
"""phases.py FOLDER: steps of a program that names them with python/gpumem.py, on the replica of
PyTorch's allocator in FOLDER. Every step keeps one block more."""
import ctypes
import os
import sys
import threading

import gpumem

STEPS = 8
KEPT = 1 << 20
WORK = 5 << 20

cuda = ctypes.CDLL(os.path.join(sys.argv[1], "libc10_cuda.so"))
cuda.replica_malloc.restype = ctypes.c_void_p
cuda.replica_malloc.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_int]
cuda.replica_free.argtypes = [ctypes.c_int, ctypes.c_void_p]


def keep_forever():
    return cuda.replica_malloc(0, KEPT, 0)


@gpumem.range("forward")
def forward():
    return cuda.replica_malloc(0, WORK, 0)


@gpumem.range("fails")
def fails():
    raise KeyError("as planned")


def in_a_thread():
    with gpumem.range(b"thread \xff"):
        gpumem.mark("\u00fc \U0001f680 \udcff")


kept = []
step_range = gpumem.range("step")
for _ in range(STEPS):
    with step_range:
        block = forward()
        kept.append(keep_forever())
        with step_range:  # inside itself
            cuda.replica_free(0, block)
    gpumem.mark("step")
try:
    fails()
except KeyError:
    pass
thread = threading.Thread(target=in_a_thread)
thread.start()
thread.join()
gpumem.mark(17)
gpumem.mark("")
for block in kept:
    cuda.replica_free(0, block)
print("active" if gpumem.active() else "alone", len(kept), forward.__name__)
