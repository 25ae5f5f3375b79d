"""Checks of installed frameworks, and of the cost of recording for a training step."""
import json
import os
import re
import statistics
import subprocess
import sys

from kit import HERE, PROGRAMS, Skip, check, expect

sys.path.insert(0, os.path.join(os.path.dirname(HERE), "torch"))
import blocks  # noqa: E402
import expected_findings  # noqa: E402
import wheel_check  # noqa: E402

WHEEL = os.path.join(os.path.dirname(HERE), "torch", "wheel_scenarios.py")
TRAINING = os.path.join(PROGRAMS, "training.py")


# ---- cost ------------------------------------------------------------------------------------------

ROUNDS = 3


@check(seconds=150)
def overhead(kit):
    """A figure, not a promise, so it never fails. The three ways take turns, so that drift affects all alike."""
    kit.need_hardware("a time on the simulated device says nothing about a GPU")
    kit.need_package("torch")
    program = [kit.python, os.path.join(PROGRAMS, "step_time.py")]
    ways = {"without": (program, False), "gpumem": (program, True), "history": ([*program, "history"], False)}
    times = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, (command, preload) in ways.items():
            run = kit.run(command, preload=preload)
            expect(run.code == 0, f"{way}: exit code {run.code}: {run.errors[-300:]}")
            times[way].append(run.note("step")["milliseconds"])
    median = {way: statistics.median(values) for way, values in times.items()}
    ratio = {way: (median[way] / median["without"] - 1) * 100 for way in ("gpumem", "history")}
    return (f"a step takes {median['without']:.3f} ms; with gpumem {median['gpumem']:.3f} ms ({ratio['gpumem']:+.1f} "
            f"%); with torch.cuda.memory._record_memory_history {median['history']:.3f} ms ({ratio['history']:+.1f} "
            f"%); medians of {ROUNDS} runs each, taking turns")


# ---- PyTorch ---------------------------------------------------------------------------------------

class Figures(wheel_check.AtFigures):
    """On a GPU other libraries take memory too, so the check recognises segments by the blocks in them."""
    alone = False

    def __init__(self, path, has_blocks):
        super().__init__(path, others=has_blocks)


def wheel_environment(kit):
    """The simulator needs the environment of run_wheel, which has no runtime of NVIDIA's."""
    kit.need_gpu()
    kit.need_package("torch")
    if not kit.simulator:
        return {}
    if not os.path.exists(os.path.join(os.path.dirname(kit.python), "..", "gpumem-torch")):
        raise Skip("needs the environment of make test-pytorch: no runtime of NVIDIA's on the simulated driver")
    return {"RUN_WHEEL_SIM": kit.simulator + "/sim",
            "LD_LIBRARY_PATH": f"{kit.simulator}/sim:{kit.simulator}/tests/torch/nvml"}


def torch_scenario(kit, program, scenario, settings="", caching=True):
    """Every event's totals equal PyTorch's counters; the report has the blocks and their sums, too."""
    if program != WHEEL:
        kit.need_hardware("needs kernels, which the simulated device does not run")
    environment = wheel_environment(kit)
    if settings:
        environment["PYTORCH_CUDA_ALLOC_CONF"] = environment["PYTORCH_ALLOC_CONF"] = settings
    if not caching:
        environment["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
    run = kit.both([kit.python, program, scenario], environment)
    found = re.search("^FIGURES (.*)$", run.output, re.MULTILINE)
    expect(found, f"no figures: {run.output[-300:]}")
    trace = main_trace(run)
    report = kit.report(trace)
    replay = Figures(trace, caching and "cudaMallocAsync" not in settings)
    name = f"{scenario}/{settings.split(':')[-1] if caching else 'no caching'}"
    problems, figures = wheel_check.compare(name, json.loads(found[1]), replay)
    problems += blocks.report_problems(kit.gpumem, trace, replay)
    if program == WHEEL and caching and not settings:
        unexpected, found = expected_findings.problems(kit.gpumem, trace, WHEEL, scenario)
        problems, figures = problems + unexpected, f"{figures}; {found}"
    expect(not problems, "; ".join(problems[:4]))
    libraries = {}
    for row in report["devices"][0].get("libraries", []) if report["devices"] else []:
        if row["library"] != "PyTorch":
            libraries[row["library"]] = libraries.get(row["library"], 0) + row["at_peak"]["bytes"]
    others = ", ".join(f"{name} {size}" for name, size in sorted(libraries.items()) if size)
    return figures + (f"; not PyTorch's at the peak: {others}" if others else "")


@check(seconds=40)
def torch_sleeping_pool(kit):
    """Physical memory that is given back under the live blocks of a pool, as in sleep modes."""
    environment = wheel_environment(kit)
    library = kit.compile("sleep_allocator", [kit.driver()], folder=os.path.dirname(WHEEL), flags=["-shared", "-fPIC"])
    run = kit.both([kit.python, os.path.join(os.path.dirname(WHEEL), "sleep_mode.py"), library, "asleep"], environment)
    allocated, reserved = map(int, re.search(r"^FIGURES (\d+) (\d+)$", run.output, re.MULTILINE).groups())
    report = kit.report(main_trace(run))
    vmm, blocks_live = report["devices"][0]["kinds"]["vmm"], report["framework_blocks"][0]["live"]
    expect(blocks_live == allocated, f"blocks: PyTorch {allocated}, the report {blocks_live}")
    expect((vmm["live"], vmm["peak"]) == (0, reserved), f"asleep {vmm['live']}, at most {vmm['peak']} of {reserved}")
    return f"blocks of {allocated} bytes live while the device holds 0; at most {reserved}, over four sleeps"


def main_trace(run):
    """The report of the process that trained, which has the largest trace."""
    return max(run.traces, key=os.path.getsize)


def torch_check(name, program, scenario, seconds, **options):
    def function(kit):
        return torch_scenario(kit, program, scenario, **options)
    function.__name__ = "torch_" + name
    check(seconds)(function)


for scenario in ("tensors", "training", "streams", "pools", "graphs", "retained_graph", "released_graph",
                 "fragmentation", "no_fragmentation", "pageable_copies", "pinned_copies", "batch_size", "pinned"):
    torch_check(scenario, WHEEL, scenario, 40)
for scenario in ("matmul", "convolution", "attention", "mixed_precision", "checkpointing", "accumulation",
                 "graph_step", "loader"):
    torch_check(scenario, TRAINING, scenario, 50)
torch_check("compiled", TRAINING, "compiled", 150)
torch_check("matmul_expandable_segments", TRAINING, "matmul", 40, settings="expandable_segments:True")
torch_check("fragmentation_expandable_segments", WHEEL, "fragmentation", 40, settings="expandable_segments:True")
torch_check("tensors_cudaMallocAsync", WHEEL, "tensors", 40, settings="backend:cudaMallocAsync")
torch_check("matmul_cudaMallocAsync", TRAINING, "matmul", 40, settings="backend:cudaMallocAsync")
torch_check("tensors_no_caching", WHEEL, "tensors", 40, caching=False)


# ---- the dry run -----------------------------------------------------------------------------------

PREDICTED = os.path.join(PROGRAMS, "predicted.py")
FAR = 0.02  # of the peak that the GPU had


def device_of_dry_run(kit):
    """Its name of the GPU here."""
    for name in re.findall(r"[a-z0-9-]+", subprocess.run([kit.gpumem, "dry-run", "--help"], capture_output=True, text=True,
                                                         check=False).stdout.partition("the GPU:")[2].partition("or a")[0]):
        model, _, gibibytes = name.partition("-")
        if model.upper() in kit.gpu["name"].replace(" ", "").upper() and \
                (not gibibytes or abs(int(gibibytes) - (kit.gpu["memory"] >> 30)) < 5):
            return name
    raise Skip(f"no dry run of a {kit.gpu['name']}")


def dry_run(kit, scenario):
    """PyTorch's peaks as a dry run tells them and as this GPU has them."""
    kit.need_hardware("compares a dry run with a GPU")
    kit.need_package("torch")
    device, command = device_of_dry_run(kit), [kit.python, PREDICTED, scenario]
    real = kit.run(command, preload=True)
    if "ModuleNotFoundError" in real.errors:
        raise Skip(real.errors.strip().splitlines()[-1])
    expect(real.code == 0, f"exit code {real.code}: {real.errors[-300:]}")
    dry = kit.run([kit.gpumem, "dry-run", "--device", device, "--once", "--no-keep", "--", *command])
    had, told = real.note("peaks"), dry.note("peaks")
    apart = {name: told[name] / had[name] - 1 for name in had}
    text = ", ".join(f"{name} {had[name]}, {told[name]} told ({apart[name]:+.2%})" for name in had)
    expect(abs(apart["allocated"]) <= FAR, text)
    return text


def dry_run_check(scenario):
    def function(kit):
        return dry_run(kit, scenario)
    function.__name__ = "dry_run_" + scenario
    check(120)(function)


for scenario in ("perceptron", "language", "language_mixed", "compiled", "residual", "unet", "recurrent", "checkpointed"):
    dry_run_check(scenario)


# ---- others ----------------------------------------------------------------------------------------

def arrays(kit, package, framework, library, pool=False, environment=None, exact=True):
    """
    The result is the same with gpumem. At the end the report has at least the bytes that the framework says are alive,
    or its pool to the byte, and names their owner.
    """
    kit.need_hardware("needs kernels, which the simulated device does not run")
    kit.need_package(package)
    if framework == "nccl" and "torch" not in kit.packages:
        raise Skip("NCCL is tried through torch, which is not installed")
    command = [kit.python, os.path.join(PROGRAMS, "arrays.py"), framework] + (["pool"] if pool else [])
    run = kit.both(command, environment)
    said = run.note("framework")
    report = kit.report(main_trace(run))
    device = report["devices"][0]
    held = sum(row["at_peak"]["bytes"] for row in device["libraries"] if row["pool"] == library)
    owned = sum(row["at_peak"]["bytes"] for row in device["libraries"] if library in (row["library"], row["pool"]))
    expect(device["peak"] >= said["alive"], f"{said['alive']} alive, but the peak is {device['peak']}")
    if pool and exact and said["pool"]:
        expect(held == said["pool"], f"its pool has {said['pool']} bytes, the report {held}")
    expect(owned > 0, f"nothing is {library}'s: {[row['library'] for row in device['libraries']]}")
    return (f"result equal; alive {said['alive']}, its pool {said['pool']}; the report: peak {device['peak']}, "
            f"{owned} of it {library}'s")


@check(seconds=60)
def triton(kit):
    return arrays(kit, "triton", "triton", "PyTorch")


@check(seconds=60)
def nccl_on_one_gpu(kit):
    return arrays(kit, "torch", "nccl", "NCCL")


@check(seconds=60)
def jax_buffers(kit):
    return arrays(kit, "jax", "jax", "JAX", environment={"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async",
                                                         "XLA_PYTHON_CLIENT_PREALLOCATE": "false"})


@check(seconds=60)
def jax_pool(kit):
    return arrays(kit, "jax", "jax", "JAX", pool=True, exact=False,
                  environment={"XLA_PYTHON_CLIENT_MEM_FRACTION": ".1"})


@check(seconds=90)
def tensorflow_arrays(kit):
    return arrays(kit, "tensorflow", "tensorflow", "TensorFlow",
                  environment={"TF_GPU_ALLOCATOR": "cuda_malloc_async"})


@check(seconds=40)
def cupy_arrays(kit):
    return arrays(kit, "cupy", "cupy", "CuPy")


@check(seconds=40)
def cupy_pool(kit):
    return arrays(kit, "cupy", "cupy", "CuPy", pool=True)


@check(seconds=40)
def numba(kit):
    return arrays(kit, "numba", "numba", "Numba")
