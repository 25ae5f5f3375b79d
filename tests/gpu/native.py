"""Checks that need no framework: the driver, the runtime, the device's own figures, leaks."""
import glob
import json
import os
import re
import subprocess

from kit import PROGRAMS, Failed, Run, Skip, check, expect

COUNTERS = ("live", "peak", "allocs", "frees")
HOST = ("pinned", "registered")
MIB = 1 << 20


def same_totals(report, ledger):
    """Compares the report's totals with the program's own; returns the number of totals."""
    device = next((device for device in report["devices"] if device["id"] == 0), {"live": 0, "peak": 0, "kinds": {}})
    compared = 0
    for kind, own in ledger["kinds"].items():
        told = (report["host"] if kind in HOST else device["kinds"]).get(kind, {})
        for counter in COUNTERS:
            expect(told.get(counter, 0) == own[counter],
                   f"{kind} {counter}: the program {own[counter]}, the report {told.get(counter, 0)}")
            compared += 1
    for counter in ("live", "peak"):
        expect(device[counter] == ledger[counter],
               f"device {counter}: the program {ledger[counter]}, the report {device[counter]}")
    expect(report["failed"] == ledger["failed"], f"refused: {ledger['failed']}, the report {report['failed']}")
    return compared + 3


def all_totals(kit, run):
    """Every process that printed its totals has a trace with the same totals."""
    compared = 0
    for ledger in run.notes("totals"):
        trace = next((trace for trace in run.traces if f".{ledger['pid']}." in os.path.basename(trace)), None)
        expect(trace, f"process {ledger['pid']} has no trace")
        compared += same_totals(kit.report(trace), ledger)
    expect(compared, "the program told no totals")
    return compared


@check(seconds=60)
def driver_calls(kit):
    """Linear, managed, arrays, pinned, pools, virtual memory, graphs, IPC between two processes, a refusal."""
    run = kit.both([kit.compile("driver", [kit.driver()])])
    compared = all_totals(kit, run)
    memory = run.note("memory")
    imported = sum(ledger["kinds"]["external"]["allocs"] for ledger in run.notes("totals"))
    return (f"{len(run.compared())} lines of output equal with and without gpumem; {compared} totals of "
            f"{len(run.traces)} processes equal to the program's own; IPC imports {imported}; of {memory['asked']} "
            f"bytes asked for the device gave {memory['taken']}")


@check(seconds=60)
def driver_semantics(kit):
    """What gpumem takes the driver to do, rule by rule, each with the sentence of NVIDIA's that it stands on."""
    simulated = {"GPUMEM_SIM_TAKES": "context:8M,stream:1M,launch:1M",
                 "LD_LIBRARY_PATH": f"{kit.simulator}/sim:{kit.simulator}/sim/nvml"} if kit.simulator else {}
    run = kit.both([kit.compile("semantics", [kit.driver()])], simulated)
    rules = re.findall(r"^(PASS|FAIL|ABSENT|OPEN) (.*?) \| (.*?): (.*)$", run.output, re.MULTILINE)
    with open(os.path.join(kit.include, "cuda.h"), encoding="utf-8", errors="replace") as file:
        header = " ".join(re.sub(r"^\s*\*|\\p |\\c |::", "", file.read(), flags=re.MULTILINE).split())
    for verdict, name, function, text in rules:
        expect(verdict != "FAIL", f"{name}: not as {function} says: {text}")
        expect(verdict in ("OPEN", "ABSENT") or text in header, f"{name}: not in cuda.h: {text}")
    held = [name for verdict, name, _, _ in rules if verdict == "PASS"]
    expect(len(held) >= 11, f"only {len(held)} rules were asked: {run.output[-300:]}")
    report = max((kit.report(trace) for trace in run.traces), key=lambda report: report["events"])
    refused = {failure["api"].split("_")[0] for failure in report["failed_allocations"]}
    for call in re.findall(r'^NOTE "ASKED on a full device (\w+) answers 2"$', run.output, re.MULTILINE):
        expect(call in refused, f"{call} was refused, and is not on record")
    absent = [name for verdict, name, _, _ in rules if verdict == "ABSENT"]
    asked = re.findall(r'^NOTE "(.*)"$', run.output, re.MULTILINE)
    return f"{len(held)} rules hold; absent: {', '.join(absent) or 'none'}; {'; '.join(asked)}"


@check(seconds=30)
def memory_taken(kit):
    """cuMemGetInfo around eight allocations of 64 MiB: counted bytes are real."""
    memory = kit.run([kit.compile("driver", [kit.driver()])], preload=True).note("memory")
    slack = 32 * MIB  # the driver's granularity; other users of the GPU make this check fail
    for name in ("taken", "given_back"):
        expect(0 <= memory[name] - memory["asked"] <= slack, f"{name} {memory[name]} for {memory['asked']} asked")
    return f"asked {memory['asked']}, taken {memory['taken']}, given back {memory['given_back']}"


@check(seconds=30)
def without_a_compiler(kit):
    """The same by hand, from Python: code without CUDA headers that finds the driver by dlsym."""
    text = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    print(name, getattr(cuda, name)(*arguments))
context, address, device, pinned = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_int(), ctypes.c_void_p()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
for size in (1 << 20, 3 << 20, 5 << 20):
    call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
    call("cuMemFree_v2", address)
call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(7 << 20))
call("cuMemHostAlloc", ctypes.byref(pinned), ctypes.c_size_t(2 << 20), 0)
"""
    run = kit.both([kit.python, "-c", text])
    report = kit.report(run.traces[0])
    device, host = report["devices"][0]["kinds"]["device"], report["host"]["pinned"]
    found = [device[counter] for counter in COUNTERS] + [host["live"]]
    expect(found == [7 * MIB, 7 * MIB, 4, 3, 2 * MIB], f"live, peak, allocs, frees, pinned: {found}")
    return "4 allocations, 3 frees, 7340032 bytes live, 2097152 pinned, through Python's ctypes"


# ---- runtimes --------------------------------------------------------------------------------------

def runtimes(kit, pattern):
    """(library, folder of its headers) of the CUDA runtimes on this machine, the toolkit's first."""
    homes = [os.environ.get("CUDA_HOME"), *sorted(glob.glob("/usr/local/cuda*"), reverse=True)]
    packages = glob.glob(os.path.join(os.path.dirname(os.path.dirname(kit.python)),
                                      "lib/python3*/site-packages/nvidia/*"))
    folders = [os.path.join(home, lib) for home in homes if home for lib in ("lib64", "lib")]
    folders += [os.path.join(package, "lib") for package in packages]
    for folder in folders:
        include = os.path.join(os.path.dirname(os.path.realpath(folder)), "include")
        for path in sorted(glob.glob(os.path.join(folder, pattern))):
            if os.path.exists(os.path.join(include, "cuda_runtime_api.h")):
                yield os.path.realpath(path), include


def runtime_check(kit, pattern, what):
    if kit.simulator:
        if what == "static":
            raise Skip("NVIDIA's runtime is never run on the simulated driver")
        library, include = glob.glob(kit.simulator + "/sim/libcudart.so.13")[0], kit.include
    else:
        found = [pair for pair in runtimes(kit, pattern) if not is_simulated(pair[0])]
        if not found:
            raise Skip(f"no {what} CUDA runtime with headers beside it")
        library, include = found[0]
    program = kit.compile("runtime", [library], include)
    run = kit.both([program], environment={} if kit.simulator else {"LD_LIBRARY_PATH": ":".join(
        filter(None, [os.path.dirname(library), os.environ.get("LD_LIBRARY_PATH")]))})
    return (f"{all_totals(kit, run)} totals equal to the program's own, {len(run.compared())} lines of output equal, "
            f"with {os.path.basename(library)}")


def is_simulated(library):
    with open(library, "rb") as file:
        return b"gpumem simulat" in file.read()


@check(seconds=30)
def shared_runtime(kit):
    return runtime_check(kit, "libcudart.so.*", "shared")


@check(seconds=30)
def static_runtime(kit):
    return runtime_check(kit, "libcudart_static.a", "static")


@check(seconds=90)
def kernel_by_nvcc(kit):
    """A module, a kernel and a leak, built as people build them."""
    kit.need_hardware("the simulated device runs no kernels")
    program = os.path.join(kit.folder, "kernel")
    done = subprocess.run([kit.tool("nvcc"), "-g", "-O0", "-o", program, os.path.join(PROGRAMS, "kernel.cu")],
                          capture_output=True, text=True, timeout=80, check=False)
    if done.returncode != 0:
        raise Skip(f"nvcc: {(done.stderr or done.stdout).strip().splitlines()[-1][:200]}")
    report = kit.report(kit.both([program]).traces[0])
    device = report["devices"][0]["kinds"]["device"]
    expect((device["peak"], device["live"], device["allocs"]) == (16 * MIB, 4 * MIB, 4), f"{device}")
    return "peak 16777216, live 4194304, 4 allocations; the kernel's result is the same"


@check(seconds=30)
def second_door(kit):
    """CUDA_INJECTION64_PATH, for places where LD_PRELOAD cannot be set: calls that the program imports."""
    program = kit.compile("leak", [kit.driver()])
    run = kit.run([program], environment={"CUDA_INJECTION64_PATH": kit.preload})
    expect(run.code == 0 and len(run.traces) == 1, f"exit code {run.code}, traces {run.traces}")
    device = kit.report(run.traces[0])["devices"][0]["kinds"]["device"]
    expect((device["allocs"], device["frees"]) == (6, 3), f"{device}")
    return "6 allocations and 3 frees seen without LD_PRELOAD"


# ---- next to other tools ---------------------------------------------------------------------------

def used_by_nvidia_smi(kit, pid):
    text = subprocess.run([kit.tool("nvidia-smi"), "--query-compute-apps=pid,used_memory",
                           "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=60,
                          check=False).stdout
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if fields[0] == str(pid) and fields[1].isdigit():
            return int(fields[1]) * MIB
    return None


@check(seconds=60)
def residual(kit):
    """The driver's memory for a process in addition to its allocations, against nvidia-smi."""
    kit.need_hardware("the simulated device has no contexts to pay for (ctest: e2e.nvml)")
    program = kit.compile("driver", [kit.driver()])
    seen = {}

    def ask(process, folder):
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("NOTE hold"):
                seen["used"] = used_by_nvidia_smi(kit, process.pid)
                process.stdin.write("go\n")
                process.stdin.flush()
        _, errors = process.communicate(timeout=30)
        return Run(subprocess.CompletedProcess("", process.returncode, "".join(lines), errors), folder)

    run = kit.run([program, "hold"], preload=True, answer=ask)
    expect(run.code == 0 and run.traces, f"exit code {run.code}: {run.output[-200:]}")
    device = kit.report(run.traces[0])["devices"][0]
    if "residual" not in device:
        raise Skip("NVML does not say what this process uses (as in containers with process ids of their own)")
    last = device["residual"]["last"]
    expect(last["tracked"] == 256 * MIB, f"tracked {last['tracked']}, allocated {256 * MIB}")
    if not seen["used"]:
        raise Skip(f"nvidia-smi does not list this process; gpumem: {last['bytes']} bytes beside the tracked ones")
    expect(abs(seen["used"] - last["used"]) <= 2 * MIB, f"nvidia-smi {seen['used']}, gpumem {last['used']}")
    return (f"nvidia-smi {seen['used']}, gpumem {last['used']} of which {last['tracked']} allocated and "
            f"{last['bytes']} of the driver (context, modules)")


def leaked(kit, trace):
    """Bytes and allocations that gpumem says forget() left."""
    bytes_, count = 0, 0
    for leak in kit.report(trace)["leaks"]:
        if any(frame["function"] == "forget" for frame in leak["stack"]):
            bytes_, count = bytes_ + leak["bytes"], count + leak["count"]
        else:
            raise Failed(f"called a leak, but not planted: {leak['bytes']} bytes")
    return bytes_, count


@check(seconds=30)
def planted_leak(kit):
    run = kit.both([kit.compile("leak", [kit.driver()])])
    found = leaked(kit, run.traces[0])
    expect(found == (3 * MIB, 3), f"planted 3145728 bytes in 3, found {found}")
    return "3145728 bytes in 3 allocations, in the function that planted them, and nothing else"


@check(seconds=120)
def leak_by_compute_sanitizer(kit):
    """The same leak by NVIDIA's checker: alone, and with gpumem recording under it."""
    kit.need_hardware("compute-sanitizer needs a GPU")
    command = [kit.tool("compute-sanitizer"), "--tool", "memcheck", "--leak-check=full",
               kit.compile("leak", [kit.driver()])]
    found = []
    for preload in (False, True):
        run = kit.run(command, preload=preload)
        summary = re.search(r"LEAK SUMMARY: ([\d,]+) bytes leaked in (\d+) allocations", run.output + run.errors)
        expect(summary, f"compute-sanitizer found no leak: {(run.output + run.errors)[-300:]}")
        found.append((int(summary[1].replace(",", "")), int(summary[2])))
    found.append(next((leaked(kit, trace) for trace in run.traces if "leak" in os.path.basename(trace)), None))
    expect(found == [(3 * MIB, 3)] * 3, f"alone {found[0]}, with gpumem {found[1]}, gpumem under it {found[2]}")
    return "compute-sanitizer alone, compute-sanitizer over gpumem, and gpumem say 3145728 bytes in 3 allocations"


@check(seconds=30)
def exits(kit):
    """A killed process loses no record."""
    program = kit.compile("driver", [kit.driver()])

    def end(process, folder):
        for line in process.stdout:
            if line.startswith("NOTE hold"):
                process.kill()
        process.communicate(timeout=30)
        return Run(subprocess.CompletedProcess("", process.returncode, "", ""), folder)

    run = kit.run([program, "hold"], preload=True, answer=end)
    expect(len(run.traces) == 1, f"traces: {run.traces}")
    done = subprocess.run([kit.gpumem, "report", "--json", run.traces[0]], capture_output=True, text=True,
                          timeout=60, check=False)
    report = json.loads(done.stdout)
    expect(report["ending"] == "cut", f"ending: {report['ending']}")
    live = report["devices"][0]["live"]
    expect(live == 256 * MIB, f"live {live}, allocated {256 * MIB}")
    return "after SIGKILL the trace has the 268435456 bytes, and says that it was cut"


def driver_version():
    """The version of the kernel module, for the reader of the report."""
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
            return re.search(r"\d+\.\d+(\.\d+)?", file.read())[0]
    except (OSError, TypeError):
        return "unknown"
