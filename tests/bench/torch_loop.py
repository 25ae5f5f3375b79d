"""A loop of small steps on the real PyTorch, for scripts/bench: the cost that a user of gpumem sees.

    torch_loop.py [HISTORY]

A step is 40 layers of relu(a * b) + b on 1,024 floats: PyTorch's allocator hands out 120 blocks and takes 120 back,
each operator on its own call path. With HISTORY, "python" or "all", PyTorch keeps its own history with these stacks.

Prints "ready"; then, for each number of steps that it reads, the time of the median step in us.
"""
import os
import statistics
import sys
import threading
import time

import torch

HISTORY_ENTRIES = 100_000


def refuse_a_foreign_runtime():
    """The runtime in this process must be the simulated one: RUN_WHEEL_SIM is its folder."""
    folder = os.environ["RUN_WHEEL_SIM"] + os.sep
    with open("/proc/self/maps", encoding="utf-8") as maps:
        loaded = {line.split()[-1] for line in maps if "libcudart" in line}
    if not loaded or any(not path.startswith(folder) for path in loaded):
        sys.exit(f"not the simulated runtime: {loaded}")


def start_a_thread():
    """CUDA's driver starts threads but the simulator does not, and libc's locks cost more in a process with threads."""
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def layer(a, b):
    return torch.relu(a * b) + b


def step(a, b):
    for _ in range(40):
        a = layer(a, b)
    return a


def times(steps, a, b):
    clock, taken = time.perf_counter_ns, []
    for _ in range(steps):
        began = clock()
        step(a, b)
        taken.append((clock() - began) / 1000)
    return taken


def main():
    a, b = (torch.ones(1024, device="cuda") for _ in range(2))
    refuse_a_foreign_runtime()
    start_a_thread()
    if len(sys.argv) > 1:
        torch.cuda.memory._record_memory_history("all", "all", sys.argv[1], HISTORY_ENTRIES)
    times(300, a, b)
    print("ready", flush=True)
    for line in sys.stdin:
        print(f"{statistics.median(times(int(line), a, b)):.2f}", flush=True)


main()
