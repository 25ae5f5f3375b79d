#!/usr/bin/env python3
"""JAX's use of memory without a kernel, which would need cuDNN: jax_scenarios.py NAME.

It prints the same each time.
"""
import sys

import scenarios

scenarios.quiet()
import jax._src.hardware_utils  # noqa: E402

jax._src.hardware_utils.has_visible_nvidia_gpu = lambda: True  # it would look for /dev/nvidia0
import jax  # noqa: E402
import numpy  # noqa: E402

device = jax.devices("gpu")[0]
million = numpy.ones(1000000, numpy.float32)


def put(array):
    return jax.device_put(array, device).block_until_ready()


def held():
    figures = device.memory_stats()
    scenarios.mark_held(figures and figures["bytes_in_use"])


@scenarios.scenario
def arrays():
    kept = []
    for _ in range(5):
        kept.append(put(million))
        held()
    del kept[1:4]
    held()
    assert (numpy.asarray(kept[0]) == 1).all()
    return kept


@scenarios.scenario
def kept_results():
    results = []
    for _ in range(10):
        results.append(put(million))  # the line that the report must name
    held()
    return results


@scenarios.scenario
def refused():
    kept = []
    try:
        while True:
            kept.append(put(numpy.zeros((10, 1000000), numpy.float32)))
    except jax.errors.JaxRuntimeError as error:
        print(f"refused after {len(kept)}: {str(error)[:18]}")
    held()
    kept.clear()
    held()


if __name__ == "__main__":
    still_there = scenarios.functions[sys.argv[1]]()
