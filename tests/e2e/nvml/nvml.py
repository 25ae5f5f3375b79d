#!/usr/bin/env python3
"""The memory that the driver holds in addition to the tracked one, by a simulated NVML: nvml.py BUILD [python]

The simulated NVML adds a fixed number of bytes to the oracle's live bytes. Each sample of the process must give exactly
that residual, also while threads allocate, and nothing changes without NVML.
"""
import json
import os
import subprocess
import sys
import tempfile

build = os.path.abspath(sys.argv[1])
failures = []
CONTEXT = 300 << 20


def run(command, environment, nvml=True, preload=True):
    """The program's output, the report and the oracle's live bytes of the devices."""
    with tempfile.TemporaryDirectory() as folder:
        base = dict(os.environ, GPUMEM_SIM_ORACLE=folder + "/oracle", GPUMEM_SIM_NVML_CONTEXT="300M", **environment)
        base["LD_LIBRARY_PATH"] = build + "/sim" + (f":{build}/sim/nvml" if nvml else "")
        if preload:
            base["LD_PRELOAD"] = build + "/preload/libgpumem.so"
        done = subprocess.run([os.path.join(build, "tests", command[0]), *command[1:]], cwd=folder, env=base,
                              capture_output=True, timeout=120, check=False)
        doings = (done.stdout, done.stderr, done.returncode)
        if not preload:
            return doings, None, None
        [trace] = [name for name in os.listdir(folder) if name.endswith(".trace")]
        gpumem = [build + "/report/gpumem", "report", "-v"]
        report = json.loads(subprocess.check_output([*gpumem, "--json", trace], cwd=folder))
        report["text"] = subprocess.check_output([*gpumem, trace], cwd=folder, text=True)
        oracle = json.loads(subprocess.check_output([build + "/sim/sim-oracle", folder + "/oracle"]))
        return doings, report, [device["live"] for device in oracle["devices"]]


def expect(what, good, found):
    print(("ok   " if good else "FAIL ") + what + ("" if good else f": {found}"), flush=True)
    if not good:
        failures.append(what)


def residual_is_exact(command, **environment):
    bare, _, _ = run(command, environment, preload=False)
    doings, report, live = run(command, environment)
    what = " ".join(command)
    expect(f"{what}: runs as without the preload", doings == bare, (doings, bare))
    found = report["devices"][0].get("residual")
    if not found:
        return expect(f"{what}: a residual", False, report["devices"])
    wanted = {"bytes": CONTEXT, "used": live[0] + CONTEXT, "tracked": live[0], "estimated": False}
    found["last"].pop("time_ns")
    expect(f"{what}: the last residual is the context's", found["last"] == wanted, found)
    expect(f"{what}: so is the largest of {found['samples']}", found["largest"]["bytes"] == CONTEXT, found)
    expect(f"{what}: the text tells it", "Driver (contexts, modules) at last: 300 MiB (" in report["text"],
           report["text"])


def no_residual(what, sampled, nvml=True, left_out=False, **environment):
    bare, _, _ = run(["families"], environment, nvml, preload=False)
    doings, report, _ = run(["families"], environment, nvml)
    device = report["devices"][0]
    expect(f"{what}: no residual", "residual" not in device and "Residual" not in report["text"], device)
    expect(f"{what}: sampled {sampled}", ("sampled_by_all" in device) == sampled, device)
    counted = report["recorder"].get("sample_limit", 0)
    expect(f"{what}: {'says' if left_out else 'does not say'} so", (counted > 0) == left_out, counted)
    expect(f"{what}: runs as without the preload", doings == bare, (doings, bare))


def device_is_found(what, estimated, used, devices="2", **environment):
    _, report, live = run(["families"], dict(environment, GPUMEM_SIM_DEVICES=devices))
    last = report["devices"][0]["residual"]["last"]
    wanted = CONTEXT + (live[0] if used else 0)
    expect(what, last["estimated"] == estimated and last["used"] == wanted, last)
    return report


def others_have_parts_of_their_own(**environment):
    """A card in MIG mode: what the other instances use is none of the memory that CUDA gives to this one."""
    what = f"a card in MIG mode, {environment}"
    report = device_is_found(f"{what}: not certain", True, True, devices="1", GPUMEM_SIM_NVML_MIG="1",
                             GPUMEM_SIM_NVML_ELSEWHERE="3G", **environment)
    expect(f"{what}: nothing of others", report["devices"][0]["sampled_by_all"] == 0 and "by others" not in report["text"],
           report["devices"][0])


def others_are_told():
    """The device's peak is that of all processes: the page, the JSON with its time, and a limit of the gate."""
    _, report, live = run(["families"], {"GPUMEM_SIM_NVML_ELSEWHERE": "3G"})
    device, elsewhere = report["devices"][0], 3 << 30
    told = device["sampled_by_all"] - device["sampled_by_process"]
    expect("others: what they use", told == elsewhere and 0 < device["sampled_by_all_time_ns"] <= report["duration_ns"], device)
    text = " ".join(report["text"].split())
    expect("others: the text tells it", "All processes together: 3." in text and "3.00 GiB of it by others" in text, text)
    del live


# Asks NVML as PyTorch does when memory is short, after the recorder has begun to.
ASKS_TOO = """
import ctypes, time
cuda, nvml = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")
context, count = ctypes.c_void_p(), ctypes.c_uint()
assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
while nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 1:  # not initialized
    time.sleep(0.01)
print(nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)), nvml.nvmlInit_v2(), nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)))
"""


def a_program_asks_too():
    doings, _, _ = run([sys.executable, "-c", ASKS_TOO], {})
    expect("a program that asks NVML, too, is answered", doings == (b"0 0 0\n", b"", 0), doings)


if sys.argv[2:] == ["python"]:
    a_program_asks_too()
    sys.exit(1 if failures else 0)
residual_is_exact(["families"])
others_are_told()
residual_is_exact(["life", "threads_end"])
residual_is_exact(["life", "threads_end"], GPUMEM_RING="4K")
no_residual("GPUMEM_NVML=0", sampled=False, GPUMEM_NVML="0")
no_residual("without NVML", sampled=False, nvml=False)
no_residual("where NVML does not tell", sampled=True, GPUMEM_SIM_NVML_UNAVAILABLE="1")
residual_is_exact(["families"], GPUMEM_SIM_NVML_OTHERS="511")
no_residual("with more processes than are read", sampled=True, left_out=True, GPUMEM_SIM_NVML_OTHERS="512")
device_is_found("two devices: by index, not certain", True, True)
device_is_found("two devices in the order of the bus", False, True, CUDA_DEVICE_ORDER="PCI_BUS_ID")
for environment in ({}, {"CUDA_VISIBLE_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": "GPU-sim-0"}):
    others_have_parts_of_their_own(**environment)
sys.exit(1 if failures else 0)
