#!/usr/bin/env python3
"""Mistakes with PyTorch's memory, each with its sound twin; one scenario per process.

    replica_scenarios.py NAME

The scenarios of wheel_scenarios.py that concern the allocator, on the replica. The line to blame says which finding the
report must have (expected_findings.py). Prints the allocator's figures at the end.
"""
import sys

from torch import replica_tensor
from torch.replica_tensor import Tensor

MIB = 1 << 20
scenarios = {}


def scenario(function):
    scenarios[function.__name__] = function
    return function


def train(steps):
    """A sound step: it frees everything that it takes."""
    for _ in range(steps):
        activations = [Tensor(3 * MIB) for _ in range(4)]
        del activations


@scenario
def retained_graph():
    losses = []
    for _ in range(20):
        losses.append(Tensor(3 * MIB))  # finding: retained
        train(1)
    return losses


@scenario
def released_graph():
    """Weights live from the beginning, and so does the last loss: both are right."""
    weights, loss = [Tensor(3 * MIB) for _ in range(20)], None
    for _ in range(20):
        loss = Tensor(3 * MIB)
        train(1)
    return [weights, loss]


def pairs_to_fill():
    """How many pairs of 9 MiB, two to a segment of 20 MiB, leave less than 500 MiB free."""
    return range((replica_tensor.free_memory() // MIB - 500) // 20)


@scenario
def fragmentation():
    pairs = [[Tensor(9 * MIB), Tensor(9 * MIB)] for _ in pairs_to_fill()]
    kept = [pair[0] for pair in pairs]
    del pairs
    try:
        Tensor(1024 * MIB)  # finding: pool-fragmentation
    except MemoryError:
        return kept
    raise AssertionError("1 GiB fitted")


@scenario
def no_fragmentation():
    """As much is free, in segments without a block."""
    pairs = [[Tensor(9 * MIB), Tensor(9 * MIB)] for _ in pairs_to_fill()]
    kept = pairs[:len(pairs) // 2]
    del pairs
    return [kept, Tensor(1024 * MIB)]


@scenario
def cached():
    large = [Tensor(64 * MIB) for _ in range(40)]  # finding: cached
    del large
    train(100)


@scenario
def cache_emptied():
    large = [Tensor(64 * MIB) for _ in range(40)]
    del large
    replica_tensor.cuda.replica_empty_cache(0)
    train(100)


@scenario
def cache_in_use():
    for size in (40, 35, 38):
        large = [Tensor(64 * MIB) for _ in range(size)]
        train(10)
        del large


@scenario
def pageable_copies():
    target, batch = Tensor(2 * MIB), replica_tensor.pageable(2 * MIB)
    for _ in range(20):
        target.copy_from(batch)  # finding: pageable-copies


@scenario
def pinned_copies():
    """Loads a model from ordinary memory, once; batches come from pinned memory."""
    weights = [Tensor(2 * MIB) for _ in range(20)]
    for weight in weights:
        weight.copy_from(replica_tensor.pageable(2 * MIB))
    host = replica_tensor.pin(2 * MIB)
    for _ in range(20):
        weights[0].copy_from(host)


@scenario
def pinned_growth():
    target = Tensor(MIB)
    for _ in range(100):
        target.copy_from(replica_tensor.pin(MIB))  # finding: pinned-growth


@scenario
def pinned_reused():
    target, buffers = Tensor(MIB), [replica_tensor.pin(MIB) for _ in range(30)]
    for number in range(400):
        target.copy_from(buffers[number % 30])


@scenario
def device_imbalance():
    """A replica of the model on each device; the first one gathers what both made."""
    replicas = [Tensor(512 * MIB, device) for device in (0, 1)]
    gathered = [Tensor(128 * MIB, 0) for _ in range(12)]  # finding: device-imbalance
    return [replicas, gathered]


@scenario
def device_parts():
    """Unequal parts of one model, as they fit."""
    return [[Tensor(128 * MIB, 0) for _ in range(16)], [Tensor(128 * MIB, 1) for _ in range(4)]]


@scenario
def device_balance():
    return [[Tensor(128 * MIB, 0) for _ in range(16)], [Tensor(128 * MIB, 1) for _ in range(13)]]


@scenario
def out_of_memory():
    try:
        return [Tensor(64 * MIB) for _ in range(200)]  # finding: out-of-memory; note: retained
    except MemoryError:
        return None


@scenario
def batch_size():
    size, batch = 256, None
    while batch is None:
        try:
            batch = [Tensor(64 * MIB) for _ in range(size)]  # finding: batch-size-search
        except MemoryError:
            size = size * 3 // 4
    return batch


@scenario
def batch_size_of_one_tensor():
    for size in (32, 16, 9, 4):
        try:
            return Tensor(size * 1024 * MIB)  # finding: batch-size-search
        except MemoryError:
            pass
    raise AssertionError("4 GiB did not fit")


@scenario
def batch_size_computed():
    size = replica_tensor.free_memory() * 3 // 4 // (64 * MIB)
    for _ in range(3):
        batch = [Tensor(64 * MIB) for _ in range(size)]
        batch = None
    return batch


if __name__ == "__main__":
    kept = scenarios[sys.argv[1]]()
    print(sys.argv[1], replica_tensor.figures(), flush=True)
