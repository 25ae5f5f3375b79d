#!/usr/bin/env python3
"""What people do with PyTorch that decides where its memory goes; one scenario per process.

    wheel_scenarios.py NAME

Only kernels of PyTorch's own are used, which the simulated device does not execute. Nothing here may
reach cuBLAS, cuDNN, NCCL or the like: each brings a CUDA runtime of NVIDIA's inside, and that is never run
on the simulated driver. So no matrix products, convolutions or collectives.

Prints what PyTorch says of its memory as a line FIGURES {...}, after setting the mark "figures".
"""
import ctypes
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


def megabytes(size, device="cuda"):
    return torch.empty(size * MIB, dtype=torch.uint8, device=device)


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


@scenario
def retained_graph():
    """The classic: a list of losses keeps every step's graph."""
    weight = torch.nn.Parameter(torch.ones(256, 1024, device="cuda"))
    losses = []

    def keep_the_graph():
        losses.append(torch.tanh(torch.exp(weight)).mean())

    for _ in range(10):
        keep_the_graph()
    return [weight, losses]


@scenario
def fragmentation():
    """Much is free, but in holes: a request fails that would fit their sum."""
    blocks = []
    try:
        while True:
            blocks.append([megabytes(9), megabytes(9)])
    except torch.cuda.OutOfMemoryError:
        pass
    kept = [pair[0] for pair in blocks]
    del blocks[:]
    try:
        megabytes(1024)
    except torch.cuda.OutOfMemoryError as refused:
        assert "1024.00 MiB" in str(refused) or "1.00 GiB" in str(refused), refused
    else:
        raise AssertionError("1 GiB fitted")
    return kept


@scenario
def batch_size():
    """The search for the largest batch, by caught failures."""
    size, refusals = 1, 0
    while refusals < 3:
        try:
            batch = [megabytes(64) for _ in range(size)]
            size *= 2
        except torch.cuda.OutOfMemoryError:
            refusals += 1
            size = size * 3 // 4
        batch = None
    return batch


@scenario
def empty_cache():
    blocks = [megabytes(30) for _ in range(10)]
    before = torch.cuda.memory_reserved()
    del blocks[::2]
    torch.cuda.empty_cache()
    # Of an expandable segment only whole physical pieces go back.
    assert before // 2 <= torch.cuda.memory_reserved() < before
    return blocks


@scenario
def streams():
    stream = torch.cuda.Stream()
    for _ in range(50):
        with torch.cuda.stream(stream):
            block = megabytes(4)
        block.record_stream(torch.cuda.current_stream())
        del block
    event = torch.cuda.Event(enable_timing=True)
    event.record(stream)
    event.synchronize()
    return None


@scenario
def pinned():
    """Pinned memory comes in powers of two; the workers of a loader are processes of their own."""
    block = megabytes(5, "cpu").pin_memory()
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
        inside = megabytes(3)
    return [pool, inside, megabytes(3)]


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
    """A million reports, and the collector's among them."""
    sizes = [1 << (n % 22) for n in range(97)]
    kept = [None] * 31
    for n in range(500000):
        kept[n % 31] = torch.empty(sizes[n % 97], dtype=torch.uint8, device="cuda")
    return kept


@scenario
def contention():
    """Threads that want the GIL, the allocator and the collector at once. RUN_WHEEL_SECONDS: how long."""
    end = time.monotonic() + float(os.environ.get("RUN_WHEEL_SECONDS", "5"))

    def work():
        while time.monotonic() < end:
            cycle = [torch.ones(1000, device="cuda", requires_grad=True)]
            cycle.append(cycle)
            (cycle[0] * 2).sum().backward()

    def collect():
        while time.monotonic() < end:
            gc.collect()
            time.sleep(0.001)  # it holds the GIL: leave the others some

    threads = [threading.Thread(target=work) for _ in range(4)] + [threading.Thread(target=collect)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    return None


def figures():
    stats = torch.cuda.memory_stats()
    return {
        "allocated": torch.cuda.memory_allocated(),
        "reserved": torch.cuda.memory_reserved(),
        "peak_allocated": torch.cuda.max_memory_allocated(),
        "peak_reserved": torch.cuda.max_memory_reserved(),
        "allocations": stats.get("allocation.all.allocated", 0),
        "frees": stats.get("allocation.all.freed", 0),
        "refusals": stats.get("num_ooms", 0),
    }


def stay_small():
    """On a GPU the scenarios that fill it get as much as the simulated one has: 8 GiB."""
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
