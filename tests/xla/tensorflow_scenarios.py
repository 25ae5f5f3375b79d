#!/usr/bin/env python3
"""TensorFlow's use of memory without cuBLAS or cuDNN: tensorflow_scenarios.py NAME.

It prints the same each time.
"""
import sys

import scenarios

scenarios.quiet()
import tensorflow as tf  # noqa: E402

MILLION = [1000, 1000]


def held():
    scenarios.mark_held(tf.config.experimental.get_memory_info("GPU:0")["current"])


@scenarios.scenario
def arrays():
    kept = []
    for _ in range(5):
        kept.append(tf.Variable(tf.zeros(MILLION)))
        held()
    del kept[1:4]
    held()
    kept.append(kept[0] + 1.0)
    held()
    return kept


@scenarios.scenario
def training():
    weights, momentum = tf.Variable(tf.ones(MILLION)), tf.Variable(tf.zeros(MILLION))

    @tf.function
    def step(batch):
        gradient = batch * weights
        momentum.assign(momentum * 0.9 + gradient)
        weights.assign_sub(momentum * 0.1)
        return tf.abs(gradient)

    for _ in range(8):
        step(tf.ones(MILLION))
    held()
    return weights, momentum


@scenarios.scenario
def kept_results():
    results = []
    for _ in range(10):
        results.append(tf.zeros(MILLION))  # the line that the report must name
    held()
    return results


@scenarios.scenario
def refused():
    kept = []
    try:
        while True:
            kept.append(tf.zeros([10, *MILLION]))
    except tf.errors.ResourceExhaustedError:
        print(f"refused after {len(kept)}")
    held()
    kept.clear()
    held()


if __name__ == "__main__":
    with tf.device("/GPU:0"):
        still_there = scenarios.functions[sys.argv[1]]()
