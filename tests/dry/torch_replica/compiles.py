"""Stands for a program that takes memory while it compiles, which it does where it finds nothing compiled:
compiles.py MIB"""
import ctypes
import os
import sys

import torch  # noqa: F401

need = int(sys.argv[1])
folder = os.environ["TORCHINDUCTOR_CACHE_DIR"]
if os.listdir(folder):
    need //= 2
os.makedirs(folder + "/code", exist_ok=True)
cuda, context, memory = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
assert not (cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) or cuda.cuCtxSetCurrent(context))
sys.exit(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(need << 20)))
