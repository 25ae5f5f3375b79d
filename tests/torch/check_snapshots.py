#!/usr/bin/env python3
"""gpumem on what snapshot_programs.py took: check_snapshots.py GPUMEM FOLDER [PYTHON]

What must hold for each (each broken promise is one line on stderr, and exit code 1):
  - peaks and last figures are those of PyTorch's own counters, if the recording began before the first allocation and was not
    overwritten; else nothing is larger than they are;
  - every protocol of pickle gives the same report;
  - check and all exports take it; written out for memory_viz and read again, it gives the same figures;
  - PYTHON, an interpreter that has PyTorch: its own _memory_viz.py draws what was written out.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

gpumem, folder = sys.argv[1:3]
python = sys.argv[3] if len(sys.argv) > 3 else None
FORMATS = ("collapsed", "csv", "memory_viz", "ndjson", "openmetrics", "perfetto", "pprof", "speedscope", "sqlite")
# No history, or a part of it. What was in segments that were returned (emptied) is known by what was asked for alone.
PARTLY = ("emptied", "without-history", "wrapped", "wrapped-hard", "late", "state-only")
DRAW = "import pickle, sys; from torch.cuda import _memory_viz as v; s = pickle.load(open(sys.argv[1], 'rb')); " \
       "v.segment_plot(s); v.trace_plot(s); [v.trace({**s, 'device_traces': [one]}) for one in s['device_traces']]; v.segsum(s)"
problems = 0


def expect(good, text):
    global problems
    if not good:
        problems += 1
        print("FAIL: " + text, file=sys.stderr)


def run(*arguments):
    return subprocess.run([gpumem, *arguments], capture_output=True, timeout=120, check=False)


def report(path):
    done = run("report", "--json", path)
    expect(done.returncode == 0, f"{path}: {done.stderr}")
    return json.loads(done.stdout) if done.returncode == 0 else None


def figures(one):
    names = ("allocs", "frees", "live", "peak", "requested_peak", "reserved", "reserved_peak")
    return {pool["device"]: {name: pool[name] for name in names} for pool in one["framework_blocks"]}


def check_figures(name, one, told):
    is_whole = not name.removesuffix(".expandable").endswith(PARTLY)
    found = figures(one)
    expect({str(device) for device in found} == set(told), f"{name}: devices {list(found)}, not {list(told)}")
    for device, wanted in told.items():
        pool = found.get(int(device))
        if not pool:
            continue
        last = (pool["live"], pool["reserved"])
        expect(last == (wanted["allocated_current"], wanted["reserved_current"]), f"{name}, device {device}: at last {last}, not {wanted}")
        peaks = (pool["peak"], pool["requested_peak"], pool["reserved_peak"])
        right = (wanted["allocated_peak"], wanted["requested_peak"], wanted["reserved_peak"])
        if is_whole:
            expect(peaks == right, f"{name}, device {device}: peaks {peaks}, not {right}")
        expect(all(peak <= most for peak, most in zip(peaks, right)), f"{name}, device {device}: {peaks} beyond {right}")


def check_round_trip(name, one, path, out):
    written = os.path.join(out, "again.pickle")
    done = run("export", "-f", "memory_viz", "-o", written, path)
    expect(done.returncode == 0, f"{name}: memory_viz: {done.stderr}")
    again = report(written)
    expect(again and figures(again) == figures(one), f"{name}: again {again and figures(again)}, not {figures(one)}")
    if python:
        done = subprocess.run([python, "-c", DRAW, written], capture_output=True, text=True, timeout=200, check=False)
        expect(done.returncode == 0, f"{name}: _memory_viz.py: {done.stderr[-500:]}")


def main():
    paths = sorted(glob.glob(os.path.join(folder, "*.json")))
    with tempfile.TemporaryDirectory() as out:
        for path in paths:
            name, base = os.path.basename(path).removesuffix(".json"), path.removesuffix(".json")
            with open(path, encoding="utf-8") as file:
                told = json.load(file)
            one = report(base + ".pickle")
            if not one:
                continue
            check_figures(name, one, told)
            gaps = {gap["code"] for gap in one["gaps"]}
            expect(gaps == {"snapshot"}, f"{name}: gaps {one['gaps']}")
            for other in sorted(glob.glob(base + ".protocol*")):
                same = report(other)
                expect(same and figures(same) == figures(one), f"{name}: {other[-9:]} differs")
            code = run("check", base + ".pickle").returncode
            expect(code in (0, 1), f"{name}: check: {code}")
            for format_name in FORMATS:
                done = run("export", "-f", format_name, base + ".pickle")
                expect(done.returncode == 0 and done.stdout, f"{name}: {format_name}: {done.returncode} {done.stderr[-200:]}")
            done = run("report", "--html", os.path.join(out, "page.html"), base + ".pickle")
            expect(done.returncode == 0, f"{name}: html: {done.stderr[-200:]}")
            check_round_trip(name, one, base + ".pickle", out)
    print(f"{len(paths)} snapshots, {problems} problems")
    return 1 if problems or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
