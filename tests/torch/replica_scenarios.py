#!/usr/bin/env python3
"""What people do wrong with PyTorch's memory, and its healthy twin; one scenario per process.

    replica_scenarios.py NAME

The line that a finding must name has the comment "# here".
"""
import sys

from torch import replica_tensor
from torch.replica_tensor import Tensor

MIB = 1 << 20
scenarios = {}


def scenario(function):
    scenarios[function.__name__] = function
    return function


def step(keep):
    activation = Tensor(3 * MIB)  # here
    temporary = Tensor(5 * MIB)
    del temporary
    if keep is not None:
        keep.append(activation)


@scenario
def retained():
    losses = []
    for _ in range(30):
        step(losses)


@scenario
def retained_twin():
    weights = [Tensor(3 * MIB) for _ in range(20)]
    for _ in range(30):
        step(None)
    return weights


def fill():
    """7.6 of the device's 8 GiB, two blocks to a segment."""
    return [Tensor(9 * MIB) for _ in range(780)]


@scenario
def fragmentation():
    kept = fill()[::2]
    try:
        Tensor(1024 * MIB)  # here
    except MemoryError:
        return kept


@scenario
def fragmentation_twin():
    """As much is free, in segments without a block."""
    blocks = fill()
    kept = blocks[:len(blocks) // 2]
    del blocks
    Tensor(1024 * MIB)
    return kept


def work(tensors, times):
    for _ in range(times):
        blocks = [Tensor(32 * MIB) for _ in range(tensors)]
    return blocks


@scenario
def cached():
    work(8, 50)
    work(1, 400)


@scenario
def cached_twin():
    work(8, 50)
    work(7, 50)


@scenario
def pageable_copies():
    batch = Tensor(2 * MIB)
    for _ in range(20):
        batch.copy_from(replica_tensor.pageable(2 * MIB))  # here


@scenario
def pageable_copies_twin():
    """A model is loaded; batches come from pinned memory."""
    weights = [Tensor(2 * MIB) for _ in range(20)]
    for weight in weights:
        weight.copy_from(replica_tensor.pageable(2 * MIB))
    host = replica_tensor.pin(2 * MIB)
    for _ in range(20):
        weights[0].copy_from(host)


@scenario
def pinned_growth():
    batch = Tensor(MIB)
    for _ in range(100):
        batch.copy_from(replica_tensor.pin(MIB))  # here


@scenario
def pinned_growth_twin():
    batch = Tensor(MIB)
    buffers = [replica_tensor.pin(MIB) for _ in range(30)]
    for number in range(400):
        batch.copy_from(buffers[number % 30])


def batches(sizes):
    for size in sizes:
        try:
            return Tensor(size * 1024 * MIB)  # here
        except MemoryError:
            pass


@scenario
def batch_size_search():
    return batches([32, 16, 9, 4])


@scenario
def batch_size_search_twin():
    return batches([4])


@scenario
def device_imbalance():
    return [Tensor(1024 * MIB, 1), Tensor(300 * MIB, 0)]  # here


@scenario
def device_imbalance_twin():
    return [Tensor(1024 * MIB, 1), Tensor(800 * MIB, 0)]


if __name__ == "__main__":
    scenarios[sys.argv[1]]()
