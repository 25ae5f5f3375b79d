#!/usr/bin/env python3
"""Arrays of a plugin of XLA's, by its table: arrays.py BUILD. The program's output is the same without and with the preload,
and the report has what the program counts itself."""
import json
import os
import re
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(sys.argv[1])
PROGRAM = f"{BUILD}/tests/xla_arrays"
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "arrays.c"), encoding="utf-8") as file:
    COMPUTE = next(number for number, text in enumerate(file, 1) if "with temporaries */" in text)


os.environ["LD_LIBRARY_PATH"] = f"{BUILD}/sim"


def run(plugin, folder, **environment):
    command = [PROGRAM, f"{BUILD}/tests/libxla_{plugin}.so"]
    bare = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    path = f"{folder}/trace"
    recorded = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True, env=dict(
        os.environ, LD_PRELOAD=f"{BUILD}/preload/libgpumem.so", GPUMEM_OUTPUT=path, **environment))
    assert (recorded.stdout, recorded.stderr) == (bare.stdout, bare.stderr), (plugin, recorded, bare)
    report = subprocess.run([f"{BUILD}/report/gpumem", "report", "--json", path], capture_output=True, text=True,
                            cwd=folder, check=True)
    return bare.stdout, json.loads(report.stdout), path


def figures(output, name):
    return {int(device): int(size) for device, size in re.findall(rf"^{name} (\d) (\d+)$", output, re.M)}


def check_recorded(plugin, **environment):
    with tempfile.TemporaryDirectory() as folder:
        output, report, path = run(plugin, folder, **environment)
        pools = {pool["device"]: pool for pool in report["framework_blocks"]}
        assert {device: pool["framework"] for device, pool in pools.items()} == {0: "XLA", 1: "XLA"}, pools
        for name in ("live", "peak"):
            assert {device: pool[name] for device, pool in pools.items()} == figures(output, name.upper()), (name, pools)
        assert pools[0]["reserved"] == 64 << 20 and pools[0]["out_of_memory"] == 1, pools[0]
        # Told by the memory, the device, or by who of an executable's or a client's devices has least room.
        told = output[output.index("error 3"):output.rindex("error 8")]
        refused_by_1 = told.count("error 8") - len(re.findall(r"^propagated .*error 8", told, re.M))
        assert pools[1]["out_of_memory"] == refused_by_1 == (9 if plugin == "plugin" else 8), pools[1]
        refused = pools[0]["failures"][0]
        assert refused["request"] == 8 << 20 and refused["count"] == 1, refused
        # The most in use was reached by what was tried out for a program, and by temporaries of a call.
        most = {device: pool["in_use_peak"] for device, pool in pools.items()}
        assert most[0]["bytes"] == 64 << 20 and most[0]["compiling"], most
        assert most[1]["bytes"] == most[1]["arrays"] + (20 << 20) == figures(output, "MOST")[1] and not most[1]["compiling"], most
        assert most[1]["temporaries"] == (3 << 20 if plugin == "plugin" else 0) and most[0]["temporaries"] == 0, most
        told = {device: [(one["in_use"], one["allocated"]) for one in pool["in_use_told"]] for device, pool in pools.items()}
        assert told == {device: [(figures(output, "TOLD")[device], figures(output, "THEN")[device])] for device in pools}, told
        assert [most[device]["executable"] for device in most] == [None, "jit_step" if plugin == "plugin" else None], most
        lines = [frame["line"] for frame in report["stacks"][most[1]["stack"]]["frames"] if frame["file"]]
        assert {COMPUTE} & set(lines), (COMPUTE, lines)
        assert not [stack for stack in report["stacks"] if stack.get("cut")], report["stacks"]
        # What is free is that of the pool, in which this plugin keeps the host's arrays, too.
        for failure, free, hole, fragmentation in ((refused, 3, 3, False), (pools[1]["failures"][0], 36, 18, True)):
            assert failure["free"] == free << 20 and failure["largest_hole"] == hole << 20, failure
            assert failure["fragmentation"] == fragmentation, failure
        assert {f["code"]: f.get("device") for f in report["findings"]}.get("pool-fragmentation") == 1, report["findings"]
        [full] = [f for f in report["findings"] if f["code"] == "out-of-memory"]
        assert "60.0 MiB in arrays, 61.0 MiB in use and 64.0 MiB reserved of the 64.0 MiB that XLA may" in full["cause"], full
        for moment, in_use in ((pools[0]["failures"][0]["at"], 61 << 20), (pools[1]["at_peak"], 30 << 20)):
            assert moment["in_use"] == in_use and moment["rounding"] == 0, moment
        page = subprocess.run([f"{BUILD}/report/gpumem", "report", path], capture_output=True, text=True, check=True)
        assert "Who held XLA's pool on device 0" in page.stdout, page.stdout
        assert "63963136 bytes in use: 62914560 of arrays, 0 that round these up, 1048576 of" in " ".join(page.stdout.split()), page
        assert "told of 63963136 in use: 62914560 of arrays, 0 that round these up, 1048576 that" in " ".join(page.stdout.split()), page
        whatif = subprocess.run([f"{BUILD}/report/gpumem", "whatif", path], capture_output=True, text=True, check=False)
        assert "no blocks of PyTorch" in whatif.stderr, whatif


def check_left_alone(plugin, counted, **environment):
    with tempfile.TemporaryDirectory() as folder:
        _, report, path = run(plugin, folder, **environment)
        assert not report.get("framework_blocks"), report
        page = subprocess.run([f"{BUILD}/report/gpumem", "report", path], capture_output=True, text=True, check=True).stdout
        assert ("unknown interface" in page) == counted, page


check_recorded("plugin")
check_recorded("plugin", GPUMEM_MODE="flight")
check_recorded("plugin_old")
check_left_alone("plugin_big", True)
check_left_alone("plugin_other_major", True)
check_left_alone("plugin", False, GPUMEM_XLA="0")
