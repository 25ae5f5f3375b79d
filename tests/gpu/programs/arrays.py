#!/usr/bin/env python3
"""Small programs for frameworks other than PyTorch: arrays.py FRAMEWORK [pool].

Each computes something on the device, prints the result and then, with its arrays still alive, the framework's own
figures of its memory: a line NOTE framework {...} of bytes.
"""
import json
import sys

COUNT = 1 << 20


def say(**figures):
    print("NOTE framework", json.dumps(figures), flush=True)


def jax(pool):
    import jax
    import jax.numpy as jnp
    device = jax.devices("gpu")[0]
    arrays = [jax.device_put(jnp.full((COUNT,), float(n), jnp.float32), device) for n in range(4)]
    result = jax.jit(lambda a, b: (a.reshape(1024, 1024) @ b.reshape(1024, 1024)).sum())(arrays[1], arrays[2])
    print("result", float(result))
    stats = device.memory_stats() or {}
    say(alive=sum(array.nbytes for array in arrays), pool=stats.get("pool_bytes", 0) if pool else 0)


def tensorflow(_pool):
    import tensorflow as tf
    with tf.device("/GPU:0"):
        arrays = [tf.fill([COUNT], float(n)) for n in range(4)]
        print("result", float(tf.reduce_sum(arrays[1] * arrays[2])))
        say(alive=tf.config.experimental.get_memory_info("GPU:0")["current"], pool=0)
        del arrays


def cupy(pool):
    import cupy
    if not pool:
        cupy.cuda.set_allocator(None)
    arrays = [cupy.full(COUNT, n, dtype=cupy.float32) for n in range(4)]
    print("result", float((arrays[1] * 2 + arrays[2]).sum()), float(cupy.linalg.norm(arrays[3])))
    cupy.cuda.Device().synchronize()
    say(alive=sum(array.nbytes for array in arrays),
        pool=cupy.get_default_memory_pool().total_bytes() if pool else 0)


def numba(_pool):
    import numpy
    from numba import cuda

    @cuda.jit
    def double(array):
        i = cuda.grid(1)
        if i < array.size:
            array[i] *= 2

    host = numpy.arange(COUNT, dtype=numpy.float32)
    arrays = [cuda.to_device(host) for _ in range(4)]
    double[COUNT // 256, 256](arrays[0])
    print("result", float(arrays[0].copy_to_host().sum()))
    say(alive=sum(array.nbytes for array in arrays), pool=0)


def triton(_pool):
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def add(one, other, result, count, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = at < count
        tl.store(result + at, tl.load(one + at, mask=inside) + tl.load(other + at, mask=inside), mask=inside)

    one = torch.arange(COUNT, dtype=torch.float32, device="cuda")
    result = torch.empty_like(one)
    add[(COUNT // 1024,)](one, one, result, COUNT, BLOCK=1024)
    print("result", result.double().sum().item())
    say(alive=one.nbytes + result.nbytes, pool=torch.cuda.memory_reserved())


def nccl(_pool):
    import torch
    import torch.distributed as distributed
    import tempfile
    with tempfile.NamedTemporaryFile() as meeting:
        distributed.init_process_group("nccl", init_method="file://" + meeting.name + ".store", rank=0, world_size=1)
        data = torch.ones(COUNT, device="cuda")
        distributed.all_reduce(data)
        torch.cuda.synchronize()
        print("result", data.double().sum().item())
        say(alive=data.nbytes, pool=torch.cuda.memory_reserved())
        distributed.destroy_process_group()


if __name__ == "__main__":
    {"jax": jax, "tensorflow": tensorflow, "cupy": cupy, "numba": numba, "triton": triton,
     "nccl": nccl}[sys.argv[1]]("pool" in sys.argv[2:])
