#!/usr/bin/env python3
"""JAX's use of memory: jax_scenarios.py NAME. It prints the same each time."""
import sys

import scenarios
from scenarios import gpumem

scenarios.quiet()
import jax._src.hardware_utils  # noqa: E402

jax._src.hardware_utils.has_visible_nvidia_gpu = lambda: True  # it would look for /dev/nvidia0
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402

device = jax.devices("gpu")[0]
million = numpy.ones(1000000, numpy.float32)


def put(array):
    return jax.device_put(array, device).block_until_ready()


def held():
    figures = device.memory_stats()
    arrays_live = [a for a in jax.live_arrays() if a.sharding.memory_kind in (None, "device")]
    size = sum(a.on_device_size_in_bytes() for a in arrays_live)
    gpumem.mark(f"arrays {size}")
    gpumem.mark(f"held {figures and figures['bytes_in_use']}")  # not printed: frees come when the device is done
    print(f"{size} bytes")


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
def compiled():
    double = jax.jit(lambda a: a * 2)
    kept = [double(put(million)) for _ in range(3)]
    held()
    for _ in range(3):
        put(million)  # dropped at once
        held()
    sums, rest = jax.jit(lambda a: (a.sum(), a[1:]))(kept[0])
    held()
    kept[1].delete()
    held()
    scanned, ys = jax.lax.scan(lambda c, _: (jnp.tanh(c @ c), c.sum()), jnp.ones((128, 128)), None, length=5)
    held()
    batches = jax.vmap(lambda a: a.sum())(jnp.ones((16, 64)))
    held()
    host = jax.device_put(million, jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host"))
    held()
    back = jax.device_put(host, jax.sharding.SingleDeviceSharding(device, memory_kind="device"))
    held()
    return kept, sums, rest, scanned, ys, batches, back


@scenarios.scenario
def donated():
    step = jax.jit(lambda w, g: w - g, donate_argnums=0)
    weights, gradient = put(million), put(million)
    for _ in range(4):
        weights = step(weights, gradient)
        held()
    return weights


def loss(weights, batch):
    for weight in weights:
        batch = jnp.tanh(batch @ weight)
    return (batch**2).mean()


@scenarios.scenario
def training():
    @jax.jit
    def step(weights, batch):
        value, gradients = jax.value_and_grad(loss)(weights, batch)
        return [w - 0.1 * g for w, g in zip(weights, gradients)], value

    weights, batch = [put(numpy.ones((256, 256), numpy.float32)) for _ in range(4)], put(numpy.ones((128, 256), numpy.float32))
    losses = []
    for _ in range(5):
        weights, value = step(weights, batch)
        losses.append(value)
        held()
    _, pullback = jax.vjp(jax.checkpoint(loss), weights, batch)
    held()
    _, plain = jax.vjp(loss, weights, batch)
    held()
    del pullback
    held()
    return weights, losses, plain


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
