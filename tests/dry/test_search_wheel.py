#!/usr/bin/env python3
"""What gpumem fit finds for programs of the real PyTorch, held against dry runs of their own of the value found and of the
next one: test_search_wheel.py BUILD PYTHON [PROGRAM]...
"""
import json
import os
import subprocess
import sys
import time

BUILD, PYTHON = os.path.abspath(sys.argv[1]), sys.argv[2]
SOURCE = os.path.dirname(os.path.abspath(__file__)) + "/searched_programs.py"
RUNS_MOST, TIME_MOST = 8, 1.3
# Program: its device and memory, the options of the axes, and its words. Each range has 512 values.
PROGRAMS = {
    "language": ("rtx4090", "8G", ["--over", "LENGTH=8..4096:8"], ["length={LENGTH}"]),
    "perceptron": ("rtx3090", "9G", ["--over", "B=1..512"], ["batch={B}"]),
    "images": ("t4", None, ["--over", "B=1..512"], ["batch={B}"]),
    "width": ("l4", "8G", ["--over-env", "WIDTH=64..32768:64"], []),
    "autocast": ("a100-40", "8G", ["--over", "LENGTH=8..4096:8"], ["length={LENGTH}"]),
    "diffusion": ("rtx4090", "12G", ["--over", "B=1..512"], ["batch={B}"]),
    "recurrent": ("t4", "6G", ["--over", "LENGTH=4..2048:4"], ["length={LENGTH}"]),
    "detection": ("l40s", "16G", ["--over", "B=1..512"], ["batch={B}"]),
    "distributed": ("h100", "20G", ["--over", "B=1..512"], ["batch={B}"]),
    "accumulated": ("l40s", "24G", ["--over", "B=1..512"], ["batch={B}"]),
    "grid": ("rtx4090", None, ["--over", "B=1..512", "--over", "L=128,256,512"], ["batch={B}", "length={L}"]),
    "llama": ("l4", "6G", ["--over", "LENGTH=16..8192:16"], ["length={LENGTH}"]),
    "vision": ("rtx4090", "12G", ["--over", "B=1..512"], ["batch={B}"]),
    "variational": ("t4", "2600M", ["--over", "B=1..512"], ["batch={B}"]),
    "adversarial": ("t4", "3G", ["--over", "B=1..512"], ["batch={B}"]),
    "graph": ("t4", "4G", ["--over", "NODES=1..512"], ["nodes={NODES}"]),
    "contrastive": ("a100-40", "16G", ["--over", "B=1..512"], ["batch={B}"]),
    "two_ranks": ("rtx3090", "12G", ["--over", "B=1..512"], ["batch={B}"])}
RANKS = {"two_ranks": 2}                           # of torchrun
OF_CUDNN = ("images", "diffusion", "recurrent", "detection", "vision")    # where its workspaces may leave undecided what is next to the limit


def command_of(name, words):
    count = RANKS.get(name)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)] if count else []
    return [PYTHON, "-W", "ignore", *launcher, SOURCE, name, *words]


def dry_run(name, options, words, values):
    environment = {name: value for name, value in values.items() if not any("{" + name + "}" in word for word in words)}
    for key, value in values.items():
        words = [word.replace("{" + key + "}", value) for word in words]
    done = subprocess.run([BUILD + "/report/gpumem", "dry-run", "--json", "--no-keep", "--no-whole", *options, "--devices",
                           str(RANKS.get(name, 1)), "--max-steps", "auto", "--", *command_of(name, words)],
                          capture_output=True, text=True, check=False, timeout=1200, env=dict(os.environ, **environment))
    return json.loads(done.stdout)["dry_run"]


def check(name):
    """What is wrong; "": nothing."""
    device, memory, axes, words = PROGRAMS[name]
    options = ["--device", device, *(["--memory", memory] if memory else [])]
    begin = time.monotonic()
    done = subprocess.run([BUILD + "/report/gpumem", "fit", "--json", "--fresh", "--jobs", "1", *options, *axes, "--cards",
                           str(RANKS.get(name, 1)), "--", *command_of(name, words)], capture_output=True, text=True,
                          check=False, timeout=3000)
    took = time.monotonic() - begin
    if done.returncode:
        return f"exit code {done.returncode}: {done.stdout[-800:]} {done.stderr[-400:]}"
    found, wrong = json.loads(done.stdout)["fit"], []
    first = axes[1].partition("=")[0]
    searches = ", ".join(" ".join(f"{key}={value}" for key, value in one["fixed"].items()) +
                         f"{first} {one['best']} fits, {one['next']} not" for one in found["searches"])
    print(f"     {name}: {searches}; {found['runs']} runs, {found['seconds']:.1f} s, "
          f"{took / found['seconds']:.2f} times that in all", flush=True)
    for point in found["points"]:
        print(f"        {' '.join(f'{key}={value}' for key, value in point['values'].items())} {point['verdict']}, "
              f"{point['peak'] >> 20} to {point['most'] >> 20} of {point['capacity'] >> 20} MiB, {point['seconds']:.1f} s", flush=True)
    if found["runs"] > RUNS_MOST * len(found["searches"]):
        wrong.append(f"{found['runs']} runs")
    if took > found["seconds"] * TIME_MOST:
        wrong.append(f"{took:.1f} s for runs of {found['seconds']:.1f} s")
    for search in found["searches"]:
        if search["best"] is None or search["next"] is None:
            wrong.append(f"{search['fixed']}: {search['best']} fits and {search['next']} does not: the range is no test")
            continue
        beyond = ("does-not-fit", "undecided") if name in OF_CUDNN else ("does-not-fit",)
        for value, verdicts in ((search["best"], ("fits",)), (search["next"], beyond)):
            dry = dry_run(name, options, words, {first: value, **search["fixed"]})
            if dry["verdict"] not in verdicts:
                wrong.append(f"{search['fixed']} {first}={value}: {dry['verdict']}, not {' or '.join(verdicts)}")
            elif dry["verdict"] != verdicts[0]:
                print(f"        {first}={value}: {dry['verdict']}: cuDNN decides")
    return "; ".join(wrong)


failures = []
for program in sys.argv[3:] or PROGRAMS:
    said = check(program)
    print(("FAIL " if said else "ok   ") + program + (": " + said if said else ""), flush=True)
    failures += [program] if said else []
print("FAIL: " + ", ".join(failures) if failures else "PASS")
sys.exit(bool(failures))
