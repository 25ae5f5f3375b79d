#!/usr/bin/env python3
"""
gpumem on memory snapshots of PyTorch: snapshots.py GPUMEM [REALGPU], or snapshots.py tests/corpus to write anew the
two that lie there.

Snapshots are made here as PyTorch makes them, by its versions: what the report says of them is counted here, too. Then
pickles that no PyTorch makes: more than plain data, cut, deep, wrong. REALGPU: a folder of snapshots of real GPUs with
their figures; without it they are passed over.
"""
import json
import lzma
import os
import pickle
import pickletools
import random
import re
import resource
import subprocess
import sys
import tempfile

GPUMEM = os.path.abspath(sys.argv[1])
REALGPU = sys.argv[2] if len(sys.argv) > 2 else ""
FRAMES = [{"name": "torch::unwind::unwind()", "filename": "??", "line": 0},
          {"name": "at::_ops::empty::call(int)", "filename": "/x/libtorch_cpu.so", "line": 81234567},
          {"name": "_PyEval_EvalFrame", "filename": "??", "line": 0},
          {"name": "step", "filename": "/home/me/train.py", "line": 12},
          {"name": "<module>", "filename": "/home/me/train.py", "line": 40}]
failures = 0


def expect(what, is_so, detail=""):
    global failures
    if not is_so:
        failures += 1
        print(f"FAIL {what}: {detail}", flush=True)


def run(folder, content, *arguments):
    path = os.path.join(folder, "snapshot.any")  # told by its content, not by its name
    with open(path, "wb") as file:
        file.write(content)
    return subprocess.run([GPUMEM, arguments[0], *arguments[1:], path], capture_output=True, text=True, timeout=60,
                          check=False)


def report_of(folder, content):
    done = run(folder, content, "report", "--json")
    expect("exit code", done.returncode == 0, done.stderr)
    return json.loads(done.stdout) if done.returncode == 0 else None


def rounded(size):
    return max(512, (size + 511) // 512 * 512)


class Device:
    """A device's allocator: one segment for each block that fits no other, enough for a history."""

    def __init__(self, number, base):
        self.number, self.next = number, base
        self.segments, self.events, self.live = {}, [], {}
        self.requested = self.requested_peak = self.reserved = self.reserved_peak = 0
        self.time = 1_700_000_000_000_000

    def event(self, action, **more):
        self.time += 3
        self.events.append({"action": action, "stream": 0, "time_us": self.time, "frames": FRAMES, **more})

    def alloc(self, size, synthetic=False):
        for start, total in self.segments.items():
            used = sorted((a, b) for a, (_, b) in self.live.items() if start <= a < start + total)
            at = start
            for address, taken in used:
                if address - at >= rounded(size):
                    break
                at = address + taken
            if start + total - at >= rounded(size):
                return self.place(at, size, synthetic)
        total = (max(rounded(size), 2 << 20) + (2 << 20) - 1) >> 21 << 21
        self.segments[self.next] = total
        self.event("segment_alloc", addr=self.next, size=total)
        self.reserved += total
        self.reserved_peak = max(self.reserved_peak, self.reserved)
        address, self.next = self.next, self.next + total + (4 << 20)
        return self.place(address, size, synthetic)

    def place(self, address, size, synthetic):
        self.live[address] = (size, rounded(size))
        self.event("alloc", addr=address, size=size, **({"internal_metadata": "mallocWithAddress"} if synthetic else {}))
        if not synthetic:
            self.requested += size
            self.requested_peak = max(self.requested_peak, self.requested)
        return address

    def free(self, address, synthetic=False):
        size, _ = self.live.pop(address)
        for action in ("free_requested", "free_completed"):
            self.event(action, addr=address, size=size,
                       **({"internal_metadata": "mallocWithAddress"} if synthetic else {}))
        if not synthetic:
            self.requested -= size

    def empty_cache(self):
        for start, total in list(self.segments.items()):
            if not any(start <= address < start + total for address in self.live):
                del self.segments[start]
                self.event("segment_free", addr=start, size=total)
                self.reserved -= total

    def forget(self):
        """What was recorded until now is overwritten."""
        self.events = []
        self.requested_peak, self.reserved_peak = self.requested, self.reserved

    def blocks(self, start, total, old):
        at = start
        for address in sorted(a for a in self.live if start <= a < start + total) + [start + total]:
            if address > at:
                yield {"address": at, "size": address - at, "requested_size": 0, "state": "inactive", "frames": []}
            if address < start + total:
                size, at = self.live[address][0], address + self.live[address][1]
                block = {"size": self.live[address][1], "state": "active_allocated"}
                if old:
                    block["history"] = [{"addr": address, "real_size": size, "frames": FRAMES}]
                else:
                    block.update(address=address, requested_size=size, frames=FRAMES)
                yield block

    def snapshot(self, old):
        segments = []
        for start, total in self.segments.items():
            segment = {"device": self.number, "address": start, "total_size": total, "stream": 0,
                       "segment_type": "small" if total == 2 << 20 else "large",
                       "blocks": list(self.blocks(start, total, old))}
            if old:
                for block in segment["blocks"]:
                    block.pop("address", None), block.pop("requested_size", None)
            else:
                segment.update(segment_pool_id=(0, 0), is_expandable=False, frames=FRAMES)
            segments.append(segment)
        return segments


def program(device, rng, steps):
    held = []
    for _ in range(steps):
        if held and rng.random() < 0.45:
            device.free(held.pop(rng.randrange(len(held))))
        elif rng.random() < 0.03:
            device.empty_cache()
        else:
            held.append(device.alloc(int(10 ** rng.uniform(0, 7.5))))
        if rng.random() < 0.05:
            device.free(device.alloc(512, True), True)


def figures(report):
    return {b["device"]: (b["requested_peak"], b["reserved_peak"]) for b in report["framework_blocks"]}


def check_figures(folder):
    for seed in range(30):
        rng = random.Random(seed)
        devices = [Device(number, 0x7F0000000000 + (number << 40)) for number in range(rng.choice((1, 1, 3)))]
        for device in devices:
            program(device, rng, 150)
            if rng.random() < 0.6:
                device.forget()
            if rng.random() < 0.8:
                program(device, rng, 150)
        old = seed % 5 == 4
        content = {"segments": sum((d.snapshot(old) for d in devices), []),
                   "device_traces": [d.events for d in devices]}
        report = report_of(folder, pickle.dumps(content, protocol=seed % 6))
        expected = {d.number: (d.requested_peak, d.reserved_peak) for d in devices if d.reserved_peak}
        expect(f"figures of program {seed}", report and figures(report) == expected,
               f"{expected}, not {report and figures(report)}")
        expect(f"gaps of program {seed}", report and [g["code"] for g in report["gaps"]] == ["snapshot"],
               report and report["gaps"])


def check_without_history(folder):
    device = Device(0, 1 << 40)
    program(device, random.Random(1), 100)
    expected = {0: (device.requested, device.reserved)}
    for old in (False, True):
        segments = device.snapshot(old)
        for content in ({"segments": segments, "device_traces": [[]]}, {"segments": segments}, segments):
            report = report_of(folder, pickle.dumps(content))
            expect("figures without a history", report and figures(report) == expected, report and figures(report))


def check_contents(folder):
    """What else a snapshot has: expandable segments, several streams' frees, annotations, pinned memory, settings."""
    frames = [{"name": "f", "filename": "/home/me/a.py", "line": 3, "fx_node_op": "call_function",
               "fx_node_name": "relu_1", "fx_original_trace": "x"}]
    mib = 1 << 20
    events = [("segment_map", 1 << 44, 40 * mib), ("alloc", 1 << 44, 30 * mib), ("alloc", (1 << 44) + 30 * mib, 100),
              ("free_requested", 1 << 44, 30 * mib), ("free_completed", 1 << 44, 30 * mib),
              ("segment_unmap", 1 << 44, 20 * mib), ("annotate", (1 << 44) + 30 * mib, 0),
              ("oom", None, 1 << 50), ("snapshot", 0, 0), ("something_new", 5, 5)]
    trace = [{"action": action, "addr": address, "size": size, "stream": 0, "time_us": 1000 + i, "frames": frames,
              "pool_id": (0, 0), "user_metadata": "layer \x1b[31m7"} for i, (action, address, size) in enumerate(events)]
    del trace[7]["addr"]
    trace[7]["device_free"] = 5 * mib
    segment = {"device": 0, "address": (1 << 44) + 20 * mib, "total_size": 20 * mib, "stream": 0,
               "segment_type": "large", "is_expandable": True, "frames": frames,
               "blocks": [{"size": 10 * mib, "state": "inactive", "requested_size": 30 * mib},
                          {"size": 512, "state": "active_allocated", "requested_size": 100, "frames": frames},
                          {"size": 10 * mib - 512, "state": "inactive", "requested_size": 0}]}
    host = {"device": -1, "address": 1 << 46, "total_size": 4 * mib, "segment_type": "large", "blocks": []}
    content = {"segments": [segment], "device_traces": [trace], "host_segments": [host], "host_traces": [],
               "external_annotations": [{"stage": "START", "name": "step", "device": 0, "time_us": 1001},
                                        {"stage": "END", "name": "step", "device": 0, "time_us": 1005}],
               "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "expandable_segments": True}}
    report = report_of(folder, pickle.dumps(content))
    block = report["framework_blocks"][0]
    expect("expandable", (block["requested_peak"], block["reserved_peak"], block["reserved"]) ==
           (30 * mib + 100, 40 * mib, 20 * mib), block)
    expect("settings", block["settings"] == "expandable_segments:True", block["settings"])
    expect("out of memory", block["out_of_memory"] == 1, block["out_of_memory"])
    expect("pinned", report["host"]["pinned"]["peak"] == 4 * mib, report["host"]["pinned"])
    expect("annotations", "step" in json.dumps(report["phases"]), report["phases"])
    done = run(folder, pickle.dumps(content), "report")
    expect("text", "f [call_function relu_1]" in done.stdout and "layer ?[31m7" in done.stdout, done.stdout)
    expect("control characters", not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", done.stdout))
    expect("80 columns", all(len(line) <= 80 for line in done.stdout.splitlines()))
    for command, code in ((("check",), 0), (("info",), 0), (("check", "--max-peak", "39M"), 1)):
        done = run(folder, pickle.dumps(content), *command)
        expect(" ".join(command), done.returncode == code, done.stdout + done.stderr)
    # A block that the history allocates in no segment and that is there no more contradicts it.
    content["device_traces"][0].insert(1, dict(trace[1], addr=77))
    report = report_of(folder, pickle.dumps(content))
    expect("a contradiction is told", "snapshot_contradicts" in [g["code"] for g in report["gaps"]], report["gaps"])
    done = run(folder, pickle.dumps(content), "check")
    expect("a contradiction is not judged", done.returncode == 3, done.returncode)


class Executed:
    def __reduce__(self):
        return (os.system, ("touch executed",))


def refused(folder, what, content, said):
    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    path = os.path.join(folder, "hostile")
    with open(path, "wb") as file:
        file.write(content)
    done = subprocess.run([GPUMEM, "report", path], capture_output=True, text=True, timeout=20, check=False, cwd=folder,
                          preexec_fn=bound)
    expect(what, done.returncode == 3 and said in done.stderr and len(done.stderr.splitlines()) == 1,
           f"{done.returncode} {done.stderr[:300]!r}")
    expect(f"{what}: no control character", not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", done.stderr))


def check_hostile(folder):
    for protocol in range(6):
        refused(folder, f"code, protocol {protocol}", pickle.dumps({"segments": [Executed()]}, protocol=protocol),
                "which gpumem never executes")
    expect("nothing was executed", not os.path.exists(os.path.join(folder, "executed")))
    start, none = b"\x80\x04", "no memory snapshot"
    for what, content, said in (
            ("nothing in it", start, "cut"),
            ("a number", start + b"K\x05.", none),
            ("another dict", pickle.dumps({"a": 1}), none),
            ("no value", start + b".", "empty stack"),
            ("a mark only", start + b"(.", "ends without a value"),
            ("taken from nothing", start + b"a.", "empty stack"),
            ("a mark that is not there", start + b"}u.", "misses a mark"),
            ("a key without a value", start + b"}(K\x01u.", "no list or dict"),
            ("added to a number", start + b"K\x01K\x02a.", "no list or dict"),
            ("a text of 2^64 bytes", start + b"\x8d" + b"\xff" * 8 + b"x.", "cut"),
            ("a memo that it has not", start + b"h\x07.", "has not"),
            ("a memo of 2^32 places", start + b"}r\xff\xff\xff\xff.", "impossible numbers"),
            ("an unknown opcode", start + b"\xfe.", "0xfe is no opcode"),
            ("a newer protocol within", start + b"\x80\x09}.", "newer protocol"),
            ("a million open lists", start + b"(" * 1000000, "cut"),
            ("a million nested lists", start + b"]" * 1000000 + b"a" * 999999 + b".", none),
            ("a million references", start + b"]\x94" + b"(" + b"h\x00" * 1000000 + b"e.", none)):
        refused(folder, what, content, said)
    # A list named again and again: a small file that stands for 10^10 blocks.
    block = {"size": 512, "state": "active_allocated"}
    segment = {"device": 0, "address": 1 << 30, "total_size": 1 << 30, "blocks": [block] * 100000}
    done = run(folder, pickle.dumps({"segments": [segment] * 100000}), "check")
    expect("a bomb of references", done.returncode == 3, done.returncode)
    deep = start + b"}\x94\x8c\x08segmentsh\x00s."  # a dict that contains itself
    refused(folder, "itself", deep, none)
    frames = []
    frames.append(frames)
    block = dict(block, frames=frames)
    loop = {"segments": [{"device": 0, "address": 4096, "total_size": 2 << 20, "blocks": [block], "frames": frames}]}
    expect("frames that contain themselves", report_of(folder, pickle.dumps(loop)) is not None)
    # Wrong types everywhere, one at a time.
    device = Device(0, 1 << 40)
    program(device, random.Random(2), 20)
    for value in (None, -1, 2**63, 2**70, -2**70, "text", 1.5, float("nan"), [], {}, (1,), b"\xff\x00", True):
        for where in ("device", "address", "total_size", "blocks", "stream", "segment_pool_id"):
            segments = device.snapshot(False)
            segments[0][where] = value
            done = run(folder, pickle.dumps({"segments": segments, "device_traces": [device.events]}), "report")
            expect(f"{where} = {value!r}", done.returncode == 0, done.stderr)
        for where in ("action", "addr", "size", "time_us", "frames", "stream"):
            events = [dict(event, **{where: value}) for event in device.events]
            done = run(folder, pickle.dumps({"segments": [], "device_traces": [events]}), "report")
            expect(f"{where} = {value!r}", done.returncode == 0, done.stderr)


def check_cut(folder):
    device = Device(0, 1 << 40)
    program(device, random.Random(3), 10)
    content = pickle.dumps({"segments": device.snapshot(False), "device_traces": [device.events]}, protocol=4)
    opcodes = [position for _, _, position in pickletools.genops(content)]
    for size in sorted(set(opcodes[2:] + list(range(3, len(content), 97)))):
        done = run(folder, content[:size], "report")
        if done.returncode != 3:
            expect(f"cut at {size} of {len(content)}", False, done.returncode)


def check_real(folder):
    if not os.path.exists(os.path.join(REALGPU, "README.md")):
        print("no snapshots of real GPUs here: passed over")
        return
    with open(os.path.join(REALGPU, "README.md"), encoding="utf-8") as file:
        rows = re.findall(r"^\| (\w+) \|[^|]*\|[^|]*\| ([\d,]+) \| ([\d,]+) \|", file.read(), re.MULTILINE)
    expect("rows of the README", len(rows) >= 6, rows)
    for name, *said in rows:
        with lzma.open(os.path.join(REALGPU, name + ".pickle.xz")) as file:
            report = report_of(folder, file.read())
        expected = {0: tuple(int(number.replace(",", "")) for number in said)}
        expect(name, report and figures(report) == expected, f"{expected}, not {report and figures(report)}")
        expect(name, report and [g["code"] for g in report["gaps"]] == ["snapshot"], report and report["gaps"])


def write_corpus(folder):
    """tests/corpus/*.pickle, which the fuzz target begins with."""
    for name, old, protocol in (("snapshot", False, 4), ("snapshot-old", True, 0)):
        device = Device(0, 1 << 40)
        program(device, random.Random(3), 12)
        with open(os.path.join(folder, name + ".pickle"), "wb") as file:
            content = {"segments": device.snapshot(old), "device_traces": [device.events]}
            file.write(pickletools.optimize(pickle.dumps(content, protocol=protocol)))


if GPUMEM.endswith("corpus"):
    write_corpus(GPUMEM)
    sys.exit()
with tempfile.TemporaryDirectory() as temporary:
    for check in (check_figures, check_without_history, check_contents, check_hostile, check_cut, check_real):
        check(temporary)
sys.exit(failures != 0)
