#!/usr/bin/env python3
"""The real PyTorch, run dry: test_wheel.py BUILD PYTHON [SCENARIO]...

Peaks are exact for the versions of PyTorch named below: they are what its allocator asks for on the device, to the
byte, and the same each time. On other versions the verdicts are checked.
"""
import json
import os
import subprocess
import sys
import tempfile

BUILD, PYTHON = os.path.abspath(sys.argv[1]), sys.argv[2]
# cuBLAS's workspaces are not PyTorch's tensors, so its tracker does not know them.
WITHOUT_WORKSPACES = {"CUBLAS_WORKSPACE_CONFIG": ":0:0", "CUBLASLT_WORKSPACE_SIZE": "0"}
HERE = os.path.dirname(os.path.abspath(__file__))

# Scenario: options, verdict, lines with unknown values, and {version: (allocated, reserved)} on an H100.
SCENARIOS = {
    "mlp": ([], "fits", 0, {"2.15.0": (169149952, 174063616)}),
    "transformer": ([], "fits", 0, {"2.15.0": (358601728, 396361728)}),
    "resnet": ([], "fits", 0, {"2.15.0": (290081280, 373293056)}),
    "amp": (["--once"], "fits", 1, {"2.15.0": (193567744, 209715200)}),
    "attention": ([], "fits", 0, {"2.15.0": (84412416, 104857600)}),
    "lstm": ([], "fits", 0, {"2.15.0": (255984640, 325058560)}),
    "fourier": ([], "fits", 0, {"2.15.0": (16809984, 20971520)}),
    "linear_algebra": ([], "fits", 2, {"2.15.0": (34089984, 35651584)}),
    "data_parallel": ([], "fits", 0, {"2.15.0": (202704384, 207618048)}),
    "sharded": ([], "fits", 0, {"2.15.0": (148945920, 220200960)}),
    "compiled": ([], "fits", 0, {}),
    "tuned": ([], "fits", 0, {}),
    "graph": ([], "fits", 0, {"2.15.0": (1328128, 4194304)}),
    "too_large": ([], "does-not-fit", 0, {}),
    "wide_convolution": (["--memory", "5G"], "undecided", 0, {}),
    "other_stream": (["--bounds"], "fits", 0, {"2.15.0": (536870912, 536870912)}),
    "endless": (["--values"], "fits", 0, {}),
    "finite": ([], "fits", 1, {}),
    "generation": ([], "fits", 0, {}),
    "experts": ([], "fits", 1, {}),
    "text": ([], "fits", 1, {}),
    "limited_text": ([], "fits", 1, {}),
    "assigned": ([], "fits", 0, {}),
    "chosen_on_host": ([], "fits", 1, {}),
    "ranks": (["--devices", "2"], "fits", 0, {}),
    "pipeline": (["--devices", "2"], "fits", 0, {}),
    "objects": ([], "fits", 0, {"2.15.0": (2048, 2097152)}),
    "checkpointing": ([], "fits", 0, {"2.15.0": (109114368, 132120576)}),
    "tensor_parallel": ([], "fits", 0, {"2.15.0": (59125248, 92274688)}),
    "tracked": ([], "fits", 0, {"2.15.0": (168137216, 174063616)}),
    "known_masks": ([], "fits", 0, {}),
    "chosen_masks": ([], "fits", 0, {}),
    "unknown_masks": ([], "fits", 4, {}),
    "counted_masks": ([], "fits", 2, {}),
    "repeats": ([], "fits", 0, {}),
    "many_steps": (["--max-steps", "5"], "fits", 0, {}),
}
failures = []


def check(name, what, holds):
    if not holds:
        failures.append(name)
        print(f"FAIL {name}: {what}")


def run(name):
    options, verdict, uncertain, peaks = SCENARIOS[name]
    # What was compiled before is not compiled again, and compiling reads values.
    with tempfile.TemporaryDirectory() as compiled:
        environment = dict(os.environ, GPUMEM_DRY_CACHES=compiled, **(WITHOUT_WORKSPACES if name == "tracked" else {}))
        done = subprocess.run([BUILD + "/report/gpumem", "dry-run", "--json", *options, "--", PYTHON, "-W", "ignore",
                               HERE + "/scenarios.py", name], capture_output=True, text=True, timeout=600, check=False,
                              env=environment)
    try:
        document = json.loads(done.stdout)
    except ValueError:
        return check(name, f"no JSON: {done.stdout[-300:]!r} {done.stderr[-2000:]}", False)
    dry = document["dry_run"]
    check(name, f"verdict {dry['verdict']}, {dry['reason']}\n{done.stderr[-2000:]}", dry["verdict"] == verdict)
    check(name, f"uncertain: {dry['uncertain']}", len(dry["uncertain"]) == uncertain)
    check(name, "parts do not add up", dry["peak"] == sum(part["bytes"] for part in dry["parts"]))
    peak = next((line.split()[1:] for line in done.stderr.splitlines() if line.startswith("peak ")), None)
    tried = [line for line in done.stderr.splitlines() if "num_choices" in line]
    check(name, tried, all(1 < json.loads(line)["num_choices"] < 8 for line in tried) and (tried or name != "tuned"))
    expected = peaks.get(version)
    if expected:
        check(name, f"peaks {peak}, expected {expected}", peak == [str(bytes_) for bytes_ in expected])
    print(f"     {name}: {dry['verdict']}, {dry['peak']} of {dry['capacity']}, {peak}")
    return dry


version = subprocess.run([PYTHON, "-c", "import importlib.metadata as m; print(m.version('torch').split('+')[0])"],
                         capture_output=True, text=True, check=True).stdout.strip()
print("PyTorch", version)
known = None


def tensors(answer):
    return next(part["bytes"] for part in answer["parts"] if part["name"] == "PyTorch's tensors")


for scenario in sys.argv[3:] or SCENARIOS:
    answer = run(scenario)
    if scenario == "too_large" and answer:
        check(scenario, answer["failed_at"], answer["failed_at"] and answer["failed_at"]["file"].endswith("scenarios.py"))
    if scenario == "wide_convolution" and answer:
        check(scenario, "no range", answer["most"] > answer["capacity"] > answer["peak"])
    if scenario == "other_stream" and answer:
        cache = [part for part in answer["parts"] if part["name"] == "PyTorch's cache"]
        check(scenario, answer, cache and cache[0]["most"] > 2 << 30 and cache[0]["bytes"] == 0)
    if scenario in ("finite", "generation", "experts") and answer:
        check(scenario, "values were not computed", answer["values"])
    if scenario == "text" and answer:  # 40 times 4 lines of 8 to 47 tokens
        ends = [part["most"] for part in answer["parts"] if "ends of loops" in part["name"]]
        check(scenario, answer["parts"], answer["numbers_differ"] and ends and 60 << 20 < ends[0] < 90 << 20)
    if scenario == "limited_text" and answer:
        check(scenario, answer["parts"], answer["numbers_differ"] and answer["most"] - answer["peak"] > 60 << 20)
    if scenario == "assigned" and answer:
        check(scenario, answer["parts"], tensors(answer) >= 48 << 20)
    if scenario == "chosen_on_host" and answer:
        check(scenario, answer["parts"], answer["most"] - answer["peak"] >= 16 << 20)
    if scenario == "known_masks" and answer:
        check(scenario, "a range, of masks that are known", all("masks" not in part["name"] for part in answer["parts"]))
        known = tensors(answer)
    if scenario == "chosen_masks" and answer:
        # Indices live longer than those that stand for a mask.
        check(scenario, (known, answer["parts"]), known is None or abs(known - tensors(answer)) < 1 << 16)
    if scenario == "unknown_masks" and answer:
        rows = [part["most"] for part in answer["parts"] if "masks" in part["name"]]
        check(scenario, (known, answer["parts"]), rows and (known is None or tensors(answer) < known < tensors(answer) + rows[0]))
    if scenario == "counted_masks" and answer:
        # A room of 32 MiB, and as much of the rows that are put into it.
        rows = [part["most"] for part in answer["parts"] if "masks" in part["name"]]
        check(scenario, answer["parts"], rows and rows[0] >= 64 << 20)
    if scenario == "ranks" and answer: # the larger need is that of rank 1, to the size of what is sent
        check(scenario, answer["parts"], 160 << 20 <= tensors(answer) < (160 << 20) + (64 << 10))
    if scenario == "repeats" and answer:
        check(scenario, answer["parts"], tensors(answer) > 24 << 20)
    if scenario == "many_steps" and answer:
        check(scenario, answer["ended_after_steps"], answer["ended_after_steps"] == 5)
print("FAIL: " + " ".join(failures) if failures else "PASS")
sys.exit(bool(failures))
