#!/usr/bin/env python3
"""A program of JAX whose need grows with its batch, as a user writes it: jax_batch.py BATCH."""
import sys

import jax
import jax.numpy as jnp
import numpy

batch = int(sys.argv[1])
weights = [jax.device_put(numpy.full((1024, 1024), 0.01, numpy.float32)) for _ in range(2)]


@jax.jit
def step(weights, x):
    def loss(weights):
        hidden = x
        for weight in weights:
            hidden = jnp.tanh(hidden @ weight)
        return (hidden**2).mean()

    return [w - 0.1 * g for w, g in zip(weights, jax.grad(loss)(weights))]


x = jax.device_put(numpy.ones((batch * 1024, 1024), numpy.float32))
for _ in range(2):
    weights = step(weights, x)
jax.block_until_ready(weights)
