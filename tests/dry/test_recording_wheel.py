#!/usr/bin/env python3
"""A dry run of large_language_model.py, held against a recording of a real H100 event by event, and the largest context that
gpumem fit finds for it: test_recording_wheel.py BUILD PYTHON RECORDINGS

PYTHON has PyTorch 2.6, RECORDINGS is a folder with transformer_step_128.pickle.xz, a memory snapshot of one training step.
Exit code 77 where either is missing.
"""
import json
import lzma
import os
import pickle
import subprocess
import sys
import tempfile

BUILD, PYTHON = os.path.abspath(sys.argv[1]), sys.argv[2]
RECORDING = os.path.join(sys.argv[3], "transformer_step_128.pickle.xz")
PROGRAM = os.path.dirname(os.path.abspath(__file__)) + "/large_language_model.py"
PROVED = 512  # the longest context of which a recording of a whole step is known to us: 62,830,673,920 bytes reserved


def events_of(snapshot):
    history = max(snapshot["device_traces"], key=len)
    return [(event["action"], event["size"]) for event in history if event["action"] in ("alloc", "free_completed")]


def peak_of(events):
    live = most = 0
    for action, size in events:
        live += size if action == "alloc" else -size
        most = max(most, live)
    return most


def reserved(snapshot):
    return sum(segment["total_size"] for segment in snapshot["segments"])


def gpumem(command, *arguments):
    done = subprocess.run([BUILD + "/report/gpumem", command, "--json", "--device", "h100", *arguments], capture_output=True,
                          text=True, check=False, timeout=3000)
    return json.loads(done.stdout)


version = subprocess.run([PYTHON, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True,
                         check=False).stdout
if not os.path.exists(RECORDING) or not version.startswith("2.6."):
    print(f"skipped: no {RECORDING}, or PyTorch 2.6 is missing (found {version.strip() or 'none'})")
    sys.exit(77)
failures = []
with tempfile.TemporaryDirectory() as folder:
    gpumem("dry-run", "--no-keep", "--once", "--", PYTHON, "-W", "ignore", PROGRAM, "128", "1", folder + "/own.pickle")
    with lzma.open(RECORDING) as one, open(folder + "/own.pickle", "rb") as other:
        recorded, own = pickle.load(one), pickle.load(other)
events, found = events_of(recorded), events_of(own)
same = next((at for at, pair in enumerate(zip(events, found)) if pair[0] != pair[1]), min(len(events), len(found)))
print(f"     {same} of {len(events)} allocations and frees are equal, peaks {peak_of(events)} and {peak_of(found)} above the "
      f"weights, {reserved(recorded)} and {reserved(own)} reserved")
if same != len(events) or peak_of(events) != peak_of(found[:same]):
    failures.append(f"event {same}: {events[same:same + 3]} recorded, {found[same:same + 3]} here")
if abs(reserved(recorded) - reserved(own)) > reserved(recorded) / 1000:
    failures.append("reserved")

fit = gpumem("fit", "--fresh", "--over", "CONTEXT=64..2048:64", "--", PYTHON, "-W", "ignore", PROGRAM, "{CONTEXT}")["fit"]
best = fit["best"]
print(f"     the largest context that fits is {best and best['values']['CONTEXT']}: {best and best['peak']} of "
      f"{best and best['capacity']}, {fit['runs']} runs")
if not best or int(best["values"]["CONTEXT"]) < PROVED:
    failures.append(f"a context of {PROVED} ran on the card, and does not fit here")
if any(int(point["values"]["CONTEXT"]) <= PROVED and point["verdict"] != "fits" for point in fit["points"]):
    failures.append("a context that ran on the card does not fit here")
print("FAIL: " + "; ".join(failures) if failures else "PASS")
sys.exit(bool(failures))
