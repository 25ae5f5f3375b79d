#!/usr/bin/env python3
"""Uses of PyTorch that decide where its memory goes; one scenario per process.

    wheel_scenarios.py NAME

The scenarios use only PyTorch's own kernels, which the simulated device does not execute. Nothing here may reach
cuBLAS, cuDNN, NCCL or the like: each contains a CUDA runtime of NVIDIA's, which we never run on the simulated driver.
So no matrix products, convolutions or collectives.

Prints PyTorch's figures of its memory as a line FIGURES {...}, after setting the mark "figures".
"""
import ctypes
import functools
import gc
import json
import os
import sys
import threading
import time

import torch

MIB = 1 << 20
scenarios = {}


def scenario(function):
    scenarios[function.__name__] = function
    return function


def refuse_a_foreign_runtime():
    """The runtime in this process must be the simulated one: RUN_WHEEL_SIM is its folder."""
    folder = os.environ["RUN_WHEEL_SIM"] + os.sep
    with open("/proc/self/maps", encoding="utf-8") as maps:
        loaded = {line.split()[-1] for line in maps if "libcudart" in line}
    if not loaded or any(not path.startswith(folder) for path in loaded):
        sys.exit(f"not the simulated runtime: {loaded}")


def mark(name):
    library = ctypes.CDLL(None)
    if hasattr(library, "gpumem_mark"):
        library.gpumem_mark(name.encode())


# Calls without their own Python frame, so that a finding names the scenario's line.
new = functools.partial(torch.empty, dtype=torch.uint8, device="cuda")
new_on_host = functools.partial(torch.empty, dtype=torch.uint8)


@scenario
def tensors():
    host = torch.arange(100000, dtype=torch.float32)
    kept = host.to("cuda")
    assert torch.equal(kept.cpu(), host)
    views = [kept[10:20], kept.view(1000, 100).t(), kept.reshape(-1)]
    copies = [view.contiguous() for view in views]
    result = torch.relu(kept * 2 + 1).add_(kept)
    scalar = torch.ones(3, device="cuda").sum().item()
    return [kept, views, copies, result, scalar]


@scenario
def training():
    """Elementwise, forwards and backwards, with both kinds of optimiser: nothing may pile up."""
    weight = torch.nn.Parameter(torch.ones(512, 1024, device="cuda"))
    scale = torch.nn.Parameter(torch.ones(1024, device="cuda"))
    data = torch.ones(512, 1024, device="cuda")
    optimisers = [torch.optim.SGD([weight], lr=0.1, momentum=0.9), torch.optim.Adam([scale], lr=0.1)]
    for _ in range(20):
        loss = ((torch.tanh(weight * data) * scale) ** 2).mean()
        loss.backward()
        for optimiser in optimisers:
            optimiser.step()
            optimiser.zero_grad()
        mark("step")
    return [weight, scale, data, optimisers]


# ---- mistakes, and their sound twins --------------------------------------------------------------- The line to blame
# says which finding the report must have (expected_findings.py).


@scenario
def retained_graph():
    """The classic: a list of losses keeps every step's graph."""
    weight = torch.nn.Parameter(torch.ones(256, 1024, device="cuda"))
    losses = []

    def keep_the_graph():
        losses.append(torch.tanh(torch.exp(weight)).mean())  # finding: retained

    for _ in range(10):
        keep_the_graph()
    return [weight, losses]


@scenario
def released_graph():
    weight = torch.nn.Parameter(torch.ones(256, 1024, device="cuda"))
    losses = []
    for _ in range(10):
        losses.append(torch.tanh(torch.exp(weight)).mean().item())
    return [weight, losses]


@scenario
def kept_outputs():
    """Every batch's output stays on the device until all are joined at the end."""
    data = torch.ones(1 << 20, device="cuda")
    outputs = []
    with torch.no_grad():
        for _ in range(30):
            outputs.append(torch.sigmoid(data * 2))  # finding: retained
    return outputs


@scenario
def moved_outputs():
    data = torch.ones(1 << 20, device="cuda")
    outputs = []
    with torch.no_grad():
        for _ in range(30):
            outputs.append(torch.sigmoid(data * 2).sum().item())
    return outputs


def fill_with_pairs(left):
    """Pairs of 9 MiB, two to a segment of 20 MiB, until less than `left` MiB are free."""
    free = torch.cuda.mem_get_info()[0] // MIB
    return [[new(9 * MIB), new(9 * MIB)] for _ in range((min(free, 8192) - left) // 20)]


@scenario
def fragmentation():
    """Much is free, but in holes: a request fails although the sum would suffice. Expandable segments have no such
    holes."""
    expandable = "expandable" in os.environ.get("PYTORCH_ALLOC_CONF", "")
    pairs = fill_with_pairs(500)
    kept = [pair[0] for pair in pairs]
    del pairs[:]
    try:
        new(1024 * MIB)  # finding: pool-fragmentation
        assert expandable, "1 GiB fitted"
    except torch.cuda.OutOfMemoryError as refused:
        assert not expandable and ("1024.00 MiB" in str(refused) or "1.00 GiB" in str(refused)), refused
    return kept


@scenario
def no_fragmentation():
    """Everything is freed: the allocator returns the empty segments, and the request fits."""
    pairs = fill_with_pairs(500)
    del pairs[:]
    return new(1024 * MIB)


@scenario
def cached():
    """One large phase, then a long small one: "PyTorch does not release memory"."""
    large = [new(64 * MIB) for _ in range(40)]  # finding: cached
    del large
    for _ in range(200):
        small = new(MIB)
    return small


@scenario
def cache_emptied():
    large = [new(64 * MIB) for _ in range(40)]
    del large
    torch.cuda.empty_cache()
    for _ in range(200):
        small = new(MIB)
    return small


@scenario
def pageable_copies():
    """A loop over batches in ordinary memory."""
    batches = [new_on_host(MIB) for _ in range(4)]
    for _ in range(10):
        for batch in batches:
            moved = batch.to("cuda", non_blocking=True)  # finding: pageable-copies
    return moved


@scenario
def pinned_copies():
    batches = [new_on_host(MIB).pin_memory() for _ in range(4)]
    for _ in range(10):
        for batch in batches:
            moved = batch.to("cuda", non_blocking=True)
    return moved


@scenario
def pinned_growth():
    """Each step pins another buffer, and keeps it."""
    buffers = []
    for _ in range(24):
        buffers.append(new_on_host(8 * MIB).pin_memory())  # finding: pinned-growth
        buffers[-1].to("cuda", non_blocking=True)
    return buffers


@scenario
def pinned_reused():
    buffer = new_on_host(8 * MIB).pin_memory()
    for _ in range(24):
        moved = buffer.to("cuda", non_blocking=True)
    return [buffer, moved]


@scenario
def device_imbalance():
    """A replica of the model on each device; the first one gathers what both made."""
    replicas = [new(512 * MIB, device=device) for device in ("cuda:0", "cuda:1")]
    gathered = [new(128 * MIB, device="cuda:0") for _ in range(12)]  # finding: device-imbalance
    return [replicas, gathered]


@scenario
def device_balance():
    return [new(128 * MIB, device=device) for device in ("cuda:0", "cuda:1") for _ in range(16)]


@scenario
def out_of_memory():
    """Requests more than there is, which ends the program, as it does most."""
    try:
        return [new(64 * MIB) for _ in range(200)]  # finding: out-of-memory; note: retained
    except torch.cuda.OutOfMemoryError:
        return None


@scenario
def batch_size():
    """The search for the largest batch, by caught failures."""
    size, batch = 256, None
    while batch is None:
        try:
            batch = [new(64 * MIB) for _ in range(size)]  # finding: batch-size-search
        except torch.cuda.OutOfMemoryError:
            size = size * 3 // 4
    return batch


@scenario
def batch_size_computed():
    """The same batch without a failure, because the program first asks how much is free."""
    size = min(torch.cuda.mem_get_info()[0] // MIB, 8192) * 3 // 4 // 64
    for _ in range(3):
        batch = [new(64 * MIB) for _ in range(size)]
        batch = None
    return batch


@scenario
def empty_cache():
    blocks = [new(30 * MIB) for _ in range(10)]
    before = torch.cuda.memory_reserved()
    del blocks[::2]
    torch.cuda.empty_cache()
    # PyTorch returns only whole physical pieces of an expandable segment.
    assert before // 2 <= torch.cuda.memory_reserved() < before
    return blocks


@scenario
def streams():
    stream = torch.cuda.Stream()
    for _ in range(50):
        with torch.cuda.stream(stream):
            block = new(4 * MIB)
        block.record_stream(torch.cuda.current_stream())
        del block
    event = torch.cuda.Event(enable_timing=True)
    event.record(stream)
    event.synchronize()
    return None


@scenario
def pinned():
    """Pinned memory comes in powers of two; the workers of a loader are separate processes."""
    block = new_on_host(5 * MIB).pin_memory()  # finding: pinned-waste
    assert block.is_pinned()
    kept = block.to("cuda", non_blocking=True)
    data = torch.utils.data.TensorDataset(torch.arange(4000.0))
    loader = torch.utils.data.DataLoader(data, batch_size=100, num_workers=2, pin_memory=True)
    seen = sum(batch[0].to("cuda", non_blocking=True).numel() for batch in loader)
    assert seen == 4000
    return [block, kept]


@scenario
def pools():
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        inside = new(3 * MIB)
    return [pool, inside, new(3 * MIB)]


@scenario
def graphs():
    """Capture and replay: segments of a pool of the graph's own."""
    data = torch.ones(100000, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = data * 2 + 1
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    return [graph, data, result]


@scenario
def million():
    """A million reports, including those of the collector."""
    sizes = [1 << (n % 22) for n in range(97)]
    kept = [None] * 31
    for n in range(500000):
        kept[n % 31] = torch.empty(sizes[n % 97], dtype=torch.uint8, device="cuda")
    return kept


@scenario
def contention():
    """Threads that need the GIL, the allocator and the collector at the same time. RUN_WHEEL_SECONDS: how long."""
    end = time.monotonic() + float(os.environ.get("RUN_WHEEL_SECONDS", "5"))

    def work():
        while time.monotonic() < end:
            cycle = [torch.ones(1000, device="cuda", requires_grad=True)]
            cycle.append(cycle)
            (cycle[0] * 2).sum().backward()

    def collect():
        while time.monotonic() < end:
            gc.collect()
            time.sleep(0.001)  # it holds the GIL: let the others run

    threads = [threading.Thread(target=work) for _ in range(4)] + [threading.Thread(target=collect)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    return None


def figures():
    """The figures of all devices together."""
    stats = [torch.cuda.memory_stats(device) for device in range(torch.cuda.device_count())]

    def total(name):
        return sum(device.get(name, 0) for device in stats)

    return {
        "allocated": total("allocated_bytes.all.current"),
        "reserved": total("reserved_bytes.all.current"),
        "peak_allocated": total("allocated_bytes.all.peak"),
        "peak_reserved": total("reserved_bytes.all.peak"),
        "allocations": total("allocation.all.allocated"),
        "frees": total("allocation.all.freed"),
        "refusals": total("num_ooms"),
    }


def stay_small():
    """On a GPU, scenarios that fill the device get as much as the simulated one has: 8 GiB."""
    torch.cuda.set_per_process_memory_fraction(min(1.0, (8 << 30) / torch.cuda.mem_get_info()[1]))


def main():
    if "RUN_WHEEL_SIM" in os.environ:
        refuse_a_foreign_runtime()
    else:
        stay_small()
    kept = scenarios[sys.argv[1]]()
    torch.cuda.synchronize()
    mark("figures")
    print("FIGURES", json.dumps(figures()))
    del kept


if __name__ == "__main__":
    main()
