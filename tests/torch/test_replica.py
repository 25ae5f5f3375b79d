#!/usr/bin/env python3
"""PyTorch's blocks, on the replica: every report of the allocator is in the trace, and adds up.

    test_replica.py BUILD FOLDER [--events N]

Runs replica.py on the libraries of FOLDER without and with the preload; then checks that
  - the program printed the same, so the original functions got their calls and arguments;
  - the trace has one event for each report of a device, none for those of the host, and is complete;
  - at every event the totals that the allocator carries are the sums of the events before it, of blocks
    and of segments; every block lies in a segment and has a stack;
  - the report counts the same, and fits 80 columns;
  - with Python stacks, the blocks kept by retained_list() name that function;
  - with GPUMEM_TORCH=0 there is no event of a block, and the program prints the same.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import blocks  # noqa: E402
import trace_reader  # noqa: E402

failures = []


def expect(condition, text):
    if not condition:
        failures.append(text)
        print("FAIL:", text)


def run(options, folder, **environment):
    command = [sys.executable, os.path.join(HERE, "replica.py"), os.path.abspath(options.folder), str(options.events)]
    environment = dict(os.environ, LD_LIBRARY_PATH=options.build + "/sim", GPUMEM_SIM_DEVICES="2", **environment)
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    expect(done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def check_text(options, trace):
    text = subprocess.run([options.build + "/report/gpumem", "report", "-v", trace], capture_output=True, text=True,
                          env=dict(os.environ, LC_ALL="C.UTF-8"), check=True).stdout
    for line in text.splitlines():
        expect(len(line) <= 80, f"{len(line)} columns: {line}")


def recorded(options, bare, **environment):
    with tempfile.TemporaryDirectory() as folder:
        preload = options.build + "/preload/libgpumem.so"
        output = run(options, folder, LD_PRELOAD=preload, **environment)
        expect(output == bare, f"another output with the preload:\n{bare}\n{output}")
        traces = os.listdir(folder)
        expect(len(traces) == 1, f"one trace expected, not {traces}")
        if not traces:
            return None
        trace = os.path.join(folder, traces[0])
        replay = blocks.Replay(trace)
        for text in blocks.report_problems(options.build + "/report/gpumem", trace, replay):
            expect(False, text)
        check_text(options, trace)
        if options.events <= 20000 and replay.block_events():
            check_time(options, trace, replay)
        return replay


def check_time(options, trace, replay):
    """What whatif says of the time in calls that took memory is that of the slow ones which took a segment."""
    there, segments = {}, []  # segments as [end, ns, whether it had a block]
    for record, _ in replay.trace.records():
        if record.type == trace_reader.ALLOC and record.kind == 1 and record.device == 0:
            expect(record.extra == 0 or record.extra >= 1000, f"a fast call was timed: {record.extra} ns")
            there[record.address] = [record.address + record.size, record.extra, False]
            segments.append(there[record.address])
        elif record.type == trace_reader.FREE:
            there.pop(record.address, None)
        elif record.type == trace_reader.BLOCK_ALLOC and record.device == 0:
            for address, segment in there.items():
                segment[2] |= address <= record.address < segment[0]
    done = subprocess.run([options.build + "/report/gpumem", "whatif", "--json", "--device", "0", trace],
                          capture_output=True, text=True, check=True)
    said, took = json.loads(done.stdout), sum(ns for _, ns, has_block in segments if has_block)
    expect((said["recorded"]["device_ns"] or 0) == took, f"{said['recorded']}, not {took} ns")
    expect((said["settings"][0]["device_ns"] is None) == (took == 0), said["settings"])


def kept_by_retained_list(replay):
    """Blocks whose stack names the function, among all Python stacks."""
    stacks = [list(replay.trace.script_frames(record.stack)) for record, _ in replay.trace.records()
              if record.type == trace_reader.BLOCK_ALLOC]
    named = sum(any("retained_list" in function for _, function, _ in frames) for frames in stacks)
    return named, any(stacks)


def check_trace(replay, bare):
    reports = int(re.search(r"^end \d+ \d+ (\d+)$", bare, re.MULTILINE)[1])
    found = replay.block_events() + replay.events[trace_reader.BLOCK_OOM]
    host_reports = 2
    expect(found == reports - host_reports, f"{found} events of blocks, {reports - host_reports} reports")
    expect(replay.events[trace_reader.BLOCK_OOM] == bare.count("refused"), "out of memory not recorded once each")
    expect(not any(replay.trace.counters[:4]), f"records lost: {replay.trace.counters[:10]}")
    for text in replay.problems:
        expect(False, text)
    for device, pool in replay.pools.items():
        expect(pool.allocated == pool.reserved == 0, f"device {device}: {pool.allocated}, {pool.reserved} at the end")
    expect([name for _, name in replay.names] == ["retained", "fragment"], f"marks: {replay.names}")
    named, python = kept_by_retained_list(replay)
    expect(named == 20 or not python, f"{named} blocks name retained_list, not 20")
    print(f"{found} events of blocks equal the allocator's totals;",
          f"{named} name the Python function" if python else "no Python stacks recorded")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("folder")
    parser.add_argument("--events", type=int, default=20000)
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    with tempfile.TemporaryDirectory() as folder:
        bare = run(options, folder)
        expect(not os.listdir(folder), "files without the preload")
    replay = recorded(options, bare)
    if replay:
        check_trace(replay, bare)
    replay = recorded(options, bare, GPUMEM_TORCH="0")
    if replay:
        expect(replay.block_events() == 0, "blocks recorded with GPUMEM_TORCH=0")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
