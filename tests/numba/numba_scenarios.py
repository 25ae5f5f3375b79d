#!/usr/bin/env python3
"""Numba's use of memory without a kernel: numba_scenarios.py NAME. It prints the same each time."""
import os
import sys

import numpy
from numba import cuda

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import gpumem  # noqa: E402

COUNT = 1 << 18
scenarios = {}


def scenario(function):
    scenarios[function.__name__] = function
    return function


@scenario
def arrays():
    host = numpy.arange(COUNT, dtype=numpy.float32)
    kept = cuda.to_device(host)
    assert (kept.copy_to_host() == host).all()
    other = cuda.device_array_like(kept)
    other.copy_to_device(kept)
    assert (other[100:200].copy_to_host() == host[100:200]).all()
    return [kept, other, cuda.device_array((128, 64), numpy.float64)]


@scenario
def pinned():
    block = cuda.pinned_array(COUNT, numpy.float32)
    block[:] = 7
    stream = cuda.stream()
    moved = cuda.to_device(block, stream=stream)
    stream.synchronize()
    assert (moved.copy_to_host() == 7).all()
    plain = numpy.ones(COUNT, numpy.float32)
    with cuda.pinned(plain):
        moved.copy_to_device(plain, stream=stream)
        stream.synchronize()
    return [block, moved, cuda.mapped_array(1000, numpy.float32)]


@scenario
def managed():
    block = cuda.managed_array(COUNT, numpy.float32)
    block[:] = 3
    assert float(block.sum()) == 3.0 * COUNT
    return block


@scenario
def late_frees():
    """Numba queues frees, and frees in batches."""
    host = numpy.zeros(COUNT, numpy.float32)
    for _ in range(7):
        cuda.to_device(host)
    gpumem.mark("queued")
    return None


@scenario
def kept_results():
    host = numpy.zeros(COUNT, numpy.float32)
    results = []
    for _ in range(10):
        results.append(cuda.to_device(host))  # the line that the report must name
    return results


@scenario
def refused():
    kept = []
    try:
        while True:
            kept.append(cuda.device_array(1 << 30, numpy.uint8))
    except cuda.cudadrv.driver.CudaAPIError as error:
        print("refused after", len(kept), "with", error.code)
    return None


def main():
    kept = scenarios[sys.argv[1]]()
    cuda.synchronize()
    gpumem.mark("end")
    print(sys.argv[1], "ended with", cuda.current_context().get_memory_info().free, "bytes free")
    del kept


if __name__ == "__main__":
    main()
