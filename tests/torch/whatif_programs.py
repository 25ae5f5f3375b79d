"""
Programs whose requests whatif_wheel.py replays.

On stdin stands a list of jobs as JSON: `name` of the program (or random:SEED:EVENTS), `setting`, `fraction` of the device (0: all), `snapshot`
(a file to write, or ""). Each runs on the real PyTorch in a process of its own and prints its figures. No program goes
on after a request that could be refused: the rest of it would depend on the settings.
"""
import contextlib
import gc
import json
import os
import random
import sys
import warnings

import torch

MIB = 1 << 20
VARIABLE = "PYTORCH_CUDA_ALLOC_CONF"  # every version takes it; from 2.9 on PYTORCH_ALLOC_CONF is the same


def requests(seed, count, most, streams=1, pools=0, sizes=(1, 7.9), empties=0.002):
    """Random requests and frees, with at most so many bytes in use, on some streams and in some pools. That the cache
    is emptied stands in a recording only if something went, so programs do it where something goes."""
    rng = random.Random(seed)
    on = [torch.cuda.default_stream()] + [torch.cuda.Stream() for _ in range(streams - 1)]
    private = [torch.cuda.MemPool() for _ in range(pools)]
    live, total = [], 0
    for _ in range(count):
        draw = rng.random()
        if live and (draw < 0.47 or total > most):
            pointer, size = live.pop(rng.randrange(len(live)) if rng.random() < 0.7 else -1)
            torch.cuda.caching_allocator_delete(pointer)
            total -= size
        elif draw < 0.47 + empties:
            torch.cuda.empty_cache()
        else:
            size = int(10 ** rng.uniform(*sizes))
            if total + size > 1.2 * most:
                continue
            stream = rng.choice(on) if rng.random() < 0.2 else on[0]
            if private and rng.random() < 0.3:
                with torch.cuda.use_mem_pool(rng.choice(private)):
                    pointer = torch.cuda.caching_allocator_alloc(size, 0, stream.cuda_stream)
            else:
                pointer = torch.cuda.caching_allocator_alloc(size, 0, stream.cuda_stream)
            live.append((pointer, size))
            total += size


def train(hidden, steps, growing):
    """A model that is trained; its batches grow, if wanted."""
    torch.manual_seed(1)
    layers = [torch.nn.Parameter(torch.ones(hidden, hidden, device="cuda")) for _ in range(4)]
    optimizer = torch.optim.AdamW(layers)
    for step in range(steps):
        batch = 64 + (37 * step if growing else 0)
        value = torch.ones(batch, 1, hidden, device="cuda")
        for layer in layers:  # no matrices are multiplied: the simulator has no cuBLAS
            value = (value * layer[: hidden // 8]).sum(1, keepdim=True).tanh()
        loss = value.sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def beams():
    """Tensors that shrink in turns, so that holes stay behind."""
    held = []
    for turn in range(60):
        held.append(torch.empty((64 - turn) * MIB // 2 + 333, dtype=torch.uint8, device="cuda"))
        if turn % 3 == 2:
            del held[turn // 2 % len(held)]


def fragmentation():
    """Two of three blocks are given back, and then a large one is asked for, which is refused or not."""
    groups = [[torch.empty(size * MIB, dtype=torch.uint8, device="cuda") for size in (6, 6, 6)] for _ in range(250)]
    kept = [group[0] for group in groups]
    groups.clear()
    try:
        kept.append(torch.empty(3500 * MIB, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        pass


def record_stream():
    """Blocks that another stream still uses when they are given back."""
    other = torch.cuda.Stream()
    for turn in range(40):
        one = torch.empty((turn % 7 + 1) * MIB + 77, dtype=torch.uint8, device="cuda")
        one.record_stream(other)
        two = torch.empty((turn % 5 + 1) * 3 * MIB, dtype=torch.uint8, device="cuda")
        del one, two


class Anything:
    """Requests and frees at random until there were so many, in episodes that differ in how much memory they want, in
    how large their blocks are and in what they mix: streams, private pools, blocks that other streams still use, graphs
    that are captured, and the cache emptied. What is refused is passed over."""

    def __init__(self, seed, limit):
        self.rng, self.limit, self.live, self.total = random.Random(seed), limit, [], 0
        self.streams = [torch.cuda.default_stream()] + [torch.cuda.Stream() for _ in range(2)]
        self.has_pools, self.pools = hasattr(torch.cuda, "MemPool"), []

    def give_back(self, at):
        self.live[at], self.live[-1] = self.live[-1], self.live[at]
        block, size = self.live.pop()
        self.total -= size
        if isinstance(block, int):
            torch._C._cuda_cudaCachingAllocator_raw_delete(block)
        elif self.rng.random() < 0.5:
            block.record_stream(self.rng.choice(self.streams))

    def ask(self, size, stream, pool, as_tensor):
        """True: it was given."""
        with torch.cuda.use_mem_pool(pool) if pool else contextlib.nullcontext():
            try:
                if as_tensor:
                    with torch.cuda.stream(stream):
                        block = torch.empty(size, dtype=torch.uint8, device="cuda")
                else:
                    block = torch._C._cuda_cudaCachingAllocator_raw_alloc(size, stream.cuda_stream)
            except torch.cuda.OutOfMemoryError:
                return False
        self.live.append((block, size))
        self.total += size
        return True

    def capture(self, count):
        """A graph with some blocks of its own, of which the last few outlive the capture, but not the graph."""
        graph, held = torch.cuda.CUDAGraph(), []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the graph is empty
            with torch.cuda.graph(graph):
                for _ in range(count):
                    with contextlib.suppress(torch.cuda.OutOfMemoryError):
                        size = int(10 ** self.rng.uniform(1, 7.3))
                        held.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
                    if held and self.rng.random() < 0.5:
                        held.pop(self.rng.randrange(len(held)))
        held.clear()
        graph.reset()
        return 2 * count

    def episode(self, count):
        rng, live = self.rng, self.live
        most = self.limit * rng.choice((0.02, 0.1, 0.3, 0.6, 0.8, 0.9))
        largest = rng.choice((5, 6.2, 7.5, 8.3, 8.7))
        on_others, in_pools = rng.choice((0, 0.05, 0.3)), rng.choice((0, 0.1)) if self.has_pools else 0
        tensors, empties = rng.choice((0, 0.1, 0.4)), rng.choice((0, 0.0003, 0.003))
        done = 0
        if in_pools and not self.pools:
            self.pools = [torch.cuda.MemPool() for _ in range(2)]
        if rng.random() < 0.2 and self.total < self.limit / 2:
            done += self.capture(30)
        while done < count:
            draw = rng.random()
            if live and (draw < 0.48 or self.total > most):
                self.give_back(rng.randrange(len(live)) if rng.random() < 0.7 else -1)
            elif draw < 0.48 + empties:
                torch.cuda.empty_cache()
                continue
            else:
                size = int(10 ** rng.uniform(1, largest if rng.random() < 0.5 else min(largest, 5.5)))
                stream = rng.choice(self.streams) if rng.random() < on_others else self.streams[0]
                pool = rng.choice(self.pools) if rng.random() < in_pools else None
                if not self.ask(size, stream, pool, rng.random() < tensors):
                    for _ in range(min(len(live), 20)):
                        self.give_back(rng.randrange(len(live)))
            done += 1
        return done

    def run(self, events):
        while events > 0:
            events -= self.episode(min(events, self.rng.randrange(500, 8000)))
            if self.rng.random() < 0.5:
                while self.live:
                    self.give_back(-1)
                self.pools.clear()


PROGRAMS = {
    "small": lambda: requests(1, 1200, 64 * MIB, sizes=(1, 6.2), empties=0),
    "large": lambda: requests(2, 700, 2000 * MIB, sizes=(6, 8.3)),
    "mixed": lambda: requests(3, 1500, 1500 * MIB),
    "streams": lambda: requests(4, 1500, 1500 * MIB, streams=3),
    "pools": lambda: requests(5, 1000, 1000 * MIB, pools=2),
    "beams": beams,
    "fragmentation": fragmentation,
    "record_stream": record_stream,
    "train": lambda: train(768, 3, False),
    "train_growing": lambda: train(512, 8, True),
    "churn": lambda: requests(6, 2500, 300 * MIB, sizes=(3, 7.2), empties=0),
}


def run(job):
    """One program; the settings of the environment count when it first uses the device."""
    os.environ[VARIABLE] = job["setting"]
    gc.disable()
    torch.cuda.init()
    if job["fraction"]:
        torch.cuda.set_per_process_memory_fraction(job["fraction"])
    if job["snapshot"]:
        torch.cuda.memory._record_memory_history("all", stacks="python", max_entries=10**7)
    if job["name"].startswith("random:"):
        seed, events = (int(word) for word in job["name"].split(":")[1:])
        Anything(seed, torch.cuda.get_device_properties(0).total_memory * job.get("limit", 1)).run(events)
    else:
        PROGRAMS[job["name"]]()
    stats = torch.cuda.memory_stats()
    figures = {"reserved_peak": stats["reserved_bytes.all.peak"], "out_of_memory": stats["num_ooms"]}
    if "num_device_alloc" in stats:  # since 2.2
        figures["device_allocations"] = stats["num_device_alloc"]
    print("FIGURES", json.dumps({"process": os.getpid(), "figures": figures}), flush=True)
    if job["snapshot"]:
        torch.cuda.memory._dump_snapshot(job["snapshot"])


def main():
    """A process for each job: PyTorch is imported once."""
    for job in json.load(sys.stdin):
        child = os.fork()
        if child == 0:
            run(job)
            sys.exit(0)
        if os.waitpid(child, 0)[1]:
            sys.exit(f"{job['name']} under '{job['setting']}' failed")


if __name__ == "__main__":
    main()
