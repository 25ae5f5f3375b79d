#!/usr/bin/env python3
"""Findings on the replica of PyTorch's allocator, under real Python.

    test_findings.py BUILD FOLDER

Each scenario of replica_scenarios.py must have the finding of its name, at the line marked "# here"; its twin
must have none. Nothing else may be found.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SCENARIOS = ("retained", "fragmentation", "cached", "pageable_copies", "pinned_growth", "batch_size_search",
             "device_imbalance")
CODES = {"fragmentation": "pool-fragmentation"}
failures = []


def expect(condition, text):
    if not condition:
        failures.append(text)
        print("FAIL:", text)


def marked_lines():
    with open(os.path.join(HERE, "replica_scenarios.py"), encoding="utf-8") as file:
        return {number for number, line in enumerate(file, 1) if line.rstrip().endswith("# here")}


def findings(build, libraries, name):
    with tempfile.TemporaryDirectory() as folder:
        package = os.path.join(folder, "site-packages", "torch")
        os.makedirs(package)
        shutil.copy(os.path.join(HERE, "replica_tensor.py"), package)
        environment = dict(os.environ, PYTHONPATH=os.path.dirname(package), PYTHONDONTWRITEBYTECODE="1",
                           LD_LIBRARY_PATH=build + "/sim", GPUMEM_SIM_DEVICES="2", REPLICA=libraries,
                           REPLICA_RUNTIME=build + "/sim/libcudart.so.13",
                           LD_PRELOAD=build + "/preload/libgpumem.so", GPUMEM_OUTPUT=folder + "/trace")
        done = subprocess.run([sys.executable, os.path.join(HERE, "replica_scenarios.py"), name], env=environment,
                              cwd=folder, capture_output=True, text=True, timeout=120, check=False)
        expect(done.returncode == 0, f"{name}: exit code {done.returncode}: {done.stderr[-2000:]}")
        shown = subprocess.run([build + "/report/gpumem", "report", "--json", folder + "/trace"], capture_output=True,
                               text=True, check=True)
        return json.loads(shown.stdout)


def check(build, libraries, name):
    code = CODES.get(name, name.replace("_", "-"))
    report = findings(build, libraries, name)
    there = [finding for finding in report["findings"] if finding["code"] == code]
    expect(there, f"{name}: no finding {code}: {report['findings']}")
    if any("language" in frame for finding in there for frame in finding.get("stack", [])):
        expect(any(finding["line"] in marked_lines() for finding in there), f"{name}: not at a marked line: {there}")
    others = {finding["code"] for finding in report["findings"]} - {code}
    expect(not others, f"{name}: found besides: {others}")
    twin = {finding["code"] for finding in findings(build, libraries, name + "_twin")["findings"]}
    expect(not twin, f"{name}_twin: found {twin}")
    print(f"{name}: {code}, {there[0]['cause'] if there else ''}")


def main():
    build, libraries = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    for name in SCENARIOS:
        check(build, libraries, name)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
