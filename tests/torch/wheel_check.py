#!/usr/bin/env python3
"""Runs the scenarios on the real PyTorch under gpumem and compares the trace with PyTorch's own figures.

    wheel_check.py BUILD [SCENARIO]...

One line per scenario, PASS or FAIL with figures; exit code 1 if any failed. Run by run_wheel, which
prepares the wheel.
"""
import glob
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import blocks  # noqa: E402
import expected_findings  # noqa: E402
import trace_reader as t  # noqa: E402

SCENARIOS = os.path.join(HERE, "wheel_scenarios.py")
# scenario, the same under another name, environment
RUNS = [(name, name, {}) for name in (
    "tensors", "training", "empty_cache", "streams", "pinned", "pools", "graphs", "million", "contention",
    # a mistake, and its sound twin
    "retained_graph", "released_graph", "kept_outputs", "moved_outputs", "fragmentation", "no_fragmentation",
    "cached", "cache_emptied", "pageable_copies", "pinned_copies", "pinned_growth", "pinned_reused",
    "out_of_memory", "batch_size", "batch_size_computed")]
RUNS += [(name, name, {"GPUMEM_SIM_DEVICES": "2"}) for name in ("device_imbalance", "device_balance")]
RUNS += [(name, name + "/expandable", {"PYTORCH_ALLOC_CONF": "expandable_segments:True"})
         for name in ("tensors", "training", "fragmentation", "out_of_memory", "empty_cache", "contention")]
RUNS += [(name, name + "/cudaMallocAsync", {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"})
         for name in ("tensors", "training")]
RUNS += [(name, name + "/no caching", {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}) for name in ("tensors", "training")]


def symbols(library):
    """Names of the reports that a library defines and needs, by readelf."""
    text = subprocess.check_output(["readelf", "-W", "--dyn-syms", library], text=True)
    names = re.findall(r" (\S+) (_ZN3c10\d+report(?:MemoryUsage|OutOfMemory)ToProfiler\w+)", text)
    return {name for index, name in names if index != "UND"}, {name for index, name in names if index == "UND"}


def check_symbols(folder, preload):
    core, _ = symbols(os.path.join(folder, "libc10.so"))
    _, needed = symbols(os.path.join(folder, "libc10_cuda.so"))
    ours, _ = symbols(preload)
    problems = [f"libc10_cuda.so needs {name}, which {where}" for name in needed
                for where, there in (("libc10.so does not export", core), ("gpumem does not hook", ours))
                if name not in there]
    if not needed:
        problems.append("libc10_cuda.so imports no report")
    return problems, f"{len(needed)} reports imported by libc10_cuda.so, exported by libc10.so, hooked"


def run(command, folder, environment):
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=1500,
                          check=False)


def without_figures(text):
    """Reserved memory may differ between runs with threads; the program's output may not."""
    return [line for line in text.splitlines() if not line.startswith("FIGURES")]


class AtFigures(blocks.Replay):
    """A replay that remembers its state at the mark "figures"."""
    live_at_most = 0
    alone = True  # only PyTorch takes memory of the device

    def event(self, record, detail):
        super().event(record, detail)
        self.live_at_most = max(self.live_at_most, len(self.segments))
        if record.type == t.MARK and self.trace.string(record.aux) == "figures":
            pools = self.pools.values()
            self.figures = {
                "allocated": sum(pool.allocated for pool in pools), "reserved": sum(pool.reserved for pool in pools),
                "peak_allocated": sum(pool.peak_allocated for pool in pools),
                "peak_reserved": sum(pool.peak_reserved for pool in pools),
                "allocations": self.events[t.BLOCK_ALLOC],
                "frees": self.events[t.BLOCK_FREE], "refusals": self.events[t.BLOCK_OOM]}
            self.pinned_at_figures = sorted(self.pinned.values())
            self.owners = Counter()
            for block in (block for pool in pools for block in pool.live.values()):
                functions = {function.split(".")[-1] for _, function, _ in self.trace.script_frames(block.stack)}
                for function in functions:
                    self.owners[function] += block.size


def compare(name, torch_says, replay):
    problems = list(replay.problems)
    if any(replay.trace.counters[:4]):
        problems.append(f"records lost: {replay.trace.counters[:10]}")
    if "cudaMallocAsync" in name or "no caching" in name:
        if replay.block_events():
            problems.append("events of blocks without a pool of PyTorch's")
        live, peak = replay.figures["reserved"], replay.figures["peak_reserved"]
        # Without caching PyTorch keeps no counters. The other backend reads CUDA's pool, which counts in steps of 512.
        for said, seen in ((torch_says["allocated"], live), (torch_says["peak_allocated"], peak)):
            too_much = said - seen >= 512 * replay.live_at_most
            if "cudaMallocAsync" in name and (too_much or (replay.alone and said < seen)):
                problems.append(f"PyTorch says {said}, the trace {seen} in at most {replay.live_at_most} tensors")
        return problems, f"{replay.events[t.ALLOC]} allocations of CUDA, no pool; live {live}, peak {peak}"
    for figure, said in torch_says.items():
        if replay.figures[figure] != said:
            problems.append(f"{figure}: PyTorch says {said}, the trace {replay.figures[figure]}")
    if not replay.block_events():
        problems.append("no event of a block")
    if name.startswith("retained_graph") and replay.owners["keep_the_graph"] < 9 << 20:
        problems.append(f"the Python function that keeps the graph owns {replay.owners['keep_the_graph']} bytes")
    if name == "pinned" and 8 << 20 not in replay.pinned_at_figures:
        problems.append(f"5 MiB pinned take 8 MiB, but the trace has {replay.pinned_at_figures}")
    figures = replay.figures
    return problems, (f"{replay.block_events()} events of blocks; allocated {figures['allocated']}, reserved "
                      f"{figures['reserved']}, peaks {figures['peak_allocated']} and {figures['peak_reserved']}, "
                      f"{figures['refusals']} refused")


def check_sleep(build):
    """Physical memory that sleeps under a MemPool: see test_sleep.py."""
    done = subprocess.run([sys.executable, os.path.join(HERE, "test_sleep.py"), build], capture_output=True, text=True,
                          timeout=300, check=False)
    lines = done.stdout.splitlines()
    problems = [line for line in lines if line.startswith("FAIL")]
    if done.returncode != 0 and not problems:
        problems = [done.stderr[-1000:]]
    return problems, f"{sum(line.startswith('ok') for line in lines)} promises kept, awake and asleep"


def check_run(build, function, name, extra):
    command = [sys.executable, SCENARIOS, function]
    libraries = [build + "/sim"]
    if "expandable" in name:
        libraries.append(build + "/tests/torch/nvml")
    environment = dict(os.environ, LD_LIBRARY_PATH=":".join(libraries), RUN_WHEEL_SIM=build + "/sim", **extra)
    with tempfile.TemporaryDirectory() as folder:
        bare = run(command, folder, environment)
        if bare.returncode != 0:
            return [f"without the preload: exit code {bare.returncode}: {bare.stderr[-1500:]}"], ""
        recorded = run(command, folder, dict(environment, LD_PRELOAD=build + "/preload/libgpumem.so"))
        if recorded.returncode != 0:
            return [f"exit code {recorded.returncode}: {recorded.stderr[-1500:]}"], ""
        traces = glob.glob(folder + "/*.trace")
        if len(traces) != 1:
            return [f"one trace expected, not {traces}"], ""
        torch_says = json.loads(re.search("^FIGURES (.*)$", recorded.stdout, re.MULTILINE)[1])
        replay = AtFigures(traces[0])
        problems, figures = compare(name, torch_says, replay)
        problems += blocks.report_problems(build + "/report/gpumem", traces[0], replay)
        if not extra or "GPUMEM_SIM_DEVICES" in extra:
            unexpected, found = expected_findings.problems(build + "/report/gpumem", traces[0], SCENARIOS, function)
            problems, figures = problems + unexpected, f"{figures}; {found}"
        if without_figures(bare.stdout) != without_figures(recorded.stdout):
            problems.append(f"another output with the preload: {bare.stdout!r}, {recorded.stdout!r}")
        return problems, figures


def report(name, problems, figures):
    print(f"{'FAIL' if problems else 'PASS'} {name}: {figures}", flush=True)
    for problem in problems:
        print(f"     {problem}", flush=True)
    return bool(problems)


def main():
    build, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    library = os.path.join(os.path.dirname(importlib.metadata.distribution("torch").locate_file("torch/version.py")),
                           "lib")
    print("PyTorch", importlib.metadata.version("torch"), "Python", sys.version.split()[0])
    failed = report("symbols", *check_symbols(library, build + "/preload/libgpumem.so"))
    if not wanted or "sleep" in wanted:
        failed |= report("sleep", *check_sleep(build))
    for function, name, extra in RUNS:
        if not wanted or name in wanted:
            failed |= report(name, *check_run(build, function, name, extra))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
