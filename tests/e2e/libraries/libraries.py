#!/usr/bin/env python3
"""Memory by library: modules with the names of known libraries, and their lines in the report.

    libraries.py BUILD PROGRAM
"""
import json
import os
import subprocess
import sys
import tempfile

MIB = 1 << 20
# library, its pool: MiB at the peak, at the end, when memory ran out
EXPECTED = {
    ("application", None): (1, 0, 1),
    ("NCCL", None): (2, 2, 2),
    ("libmine.so", None): (4, 4, 4),
    ("PyTorch", "PyTorch"): (0, 8, 8),
    ("cuDNN", "PyTorch"): (0, 16, 16),
    ("application", "PyTorch"): (64, 32, 32),
}


def main():
    build, program = map(os.path.abspath, sys.argv[1:])
    environment = dict(os.environ, LD_LIBRARY_PATH=build + "/sim")
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "x.trace")
        done = subprocess.run([build + "/report/gpumem", "run", "-q", "-o", trace, "--", program], env=environment,
                              capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout == "refused\n", done
        report = json.loads(subprocess.run([build + "/report/gpumem", "report", "--json", trace], capture_output=True,
                                           timeout=60, check=True).stdout)
        text = subprocess.run([build + "/report/gpumem", "report", "-v", trace], capture_output=True, text=True, timeout=60,
                              check=True).stdout
    device = report["devices"][0]
    moments = ("at_peak", "at_end", "at_out_of_memory")
    found = {(one["library"], one["pool"]): tuple(one[moment]["bytes"] / MIB for moment in moments)
             for one in device["libraries"]}
    assert found == EXPECTED, found
    sums = [sum(one[moment]["bytes"] for one in device["libraries"]) for moment in moments]
    assert sums == [device["peak"], device["live"], report["failed_allocations"][0]["live"]["bytes"]], sums
    section = text[text.index("Device 0 by library"):].split("\n\n")[0].splitlines()
    assert len(section) == 2 + len(EXPECTED) and max(map(len, section)) <= 80, section
    assert any("cuDNN, in PyTorch's pool" in line and "16.0 MiB" in line for line in section), section
    assert any("application, in PyTorch's pool" in line and "90.1%" in line for line in section), section
    print("\n".join(section))


if __name__ == "__main__":
    main()
