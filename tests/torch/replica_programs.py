#!/usr/bin/env python3
"""Realistic programs with PyTorch, on the replica, sound and not; one per process.

    replica_programs.py NAME [marked]

With `marked` they name their steps. Comments say which finding the report must have (expected_findings.py).
"""
import collections
import sys

import gpumem
from torch import replica_tensor
from torch.replica_tensor import Tensor

KIB, MIB = 1 << 10, 1 << 20
LAYERS = 8
marked = "marked" in sys.argv[2:]
scenarios = {}


def scenario(function):
    scenarios[function.__name__] = function
    return function


def step_done(name):
    if marked:
        gpumem.mark(name)


def sizes(count, least, most):
    """As if drawn at random, the same in every run."""
    return [least + number * 7919 % 101 * (most - least) // 100 for number in range(count)]


def forward(size):
    """Activations of each layer, with temporaries that end at once."""
    activations = []
    for _ in range(LAYERS):
        temporary = Tensor(size)
        activations.append(Tensor(size))
        del temporary
    return activations


def backward(activations, gradients):
    for layer in reversed(range(LAYERS)):
        if gradients[layer] is None:
            gradients[layer] = Tensor(2 * MIB)
        activations.pop()


# ---- sound -----------------------------------------------------------------------------------------------------


@scenario
def fit():
    """Batches of all sizes, accumulated gradients, an optimizer's state and averages that come late, a validation
    after each epoch whose results are joined, checkpoints."""
    weights, gradients, state = [Tensor(2 * MIB) for _ in range(LAYERS)], [None] * LAYERS, None
    for number, size in enumerate(sizes(60, MIB, 4 * MIB)):
        backward(forward(size), gradients)
        if number % 4 == 3:
            state = state or [Tensor(2 * MIB) for _ in range(2 * LAYERS)]
            gradients = [None] * LAYERS
        if number == 20:
            weights += [Tensor(2 * MIB) for _ in range(LAYERS)]
        step_done("step")
        if number % 20 == 19:
            predictions = []
            for _ in range(20):
                predictions.append(forward(512 * KIB)[-1])
                step_done("validation")
            joined = Tensor(10 * MIB)
            del predictions, joined
            step_done("epoch")
    return [weights, state]


@scenario
def generate():
    """Requests of any length: each layer keeps each token until the request ends; the last is the longest."""
    weights = [Tensor(8 * MIB) for _ in range(LAYERS)]
    for tokens in [*sizes(10, 8, 40), 60]:
        remembered = []
        for _ in range(tokens):
            remembered += [Tensor(64 * KIB) for _ in range(LAYERS)]
            forward(128 * KIB)
            step_done("token")
        del remembered
        step_done("request")
    return weights


@scenario
def growing_batches():
    """The largest batch comes last; the memory that the allocator keeps for it is its cache."""
    weights = [Tensor(2 * MIB) for _ in range(LAYERS)]
    for size in sorted(sizes(40, MIB, 3 * MIB)):
        forward(size)
        step_done("batch")
    return weights


@scenario
def cached_dataset():
    """The first epoch copies the samples to the device, the others reuse them."""
    samples = {}
    for number in range(160):
        key = number % 40
        if key not in samples:
            samples[key] = Tensor(MIB)
        forward(512 * KIB)
        step_done("sample")
    return samples


@scenario
def recent_prompts():
    """Keeps the sixteen prompts used last."""
    prompts = collections.OrderedDict()
    for number, size in enumerate(sizes(200, 256 * KIB, 2 * MIB)):
        prompts[number] = Tensor(size)
        if len(prompts) > 16:
            prompts.popitem(last=False)
        forward(256 * KIB)
        step_done("request")
    return prompts


@scenario
def student_after_teacher():
    """One model after the other; the cache is emptied in between."""
    teacher = [Tensor(32 * MIB) for _ in range(LAYERS)]
    for _ in range(20):
        forward(4 * MIB)
        step_done("teach")
    del teacher
    replica_tensor.cuda.replica_empty_cache(0)
    student = [Tensor(4 * MIB) for _ in range(LAYERS)]
    for _ in range(20):
        forward(MIB)
        step_done("study")
    return student


@scenario
def many_small():
    """Nodes of a graph that is rewritten all the time."""
    nodes = [Tensor(4 * KIB) for _ in range(500)]
    for number in range(2000):
        nodes[number * 7919 % 500] = Tensor(4 * KIB)
        if number % 50 == 0:
            step_done("rewrite")
    return nodes


@scenario
def first_batch_too_large():
    """The device is full in the middle of the first forward pass: nothing piled up, the batch is too large."""
    weights = [Tensor(8 * MIB) for _ in range(LAYERS)]
    activations = []
    try:
        for _ in range(64):
            scores = Tensor(300 * MIB)
            activations.append(Tensor(200 * MIB))  # finding: out-of-memory; note: retained
            del scores
    except MemoryError:
        pass
    return [weights, activations]


# ---- not -------------------------------------------------------------------------------------------------------


@scenario
def logged_losses():
    """Appends losses with their graphs."""
    weights, log = [Tensor(2 * MIB) for _ in range(LAYERS)], []
    for _ in range(30):
        log.append([Tensor(MIB), Tensor(2 * MIB)])  # finding: retained; marked: growing
        forward(MIB)
        step_done("step")
    return [weights, log]


@scenario
def predictions_of_all_epochs():
    """Keeps the results of each validation for a plot at the end."""
    kept = []
    for _ in range(8):
        for _ in range(20):
            forward(MIB)
            step_done("step")
        kept.append(Tensor(6 * MIB))  # finding: retained; marked: growing
        step_done("epoch")
    return kept


@scenario
def kept_until_full():
    """The memory that each step keeps fills the device in the end."""
    kept = []
    try:
        for _ in range(300):
            batch = [Tensor(64 * MIB) for _ in range(16)]  # finding: out-of-memory
            del batch
            kept.append(Tensor(200 * MIB))  # finding: retained; marked: growing
            step_done("step")
    except MemoryError:
        pass
    return kept


@scenario
def joined_every_step():
    """Joins each result with all earlier ones, in a new tensor."""
    joined = None
    for number in range(40):
        forward(256 * KIB)
        joined = Tensor((number + 1) * 256 * KIB)  # finding: retained; marked: growing
        step_done("step")
    return joined


@scenario
def forgotten_requests():
    """Every fifth request is cancelled, and its state stays."""
    lost = []
    for number in range(60):
        remembered = [Tensor(512 * KIB) for _ in range(10)]  # finding: retained; marked: growing
        forward(128 * KIB)
        if number % 5 == 2:
            lost.append(remembered)
        del remembered
        step_done("request")
    return lost


if __name__ == "__main__":
    kept = scenarios[sys.argv[1]]()
    print(sys.argv[1], replica_tensor.figures(), flush=True)
