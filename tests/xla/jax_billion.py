"""A Flax transformer of 1.0 billion parameters and one step of AdamW, for a dry run: jax_billion.py

Prints its parameters, then what memory_analysis() says of the step in bytes (arguments, outputs, of these in place of arguments,
temporaries) and the most that BFC had in use.
"""
import json

import jax
import jax.numpy as jnp
import optax
from flax import nnx

WIDTH, HEADS, LAYERS, WORDS, LENGTH = 2048, 16, 18, 32000, 512


class Block(nnx.Module):
    def __init__(self, rngs):
        self.before, self.between = nnx.LayerNorm(WIDTH, rngs=rngs), nnx.LayerNorm(WIDTH, rngs=rngs)
        self.qkv = nnx.Linear(WIDTH, 3 * WIDTH, use_bias=False, rngs=rngs)
        self.out = nnx.Linear(WIDTH, WIDTH, use_bias=False, rngs=rngs)
        self.up = nnx.Linear(WIDTH, 4 * WIDTH, use_bias=False, rngs=rngs)
        self.down = nnx.Linear(4 * WIDTH, WIDTH, use_bias=False, rngs=rngs)

    def __call__(self, x):
        batch, length, _ = x.shape
        q, k, v = jnp.split(self.qkv(self.before(x)).reshape(batch, length, HEADS, -1), 3, axis=-1)
        x = x + self.out(jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape))
        return x + self.down(nnx.gelu(self.up(self.between(x))))


class Transformer(nnx.Module):
    def __init__(self, rngs):
        self.words = nnx.Embed(WORDS, WIDTH, rngs=rngs)
        self.blocks = getattr(nnx, "List", list)([Block(rngs) for _ in range(LAYERS)])
        self.head = nnx.Linear(WIDTH, WORDS, use_bias=False, rngs=rngs)

    def __call__(self, tokens):
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


graph, parameters = nnx.split(Transformer(nnx.Rngs(0)))
optimizer = optax.adamw(1e-4)
state = optimizer.init(parameters)


def loss(parameters, tokens):
    logits = nnx.merge(graph, parameters)(tokens[:, :-1])
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()


@jax.jit
def step(parameters, state, tokens):
    value, gradients = jax.value_and_grad(loss)(parameters, tokens)
    updates, state = optimizer.update(gradients, state, parameters)
    return value, optax.apply_updates(parameters, updates), state


tokens = jnp.zeros((2, LENGTH + 1), jnp.int32)
compiled = step.lower(parameters, state, tokens).compile()
value, parameters, state = compiled(parameters, state, tokens)
value.block_until_ready()
told = compiled.memory_analysis()
print(json.dumps({
    "parameters": sum(leaf.size for leaf in jax.tree.leaves(parameters)),
    "arguments": told.argument_size_in_bytes, "outputs": told.output_size_in_bytes, "aliased": told.alias_size_in_bytes,
    "temporaries": told.temp_size_in_bytes, "peak": jax.devices()[0].memory_stats()["peak_bytes_in_use"]}))
