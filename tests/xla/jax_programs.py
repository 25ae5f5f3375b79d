#!/usr/bin/env python3
"""Twenty-six ways to hold arrays of JAX: jax_programs.py NAME. It says at marks what jax.live_arrays() holds, which must be the
same each time; values are not: kernels of the simulator compute nothing.

The comment "holder" is at the line that holds most of the pool at its peak; "leak: CODE" at one that a finding of that code must
name, because its arrays or its code pile up, or are refused. No other line may have a warning.
"""
import gc
import sys
import threading

import scenarios
from scenarios import gpumem

scenarios.quiet()
import jax._src.hardware_utils  # noqa: E402

jax._src.hardware_utils.has_visible_nvidia_gpu = lambda: True  # it would look for /dev/nvidia0
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding  # noqa: E402

devices = jax.devices("gpu")
side = numpy.full((512, 512), 0.01, numpy.float32)  # 1 MiB
kept = []


def mark(*wait_for):
    """JAX's own figures, when the device is done with what was asked of it. Two arrays of one piece of memory are one."""
    jax.block_until_ready(wait_for)
    gc.collect()  # JAX 0.6 leaves arrays in cycles
    pieces = {}
    for array in jax.live_arrays():
        if array.sharding.memory_kind in (None, "device"):
            for piece in [shard.data for shard in array.addressable_shards]:
                pieces[piece.unsafe_buffer_pointer() or id(piece)] = piece.on_device_size_in_bytes()
    figures = [device.memory_stats() for device in devices]
    size = sum(pieces.values())
    gpumem.mark(f"arrays {size}")
    gpumem.mark(f"held {sum(f['bytes_in_use'] for f in figures)}" if all(figures) else "held None")
    print(f"{size} bytes")


@scenarios.scenario
def jit():
    step = jax.jit(lambda a: jnp.tanh(a @ a) + 1)
    for _ in range(6):
        kept.append(step(side))  # holder
        mark(kept)


@scenarios.scenario
def grad():
    weights = [jax.device_put(side) for _ in range(6)]
    mark(weights)

    def loss(weights, x):
        for weight in weights:
            x = jnp.tanh(x @ weight)
        return x.sum()

    for _ in range(3):
        gradients = jax.grad(loss)(weights, jnp.ones((8, 512)))  # holder
        mark(gradients)
        del gradients
        mark()


@scenarios.scenario
def scan():
    last, every = jax.lax.scan(lambda c, _: (jnp.tanh(c @ c), c), jnp.asarray(side), None, length=8)  # holder
    mark(last, every)


@scenarios.scenario
def vmap():
    batch = jnp.ones((4, 512, 512))
    mark(batch)
    out = jax.vmap(lambda a: jnp.concatenate([a @ a, a]))(batch)  # holder
    mark(out)


@scenarios.scenario
def pmap():
    batch = numpy.ones((len(devices), 512, 512), numpy.float32)
    for _ in range(3):
        out = jax.pmap(lambda a: jnp.concatenate([a, a + 1, a + 2]))(batch)  # holder
        mark(out)


@scenarios.scenario
def shard_map():
    mesh = Mesh(numpy.array(devices), ("d",))
    whole = jax.device_put(numpy.ones((len(devices) * 256, 256), numpy.float32), NamedSharding(mesh, PartitionSpec("d")))
    mark(whole)
    work = getattr(jax, "shard_map", None)
    if work is None:
        from jax.experimental.shard_map import shard_map as work
    run = jax.jit(work(lambda a: jnp.tile(a, (4, 1)), mesh=mesh, in_specs=PartitionSpec("d"), out_specs=PartitionSpec("d")))
    out = run(whole)  # holder
    mark(out)
    copies = jax.device_put(side, NamedSharding(mesh, PartitionSpec()))
    mark(copies)


@scenarios.scenario
def donated():
    step = jax.jit(lambda w, g: w - g, donate_argnums=0)
    weights = [jax.device_put(side) for _ in range(4)]  # holder
    gradient = jax.device_put(side)
    for _ in range(4):
        weights = [step(w, gradient) for w in weights]
        mark(weights)


@scenarios.scenario
def checkpoint():
    def block(x):
        return jnp.tanh(jnp.tanh(x @ x) @ x)

    def loss(x):
        for _ in range(4):
            x = jax.checkpoint(block)(x)
        return x.sum()

    value, pullback = jax.vjp(loss, jnp.asarray(side))
    mark(value)
    (gradient,) = pullback(value)  # holder
    mark(gradient)
    del pullback
    mark()


@scenarios.scenario
def transfers():
    """Not waited for; slices and numbers among them."""
    pieces = [jax.device_put(side[: 64 * (i + 1)]) for i in range(8)]  # holder
    scalars = [jnp.float32(i) + 1 for i in range(20)]
    mark(pieces, scalars)
    host = jax.device_put(pieces[0], SingleDeviceSharding(devices[0], memory_kind="pinned_host"))
    mark(host)
    del pieces[4:]
    mark()


@scenarios.scenario
def copies():
    first = jax.device_put(side, devices[0])
    others = [jax.device_put(first, device) for device in devices[1:]]
    mark(others)
    more = [jnp.array(first, copy=True) for _ in range(2)]  # holder
    mark(more)
    same = jax.device_put(first, devices[0])
    mark(same)
    del first
    mark()


@scenarios.scenario
def custom_vjp():
    @jax.custom_vjp
    def clip(x):
        return x * 2

    clip.defvjp(lambda x: (x * 2, (x, x + 1, x + 2)), lambda saved, g: (g + saved[0] + saved[1] + saved[2],))  # holder
    value, pullback = jax.vjp(clip, jnp.asarray(side))
    mark(value)
    (gradient,) = pullback(value)
    mark(gradient)


@scenarios.scenario
def nnx_optax():
    import optax
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.layers = getattr(nnx, "List", list)([nnx.Linear(256, 256, rngs=rngs) for _ in range(4)])

        def __call__(self, x):
            for layer in self.layers:
                x = nnx.relu(layer(x))
            return x

    net = Net(nnx.Rngs(0))
    mark(nnx.state(net))
    optimizer = nnx.Optimizer(net, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit
    def step(net, optimizer, x):
        value, gradients = nnx.value_and_grad(lambda net: (net(x) ** 2).mean())(net)
        optimizer.update(net, gradients)
        return value

    x = jnp.ones((64, 256))
    for _ in range(5):
        value = step(net, optimizer, x)  # holder
        mark(value, nnx.state(net))


@scenarios.scenario
def equinox():
    import equinox as eqx

    net = eqx.nn.MLP(256, 256, 256, 4, key=jax.random.key(0))
    mark(jax.tree.leaves(eqx.filter(net, eqx.is_array)))

    @eqx.filter_jit
    def step(net, x):
        gradients = eqx.filter_grad(lambda net: (jax.vmap(net)(x) ** 2).mean())(net)
        return eqx.apply_updates(net, jax.tree.map(lambda g: -0.1 * g, gradients))

    x = jnp.ones((32, 256))
    for _ in range(4):
        net = step(net, x)  # holder
        mark(jax.tree.leaves(eqx.filter(net, eqx.is_array)))


@scenarios.scenario
def kept_losses():
    step = jax.jit(lambda a: (a @ a, (a * a).sum(axis=0)))
    a = jnp.asarray(side)
    for _ in range(12):
        _, value = step(a)  # leak: growing
        kept.append(value)  # a row each: small beside the rest
        mark(kept)


@scenarios.scenario
def not_kept():
    step = jax.jit(lambda a: (a @ a, (a * a).sum(axis=0)))
    a = jnp.asarray(side)
    for _ in range(12):
        _, value = step(a)
        mark(value)


@scenarios.scenario
def shapes():
    """Each shape is compiled anew, and a constant goes with it."""
    @jax.jit
    def pad(a):
        return (a + jnp.asarray(side)[: a.shape[0]]).sum()

    for rows in range(8, 72, 8):
        value = pad(jnp.ones((rows, 512)))  # leak: growing-code
        mark(value)


@scenarios.scenario
def kept_pullbacks():
    x = jnp.asarray(side)
    for _ in range(6):
        value, pullback = jax.vjp(lambda x: jnp.tanh(jnp.tanh(x) @ x), x)  # holder leak: retained
        kept.append(pullback)
        mark(value)


@scenarios.scenario
def dropped_pullbacks():
    x = jnp.asarray(side)
    for _ in range(6):
        value, pullback = jax.vjp(lambda x: jnp.tanh(jnp.tanh(x) @ x), x)  # holder
        (gradient,) = pullback(value)
        mark(gradient)


@scenarios.scenario
def dlpack():
    first = jax.device_put(side)  # holder
    view = jax.dlpack.from_dlpack(first, copy=False)
    mark(view)
    del first
    mark(view)
    kept.append(jax.dlpack.from_dlpack(view, copy=False))
    del view
    mark(kept)
    kept.clear()
    mark()


@scenarios.scenario
def deletes():
    arrays = [jax.device_put(side) for _ in range(6)]  # holder
    mark(arrays)
    arrays[0].delete()
    arrays[1].delete()
    mark()
    arrays[0].delete()
    mark()
    del arrays[0]
    mark()


@scenarios.scenario
def threads():
    def work(number, found):
        for i in range(40):
            found.append(jax.device_put(side[: 64 + number]))  # holder
            if i >= 10:
                found.pop(0)

    lists = [[] for _ in range(4)]
    several = [threading.Thread(target=work, args=(n, lists[n])) for n in range(4)]
    for thread in several:
        thread.start()
    for thread in several:
        thread.join()
    mark(lists)


@scenarios.scenario
def marks():
    """Many sizes, also none, and types of less than a byte."""
    for i in range(60):
        kept.append(jnp.zeros(((i * 37) % 1000, 3 + i % 5), [jnp.float32, jnp.int8, jnp.bfloat16, jnp.bool_][i % 4]))
        if i % 3 == 2:
            kept.pop(i % len(kept))
        mark(kept)
    kept.append(jnp.zeros((1001,), jnp.int4))
    mark(kept)


@scenarios.scenario
def random_keys():
    keys = jax.random.split(jax.random.key(1), 1000)
    mark(keys)
    drawn = jax.vmap(lambda k: jax.random.normal(k, (256,)))(keys)  # holder
    mark(drawn)


@scenarios.scenario
def loops():
    """Compiled together with its start: XLA counts the turns. Else a kernel says when it ends, and those of the simulator do not."""
    turn = jax.jit(lambda a: jax.lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 1.5), (0, a)))
    out = turn(side)
    mark(out)
    out = jax.lax.fori_loop(0, 4, lambda i, a: a + i, out[1])  # holder
    mark(out)
    out = jax.lax.cond(True, lambda a: a + 1, lambda a: a - 1, out)
    mark(out)


@scenarios.scenario
def sound_training():
    step = jax.jit(lambda w, x: (w - 0.1 * jax.grad(lambda w: ((x @ w) ** 2).mean())(w), (x @ w).mean()))
    weights, x = jax.device_put(side), jax.device_put(side)
    for _ in range(10):
        weights, value = step(weights, x)
        mark(weights)


@scenarios.scenario
def refused():
    try:
        while len(kept) < 10000:
            kept.append(jax.device_put(numpy.zeros((16, 1 << 20), numpy.float32)).block_until_ready())  # holder leak: out-of-memory
    except jax.errors.JaxRuntimeError as error:
        print(f"refused after {len(kept)}: {str(error)[:18]}")
    mark()
    kept.clear()
    mark()


if __name__ == "__main__":
    scenarios.functions[sys.argv[1]]()
