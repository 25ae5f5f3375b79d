"""Programs that take memory snapshots with the real PyTorch: snapshot_programs.py FOLDER [NAME...]

Each writes FOLDER/NAME.pickle (the snapshot), the same by every protocol of pickle, and NAME.json: what PyTorch's own
counters said, for each device: allocated, reserved and requested bytes at their peak and at last. Each runs in a process
of its own, with plain and with expandable segments.
"""
import inspect
import json
import os
import pickle
import sys

import torch

MIB = 1 << 20
record = torch.cuda.memory._record_memory_history
KNOWN = inspect.signature(record).parameters


def start(**wanted):
    """Records; what this version does not know is left out."""
    if "max_entries" not in KNOWN and "enabled" in KNOWN and not isinstance(inspect.signature(record).parameters["enabled"].default, str):
        record(True)
        return
    record(**{name: value for name, value in wanted.items() if name in KNOWN or "kwargs" in KNOWN})


def tensor(mib, device=0):
    return torch.empty(int(mib * MIB), dtype=torch.uint8, device=f"cuda:{device}")


def steps(device=0, count=6):
    kept = []
    for step in range(count):
        scratch = [tensor(3 + step, device), tensor(0.3, device), tensor(30, device)]
        kept.append(tensor(1.7, device))
        del scratch
    return kept


def plain():
    start()
    return steps()


def without_history():
    return steps()


def without_stacks():
    start(enabled="all", context=None, stacks="python")
    return steps()


def state_only():
    start(enabled="state", context="state")
    return steps()


def native_stacks():
    start(context="all", stacks="all")
    return steps()


def wrapped():
    start(max_entries=40)
    return steps(count=60)


def wrapped_hard():
    start(max_entries=3)
    return steps(count=20)


def late():
    """Recording begins when much is there, and something of it is freed."""
    early = steps(count=3)
    before = tensor(50)
    del before
    start()
    del early[0]
    return early + steps(count=3)


def emptied():
    start()
    kept = steps()
    del kept[1:]
    torch.cuda.empty_cache()
    return kept + steps(count=2)


def two_devices():
    start()
    return steps(0) + steps(min(1, torch.cuda.device_count() - 1), 4)


def streams():
    start()
    other = torch.cuda.Stream()
    kept = steps(count=2)
    with torch.cuda.stream(other):
        kept += steps(count=3)
    passed = tensor(5)
    passed.record_stream(other)
    del passed
    return kept


def out_of_memory():
    start()
    kept = steps()
    try:
        kept.append(tensor(1 << 20))
    except torch.cuda.OutOfMemoryError:
        pass
    kept.append(tensor(2))
    return kept


def of_limit():
    """A limit of the program's own refuses."""
    torch.cuda.set_per_process_memory_fraction(0.02)
    start()
    kept = steps(count=3)
    try:
        while True:
            kept.append(tensor(64))
    except torch.cuda.OutOfMemoryError:
        pass
    return kept


def annotated():
    start()
    with torch.profiler.record_function("a step <b>"):
        kept = steps(count=2)
    if hasattr(torch._C, "_cuda_beginAllocateCurrentThreadToPool") and hasattr(torch.cuda.memory, "_set_memory_metadata"):
        torch.cuda.memory._set_memory_metadata("layer 7")
        kept += steps(count=2)
        torch.cuda.memory._set_memory_metadata("")
    return kept


def pool():
    start()
    kept = steps(count=2)
    if hasattr(torch.cuda, "MemPool"):
        own = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(own):
            kept += steps(count=3)
        kept.append(own)
    return kept


def pinned():
    start(record_pinned_host_memory=True)
    return steps(count=2) + [torch.empty(3 * MIB, dtype=torch.uint8, pin_memory=True), torch.empty(100, pin_memory=True)]


def training():
    start()
    model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(6)]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        loss = model(torch.zeros(64, 512, device="cuda")).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return [model, optimizer]


PROGRAMS = {name: one for name, one in list(globals().items())
            if inspect.isfunction(one) and one.__module__ == __name__ and name not in ("start", "tensor", "steps", "figures")}


def figures():
    found = {}
    for device in range(torch.cuda.device_count()):
        stats = torch.cuda.memory_stats(device)
        if stats.get("reserved_bytes.all.peak"):
            found[device] = {f"{what}_{when}": stats[f"{what}_bytes.all.{when}"] for what in ("allocated", "reserved", "requested")
                             for when in ("current", "peak")}
    return found


def take(name, folder):
    path = os.path.join(folder, name.replace("_", "-") + (".expandable" if os.environ.get("PYTORCH_CUDA_ALLOC_CONF") else ""))
    kept = PROGRAMS[name]()
    torch.cuda.synchronize()
    numbers = figures()
    torch.cuda.memory._dump_snapshot(path + ".pickle")
    with open(path + ".pickle", "rb") as file:
        snapshot = pickle.load(file)
    for protocol in range(6):
        with open(f"{path}.protocol{protocol}", "wb") as file:
            pickle.dump(snapshot, file, protocol=protocol)
    with open(path + ".json", "w", encoding="utf-8") as file:
        json.dump(numbers, file)
    del kept


def main():
    failed = 0
    for name in sys.argv[2:] or PROGRAMS:
        for settings in ("", "expandable_segments:True"):
            child = os.fork() # before CUDA is used: torch is loaded once for all
            if child == 0:
                os.environ["PYTORCH_CUDA_ALLOC_CONF"] = settings
                code = 1
                try:
                    take(name, sys.argv[1])
                    code = 0
                finally:
                    sys.stdout.flush()
                    sys.stderr.flush()
                    os._exit(code)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if code:
                failed += 1
                print(f"{name} {settings}: {code}", file=sys.stderr, flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
