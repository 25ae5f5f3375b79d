#!/usr/bin/env python3
"""`gpumem export` on the traces of the corpus, on three written for it, and on random ones.

    test_export.py GPUMEM SOURCE EXPORT_TRACES CONSUMERS

What must hold (each broken promise is one line on stderr, and exit code 1):
  - the consumer of each format reads what was written, and finds the sums of `gpumem report --json`;
  - no name of a trace leaves its field: text is escaped by the rules of each format, and nothing holds control
    characters;
  - the same trace gives the same bytes; a file is there whole or not at all.
CONSUMERS is a folder with packages of pip (export.cmake). A consumer that the machine lacks is named; its format is
still read by this script's own reader, where it has one.
"""
import collections
import csv
import glob
import gzip
import io
import itertools
import json
import os
import pickle
import pickletools
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

gpumem, source, export_traces, consumers = sys.argv[1:5]
sys.path.insert(0, consumers)
RANDOM = int(os.environ.get("GPUMEM_TEST_FIGURES", "20")) # traces as tests/outputs/test_figures.py has them
problems = 0
missing = set()


def expect(good, text):
    global problems
    if not good:
        problems += 1
        print("FAIL: " + text, file=sys.stderr)


def consumer(name, load):
    try:
        return load()
    except ImportError:
        missing.add(name)
        return None


def run(*arguments, **options):
    return subprocess.run([gpumem, *arguments], capture_output=True, timeout=120, check=False, **options)


def export(form, trace, *arguments):
    done = run("export", "--format", form, *arguments, trace)
    again = run("export", "--format", form, *arguments, trace)
    expect(done.returncode == 0, f"{trace} {form}: exit code {done.returncode}: {done.stderr!r}")
    expect(done.stdout == again.stdout, f"{trace} {form}: two exports differ")
    return done.stdout


def no_control(what, text):
    found = re.search("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", text)
    expect(found is None, f"{what}: a control character at {found and text[max(0, found.start() - 30):found.end()]!r}")


# ---- what the report says


def peaks(report):
    """Group -> bytes at its peak."""
    found = {f"device {device['id']}" if device["id"] >= 0 else "device unknown": device["peak"]
             for device in report["devices"]}
    found["host pinned"] = report["host"]["pinned"]["peak"]
    for pool in report.get("framework_blocks", []):
        found[f"blocks on device {pool['device']}"] = pool["peak"]
    return {group: size for group, size in found.items() if size}


def tallies(report):
    """(device, kind) -> allocs, live."""
    found = {}
    for device in report["devices"]:
        for kind, tally in device["kinds"].items():
            found[str(device["id"]), kind] = tally["allocs"], tally["live"]
    for kind, tally in report["host"].items():
        found["", kind] = tally["allocs"], tally["live"]
    for pool in report.get("framework_blocks", []):
        found[str(pool["device"]), "block"] = pool["allocs"], pool["live"]
    return {key: value for key, value in found.items() if value[0]}


def leaked(report):
    return sum(of["bytes"] for of in report["leaked"].values())


def blocks_left(report):
    return sum(pool["live"] for pool in report.get("framework_blocks", []))


# ---- the formats


def check_collapsed(name, trace, report):
    def sums(*arguments):
        text = export("collapsed", trace, *arguments).decode()
        no_control(f"{name} collapsed", text)
        found = collections.Counter()
        for line in text.splitlines():
            stack, _, size = line.rpartition(" ")
            expect(size.isdigit(), f"{name} collapsed: no number in {line!r}")
            found[stack.split(";")[0]] += int(size)
        return dict(found)
    expect(sums() == peaks(report), f"{name} collapsed: {sums()} instead of {peaks(report)}")
    at_end = sums("--at", "end")
    blocks = sum(size for group, size in at_end.items() if group.startswith("blocks"))
    expect(sum(at_end.values()) - blocks == leaked(report), f"{name} collapsed: {at_end} left instead of {leaked(report)}")
    expect(blocks == blocks_left(report), f"{name} collapsed: {blocks} in blocks left")


def check_rows(name, rows, report):
    """Rows with device ("": of the host), kind, is_block, bytes, ended."""
    allocs, live = collections.Counter(), collections.Counter()
    for row in rows:
        key = row["device"], "block" if row["is_block"] else row["kind"]
        allocs[key] += 1
        live[key] += row["bytes"] if row["ended"] == "alive" else 0
    found = {key: (allocs[key], live[key]) for key in allocs}
    expect(found == tallies(report), f"{name}: {found} instead of {tallies(report)}")


def check_csv(name, trace, report):
    text = export("csv", trace).decode()
    no_control(f"{name} csv", text)
    rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    for row in rows:
        row["is_block"], row["bytes"] = row["is_block"] == "1", int(row["bytes"])
        expect(None not in row and None not in row.values(), f"{name} csv: a row of another length: {row}")
        expect((row["end_ns"] == "") == (row["ended"] == "alive"), f"{name} csv: ended {row['ended']} at {row['end_ns']!r}")
        expect(not row["place"].startswith(("=", "+", "-", "@")), f"{name} csv: a formula: {row['place']!r}")
    check_rows(f"{name} csv", rows, report)
    held = list(csv.DictReader(io.StringIO(export("csv", trace, "--at", "end").decode(), newline=""), strict=True))
    expect(sum(int(row["bytes"]) for row in held if row["is_block"] == "0") == leaked(report), f"{name} csv --at end")


def check_ndjson(name, trace, report):
    text = export("ndjson", trace).decode()
    no_control(f"{name} ndjson", text)
    lines = [json.loads(line) for line in text.split("\n") if line]
    stacks = [line["stack"] for line in lines if line["type"] == "stack"]
    rows = [line for line in lines if line["type"] == "allocation"]
    expect([line["type"] for line in lines[:1]] == ["run"], f"{name} ndjson: the run comes first")
    expect(stacks == list(range(len(stacks))), f"{name} ndjson: stacks {stacks}")
    expect({row["stack"] for row in rows} == set(stacks), f"{name} ndjson: stacks that nobody has, or nobody lists")
    for row in rows:
        row["device"] = "" if row["device"] is None else str(row["device"])
    check_rows(f"{name} ndjson", rows, report)


def check_duckdb(name, trace, report):
    duckdb = consumer("duckdb", lambda: __import__("duckdb"))
    if not duckdb or not tallies(report):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows")
        connection = duckdb.connect()
        query = "SELECT count(*), CAST(sum(bytes) FILTER (ended = 'alive') AS BIGINT) FROM "
        wanted = (sum(allocs for allocs, _ in tallies(report).values()), sum(live for _, live in tallies(report).values()))
        for form, reader in (("csv", f"read_csv('{path}', header = true, strict_mode = true, all_varchar = false)"),
                             ("ndjson", f"read_ndjson('{path}', sample_size = -1) WHERE type = 'allocation'")):
            with open(path, "wb") as file:
                file.write(export(form, trace))
            count, live = connection.execute(query + reader).fetchone()
            expect((count, live or 0) == wanted, f"{name}: DuckDB reads {count}, {live} from {form}, not {wanted}")


def check_openmetrics(name, trace, report):
    text = export("openmetrics", trace).decode()
    no_control(f"{name} openmetrics", text)
    expect(text.endswith("# EOF\n") and text.count("# EOF") == 1, f"{name} openmetrics: no end")
    values = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            series, _, value = line.rpartition(" ")
            expect(series not in values, f"{name} openmetrics: {series} twice")
            values[series] = value
    for (device, kind), (allocs, live) in tallies(report).items():
        if kind != "block":
            labels = f'{{device="{device or "host"}",kind="{kind}"}}'
            expect(values.get("gpumem_allocations_total" + labels) == str(allocs), f"{name} openmetrics: allocs {labels}")
            expect(values.get("gpumem_live_bytes" + labels) == str(live), f"{name} openmetrics: live {labels}")
    for device in report["devices"]:
        series = f'gpumem_device_peak_bytes{{device="{device["id"]}"}}'
        expect(values.get(series) == str(device["peak"]), f"{name} openmetrics: {series} is {values.get(series)}")
    for leak_class, of in report["leaked"].items():
        expect(values[f'gpumem_leaked_bytes{{class="{leak_class}"}}'] == str(of["bytes"]), f"{name} openmetrics: {leak_class}")
    parser = consumer("prometheus_client", lambda: __import__("prometheus_client.openmetrics.parser"))
    if parser:
        families = list(parser.openmetrics.parser.text_string_to_metric_families(text))
        expect(sum(len(family.samples) for family in families) == len(values), f"{name}: prometheus_client reads other samples")


def fields(data):
    """Number and value of each field of a message of protocol buffers."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        value = varint()
        if key & 7 == 2:
            at += value
            value = data[at - value:at]
        expect(key & 7 in (0, 2), "a wire type that is not written")
        yield key >> 3, value


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def check_pprof(name, trace, report):
    data = export("pprof", trace)
    profile = collections.defaultdict(list)
    for field, value in fields(gzip.decompress(data)):
        profile[field].append(value)
    strings = [text.decode() for text in profile[6]]
    expect(strings[0] == "" and len(set(strings)) == len(strings), f"{name} pprof: strings")
    no_control(f"{name} pprof", "\n".join(strings))
    types = [strings[dict(fields(one))[1]] for one in profile[1]]
    locations, functions = {dict(fields(one))[1] for one in profile[4]}, {dict(fields(one))[1] for one in profile[5]}
    sums = collections.Counter()
    for sample in profile[2]:
        for field, value in fields(sample):
            expect(field != 1 or value in locations, f"{name} pprof: no location {value}")
        values = [signed(value) for field, value in fields(sample) if field == 2]
        expect(len(values) == len(types), f"{name} pprof: {len(values)} values")
        for kind, value in zip(types, values):
            sums[kind] += value
    expect(locations == functions, f"{name} pprof: locations and functions differ")
    wanted = peaks(report)
    blocks = sum(size for group, size in wanted.items() if group.startswith("blocks"))
    expect(sums["block_space"] == blocks, f"{name} pprof: {sums['block_space']} in blocks, not {blocks}")
    expect(sums["inuse_space"] == sum(wanted.values()) - blocks, f"{name} pprof: {sums['inuse_space']} in use")
    allocs = sum(allocs for (_, kind), (allocs, _) in tallies(report).items() if kind != "block")
    expect(sums["alloc_objects"] == allocs, f"{name} pprof: {sums['alloc_objects']} allocations, not {allocs}")
    tool = [shutil.which("go"), "tool", "pprof"] if shutil.which("go") else glob.glob("/usr/lib/go-*/pkg/tool/*/pprof")[:1]
    if not tool:
        missing.add("Go's pprof")
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        shown = subprocess.run([*tool, "-raw", "-sample_index=inuse_space", file.name], capture_output=True, text=True,
                               check=False, timeout=600) # newer Go builds its pprof now
        expect(shown.returncode == 0, f"{name}: pprof says {shown.stderr}")
        rows = re.findall(r"^ +\d+ +\d+ +\d+ +(\d+) +\d+ +\d+:", shown.stdout, re.M)
        expect(sum(map(int, rows)) == sums["inuse_space"], f"{name}: pprof adds up to {sum(map(int, rows))}")


def check_speedscope(name, trace, report):
    """The rules of https://www.speedscope.app/file-format-schema.json for sampled profiles."""
    text = export("speedscope", trace).decode()
    no_control(f"{name} speedscope", text)
    document = json.loads(text)
    expect(document["$schema"] == "https://www.speedscope.app/file-format-schema.json", f"{name} speedscope: $schema")
    frames = document["shared"]["frames"]
    for frame in frames:
        expect(isinstance(frame["name"], str) and set(frame) <= {"name", "file", "line", "col"}, f"{name} speedscope: {frame}")
    sums = {}
    for profile in document["profiles"]:
        expect(set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}, f"{name}: members")
        expect(profile["type"] == "sampled" and profile["unit"] == "bytes" and profile["startValue"] == 0, f"{name}: profile")
        expect(len(profile["samples"]) == len(profile["weights"]), f"{name} speedscope: samples and weights")
        expect(all(0 <= frame < len(frames) for sample in profile["samples"] for frame in sample), f"{name}: frames")
        expect(sum(profile["weights"]) == profile["endValue"], f"{name} speedscope: the weights are no {profile['endValue']}")
        sums[profile["name"]] = profile["endValue"]
    expect(sums == peaks(report), f"{name} speedscope: {sums} instead of {peaks(report)}")


def check_sqlite(name, trace, report):
    text = export("sqlite", trace).decode()
    no_control(f"{name} sqlite", text)
    database = sqlite3.connect(":memory:")
    database.executescript(text)
    rows = [{"device": "" if device is None else str(device), "kind": kind, "is_block": is_block, "bytes": size, "ended": ended}
            for device, kind, is_block, size, ended in database.execute(
                "SELECT device, kind, is_block, bytes, ended FROM allocations JOIN places USING(place)")]
    check_rows(f"{name} sqlite", rows, report)
    held = dict(database.execute("SELECT memory, sum(bytes) FROM v_peak GROUP BY memory"))
    expect(held == peaks(report), f"{name} sqlite: {held} instead of {peaks(report)}")
    left = database.execute("SELECT sum(bytes) FROM v_leaks WHERE memory NOT LIKE 'blocks%'").fetchone()[0]
    expect((left or 0) == leaked(report), f"{name} sqlite: {left} left")
    names = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    expect(names == {"run", "frames", "places", "allocations", "held"}, f"{name} sqlite: tables {names}")


def check_perfetto(name, trace, report):
    """The wheel's own classes read it; then what its importer relies on."""
    perfetto = consumer("perfetto", lambda: __import__("perfetto.protos.perfetto.trace.perfetto_trace_pb2"))
    if not perfetto:
        return
    document = perfetto.protos.perfetto.trace.perfetto_trace_pb2.Trace()
    document.ParseFromString(export("perfetto", trace))
    tracks, now, most = {}, collections.Counter(), collections.Counter()
    interned = collections.defaultdict(dict)
    dumps = collections.defaultdict(list)
    expect(document.packet[0].sequence_flags == 1, f"{name} perfetto: the sequence does not begin")
    for packet in document.packet:
        expect(packet.trusted_packet_sequence_id == 1, f"{name} perfetto: another sequence")
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            expect(track.uuid not in tracks and (track.parent_uuid in tracks or track.HasField("process")), f"{name}: track {track}")
            tracks[track.uuid] = track.name
        if packet.HasField("track_event"):
            event = packet.track_event
            expect(event.track_uuid in tracks, f"{name} perfetto: an event of no track")
            if event.type == 4:
                group = tracks[event.track_uuid]
                now[group] = event.counter_value
                most[group] = max(most[group], event.counter_value)
        data = packet.interned_data
        for kind in ("function_names", "source_paths", "mappings", "frames", "callstacks"):
            for one in getattr(data, kind):
                expect(one.iid and one.iid not in interned[kind], f"{name} perfetto: {kind} {one.iid}")
                interned[kind][one.iid] = one
        for frame in data.frames:
            expect(frame.function_name_id in interned["function_names"] and frame.mapping_id in interned["mappings"] and
                   (not frame.source_path_iid or frame.source_path_iid in interned["source_paths"]), f"{name} perfetto: {frame}")
        for stack in data.callstacks:
            expect(all(one in interned["frames"] for one in stack.frame_ids), f"{name} perfetto: {stack}")
        for dump in packet.profile_packet.process_dumps:
            expect(all(sample.callstack_id in interned["callstacks"] for sample in dump.samples), f"{name} perfetto: a sample")
            dumps[dump.heap_name].append((dump.timestamp, sum(sample.self_allocated for sample in dump.samples)))
    for kind in ("function_names", "source_paths"):
        no_control(f"{name} perfetto", "\n".join(one.str.decode() for one in interned[kind].values()))
    for group, peak in peaks(report).items():
        expect(most[group] == peak, f"{name} perfetto: the counter of {group} has at most {most[group]}, not {peak}")
        expect(dumps[group][0][1] == peak, f"{name} perfetto: the profile of {group} has {dumps[group]}, not {peak}")
    live = sum(size for group, size in now.items() if not group.startswith("blocks"))
    expect(live == sum(live for (_, kind), (_, live) in tallies(report).items() if kind != "block"), f"{name} perfetto: {live} live")


def viz_peak(events):
    """The highest sum of blocks, as a reader of a snapshot's history finds it."""
    live, now, most = {}, 0, 0
    for event in events:
        if event["action"] == "alloc":
            expect(event["addr"] not in live, f"memory_viz: {event['addr']:x} twice")
            live[event["addr"]] = event["size"]
            now += event["size"]
            most = max(most, now)
        elif event["action"] == "free_completed":
            now -= live.pop(event["addr"])
    return most, now


def check_memory_viz(name, trace, report):
    data = export("memory_viz", trace)
    opcodes = {opcode.name for opcode, _, _ in pickletools.genops(data)}
    expect(opcodes <= VIZ_OPCODES, f"{name} memory_viz: opcodes {opcodes - VIZ_OPCODES}")
    snapshot = pickle.loads(data)
    sound = not report["lost_frees"] and not report["damaged"]
    for segment in snapshot["segments"]:
        at = segment["address"]
        for block in segment["blocks"]:
            expect(block["address"] == at, f"{name} memory_viz: a block at {block['address']:x}, not {at:x}")
            at += block["size"]
        expect(at == segment["address"] + segment["total_size"], f"{name} memory_viz: blocks do not fill their segment")
        active = sum(block["size"] for block in segment["blocks"] if block["state"] == "active_allocated")
        expect(active == segment["allocated_size"] or not sound, f"{name} memory_viz: {active} in a segment of {segment['allocated_size']}")
    for device, events in enumerate(snapshot["device_traces"]):
        no_control(f"{name} memory_viz", " ".join(frame["name"] + frame["filename"] for event in events for frame in event["frames"]))
        pools = [pool for pool in report.get("framework_blocks", []) if pool["device"] == device]
        totals = [one for one in report["devices"] if one["id"] == device]
        if not sound or not totals:
            continue
        segments = sorted((one for one in snapshot["segments"] if one["device"] == device), key=lambda one: one["address"])
        reserved = sum(segment["total_size"] for segment in segments)
        allocated = sum(segment["allocated_size"] for segment in segments)
        for segment, other in itertools.pairwise(segments):
            expect(segment["address"] + segment["total_size"] <= other["address"], f"{name} memory_viz: segments in one place: {segment}")
        live = sum(pool["live"] for pool in pools) if pools else totals[0]["live"]
        expect(allocated == live or (pools and name not in ("training", "mapped")), f"{name} memory_viz: {allocated} in blocks, not {live}")
        expect(reserved == totals[0]["live"], f"{name} memory_viz: {reserved} in segments, not {totals[0]['live']}")
        runs = [(size, [event["action"] for event in run]) for (_, size), run in itertools.groupby(events, lambda one: (one["addr"], one["size"]))]
        churn = [size for (size, run), (other, after) in itertools.pairwise(runs)
                 if run[0] == "segment_alloc" and run[-1] == "segment_free" and (other, after[0]) == (size, "segment_map")]
        expect(not churn, f"{name} memory_viz: {len(churn)} times a handle that is mapped at once looks like churn")
        if not pools:
            wanted = totals[0]["peak"], totals[0]["live"]
            expect(viz_peak(events) == wanted, f"{name} memory_viz: {viz_peak(events)} in blocks, not {wanted}")
    for path in sorted(glob.glob(os.path.expanduser("~/.cache/gpumem/torch-venv/lib/*/site-packages/torch/cuda/_memory_viz.py")))[:1]:
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "snapshot.pickle"), "wb") as file:
                file.write(data)
            for command in ("stats", "trace", "trace_plot", "segment_plot"):
                arguments = ["-o", os.path.join(folder, "out")] if command.endswith("plot") else []
                done = subprocess.run([sys.executable, path, command, os.path.join(folder, "snapshot.pickle"), *arguments],
                                      capture_output=True, text=True, timeout=120, check=False)
                expect(done.returncode == 0, f"{name}: _memory_viz.py {command} says {done.stderr[-300:]}")


def check_round_trip(trace, report):
    """gpumem reads its own snapshot, and finds the same in it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "snapshot.pickle")
        expect(run("export", "-f", "memory_viz", "-o", path, trace).returncode == 0, "round trip: no export")
        again = json.loads(run("report", "--json", path).stdout)
        pools = {pool["device"]: pool for pool in again["framework_blocks"]} # what is in no pool is a block of its own
        for before in report["framework_blocks"]:
            after = pools[before["device"]]
            for what in ("live", "peak", "reserved", "reserved_peak"):
                expect(before[what] == after[what], f"round trip: {what} {after[what]}, not {before[what]}")
        expect({device["id"]: device["live"] for device in report["devices"]} ==
               {device["id"]: device["live"] for device in again["devices"]}, "round trip: other segments")


VIZ_OPCODES = {"PROTO", "EMPTY_DICT", "EMPTY_LIST", "MARK", "APPENDS", "SETITEMS", "TUPLE2", "NEWTRUE", "NEWFALSE", "BININT", "BININT1",
               "BININT2", "LONG1", "BINUNICODE", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET", "STOP"}
CHECKS = [check_collapsed, check_csv, check_memory_viz, check_ndjson, check_openmetrics, check_perfetto, check_pprof, check_speedscope,
          check_sqlite]


# ---- times, files, usage


def check_moments(trace, report):
    """At the time of its peak a device holds its peak; before everything, nothing."""
    for device in report["devices"]:
        text = export("collapsed", trace, "--at", str(device["peak_time_ns"])).decode()
        held = sum(int(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"device {device['id']};"))
        expect(held == device["peak"], f"--at the peak of {device['id']}: {held}, not {device['peak']}")
    expect(export("collapsed", trace, "--at", "0s") == b"", "something lived before the first allocation")
    same = [export("collapsed", trace, "--at", text) for text in ("30us", "0.03ms", "30000ns", "30000")]
    expect(len(set(same)) == 1 and same[0], "the same time in other units")
    refused = report["failed_allocations"][-1]["live"]["bytes"]
    text = export("collapsed", trace, "--at", "oom").decode()
    held = sum(int(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith("device 0;"))
    expect(held == refused > 0, f"--at oom: {held} instead of {refused}")


def check_files(trace):
    whole = run("export", "-f", "collapsed", trace).stdout
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out")
        expect(run("export", "-f", "collapsed", "-o", path, trace).returncode == 0, "-o")
        with open(path, "rb") as file:
            expect(file.read() == whole, "-o writes something else")
        os.chmod(path, 0o640)
        broken = os.path.join(source, "tests/corpus/text.trace")
        expect(run("export", "-f", "collapsed", "-o", path, broken).returncode == 3, "no trace")
        with open(path, "rb") as file:
            expect(file.read() == whole, "an export that failed destroyed the one before")
        expect(run("export", "-f", "csv", "-o", path, trace).returncode == 0, "-o a second time")
        expect(os.stat(path).st_mode & 0o777 == 0o640, "-o changes the mode of a file")
        expect(os.listdir(folder) == ["out"], f"left behind: {os.listdir(folder)}")
        expect(run("export", "-f", "csv", "-o", "/dev/null", trace).returncode == 0, "-o /dev/null")
        expect(os.path.exists("/dev/null") and not os.path.isfile("/dev/null"), "/dev/null was replaced")
        expect(run("export", "-f", "csv", "-o", "/dev/full", trace).returncode == 3, "-o on a full disk")
        done = run("export", "-f", "csv", "-o", os.path.join(folder, "no/such/folder"), trace)
        expect(done.returncode == 2 and done.stderr.count(b"\n") == 1, "-o into a folder that is not there")


def check_usage(trace):
    wrong = [[], [trace], ["-f"], ["-f", "parquet", trace], ["-f", "csv", "--at", "noon", trace], ["-f", "csv", "--at", "-1s", trace],
             ["-f", "csv", "--at", "1e30s", trace], ["-f", "csv", "--at", "0x10", trace], ["-f", "csv", trace, trace]]
    for arguments in wrong:
        done = run("export", *arguments)
        expect(done.returncode == 2 and done.stderr.count(b"\n") == 1 and not done.stdout, f"export {arguments}: {done}")
    done = run("export", "-f", "collapsed", "--at", "oom", os.path.join(source, "tests/corpus/clean.trace"))
    expect(done.returncode == 2 and not done.stdout and b"no allocation was refused" in done.stderr, f"--at oom of none: {done}")
    shown = run("export", "--help").stdout.decode()
    expect(shown.startswith("usage") and max(map(len, shown.splitlines())) <= 80, "export --help")


def main():
    with tempfile.TemporaryDirectory() as folder:
        traces = {}
        random = [("figures", str(seed)) for seed in range(RANDOM)]
        for kind, *arguments in (("hostile",), ("training", "5000"), ("mapped",), *random):
            name = kind + arguments[0] if kind == "figures" else kind
            traces[name] = os.path.join(folder, name + ".trace")
            subprocess.run([export_traces, kind, traces[name], *arguments], check=True)
        corpus = os.path.join(source, "tests/corpus")
        for name in sorted(os.listdir(corpus)):
            if name.endswith(".trace"):
                traces.setdefault(name[:-6], os.path.join(corpus, name))
        reports = {}
        for name, trace in traces.items():
            done = run("report", "--json", trace)
            if done.returncode:
                expect(run("export", "-f", "csv", trace).returncode == 3, f"{name}: exported, but not reported")
                continue
            reports[name] = json.loads(done.stdout)
            for check in CHECKS:
                check(name, trace, reports[name])
        for name in ("hostile", "training", "pool", *map("".join, random)):
            check_duckdb(name, traces[name], reports[name])
        check_moments(traces["training"], reports["training"])
        expect(not reports["mapped"]["lost_frees"] and not reports["mapped"]["malformed"], "mapped: the trace is not sound")
        for name in ("training", "mapped"):
            check_round_trip(traces[name], reports[name])
        check_files(traces["training"])
        check_usage(traces["training"])
    for name in sorted(missing):
        print(f"not on this machine: {name}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
