#!/usr/bin/env python3
"""One truth: every figure of every output against every other, of some two hundred traces.

    test_figures.py GPUMEM SOURCE EXPORT_TRACES

The traces are those of tests/corpus, what export_traces makes, and its random ones: all kinds of memory, endings, devices,
pools, refusals, graphs, VMM. `report --json` is read once; each other output is held against it, and those that list
single allocations are added up. Each disagreement is one line on stderr, and exit code 1.
"""
import collections
import csv
import glob
import gzip
import html
import io
import json
import os
import pickle
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from concurrent.futures import ThreadPoolExecutor

gpumem, source, export_traces = map(os.path.abspath, sys.argv[1:4])
RANDOM = int(os.environ.get("GPUMEM_TEST_FIGURES", "165"))
HOST = ("pinned", "registered")
problems, compared = [], 0


def size_text(number):
    """As the report writes sizes: 12 B, 1.50 KiB, 15.0 MiB, 150 GiB."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if number < 1023.995 or unit == "TiB":
            break
        number /= 1024
    if unit == "B":
        return f"{number} B"
    return f"{number:.{2 if number < 9.995 else 1 if number < 99.95 else 0}f} {unit}"


def time_text(nanoseconds):
    """As the report writes times below a minute: 12 ns, 1.50 us, 15.0 ms, 150 s."""
    value, units = float(nanoseconds), ["ns", "us", "ms", "s"]
    while value >= 999.5 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return f"{value:.{0 if units[0] == 'ns' else 2 if value < 9.995 else 1 if value < 99.95 else 0}f} {units[0]}"


class Trace:
    """One trace, and what its outputs say."""

    def __init__(self, path):
        self.path, self.name = path, os.path.basename(path)

    def run(self, *words):
        done = subprocess.run([gpumem, *words, self.path], capture_output=True, timeout=120, check=False,
                              env={**os.environ, "LC_ALL": "C"}) # curves as a summary has them
        return done.returncode, done.stdout

    def text(self, *words):
        return self.run(*words)[1].decode()

    def same(self, what, said, wanted):
        global compared
        compared += 1
        if said != wanted:
            problems.append(f"{self.name}: {what}: {str(said)[:300]}, not {str(wanted)[:300]}")


def by_key(rows, key, value):
    sums = collections.Counter()
    for row in rows:
        sums[key(row)] += value(row)
    return {key: value for key, value in sums.items() if value}


# ---- what JSON says of itself: the reference


def check_json(trace, report):
    """The report's parts among themselves."""
    for leak_class, sums in report["leaked"].items():
        own = [leak for leak in report["leaks"] if leak["class"] == leak_class]
        trace.same(f"leaks of class {leak_class}", (sum(leak["bytes"] for leak in own), sum(leak["count"] for leak in own)),
                   (sums["bytes"], sums["count"]))
    trace.same("verdict.leaked", report["verdict"]["leaked"], report["leaked"]["leak"])
    normal = report["ending"] == "normal"
    trace.same("leaked by a process that did not end", not normal and report["leaked"]["leak"]["bytes"], False)
    trace.same("live of one that did", report["leaked"]["live"]["bytes"] if normal else 0, 0)
    for device in report["devices"]:
        kinds = {kind: sums for kind, sums in device["kinds"].items() if kind != "external"}
        trace.same(f"live of device {device['id']}", device["live"], sum(sums["live"] for sums in kinds.values()))
        trace.same("peak and its owners", sum(owner["bytes"] for owner in device["at_peak"]["owners"]) if device["peak"] else 0, device["peak"])
    alive = sum(leak["bytes"] for leak in report["leaks"] if leak["class"] != "implicit" and leak["kind"] != "external")
    tallies = [sums for device in report["devices"] for kind, sums in device["kinds"].items() if kind != "external"]
    ignored = report["leaked"]["ignored"]["bytes"] # may have ended with its context
    if not ignored:
        trace.same("what is left", alive, sum(sums["live"] for sums in tallies + list(report["host"].values())))


# ---- the pages


def living(verdict):
    return verdict["on_devices"] if verdict["state"] == "live" else verdict["leaked"]


def check_pages(trace, report):
    page, verdict = trace.text("report"), report["verdict"]
    flat = " ".join(page.split())
    if verdict["state"] in ("live", "leaks"):
        words = f"{size_text(living(verdict)['bytes'])} {'live' if verdict['state'] == 'live' else 'leaked'} in {living(verdict)['count']:,} allocation"
        trace.same("the page's first sentence", words in flat, True)
        trace.same("the first sentence of -v", words in " ".join(trace.text("report", "-v").split()), True)
    for device in report["devices"]:
        if device["peak"]:
            trace.same(f"the page's peak of device {device['id']}", f"Peak of device {device['id']} {size_text(device['peak'])}" in flat, True)
    code, summary = trace.run("summarize")
    one = json.loads(summary)
    trace.same("the page in the summary", one["page"], page)
    trace.same("leaked in the summary", (one["leaked"], one["leaked_count"]), tuple(report["leaked"]["leak"].values()))
    trace.same("ending in the summary", (one["exit_code"], one["signal"]),
               (-1 if report["exit_code"] is None else report["exit_code"], signal.Signals[report["signal"]] if report["signal"] else 0))
    trace.same("duration, events", (one["duration_ns"], one["events"], one["complete"]), (report["duration_ns"], report["events"], report["complete"]))
    known = {device["id"]: device for device in report["devices"]}
    for device in one["devices"]:
        facts = known[device["id"]]
        trace.same(f"the summary's device {device['id']}", (device["peak"], device["live"], device["total"], device["peak_time_ns"]),
                   (facts["peak"], facts["live"], facts.get("total") or 0, facts["peak_time_ns"]))
        own = sum(leak["bytes"] for leak in report["leaks"] if leak["class"] == "leak" and leak["device"] == device["id"] and leak["kind"] not in HOST)
        trace.same(f"leaked on the summary's device {device['id']}", device["leaked"], own)
    trace.same("exit code of summarize", code, 0)
    with tempfile.NamedTemporaryFile(suffix=".sum") as file:
        file.write(summary)
        file.flush()
        again = Trace(file.name)
        own = again.text("report")
        trace.same("report of the summary", own.endswith(page), True)
        diff = json.loads(again.text("diff", "--json", trace.path))
        for row in diff["totals"]:
            wanted = {"leaked": report["leaked"]["leak"]["bytes"], "leaked allocations": report["leaked"]["leak"]["count"]}.get(row["name"])
            if wanted is not None:
                trace.same(f"diff of trace and summary: {row['name']}", (row["base"], row["new"]), (wanted, wanted))
    info = trace.text("info")
    if report["signal"]:
        trace.same("info names the signal", "SIG" in info, True)


def check_all_processes(trace, report):
    """What all processes used of a device, and when: page, -v, HTML and the gate's limit; never less than the process's own."""
    page, whole = (" ".join(trace.text("report", *words).split()) for words in ((), ("-v",)))
    most = -1
    for device in report["devices"]:
        own, all_processes = device["sampled_by_process"] if "sampled_by_process" in device else 0, device.get("sampled_by_all", 0)
        if all_processes:
            most = max(most, all_processes, device["peak"])
        words = f"All processes together: {size_text(all_processes)} at most, {time_text(device.get('sampled_by_all_time_ns', 0))} after"
        tells = all_processes > own and all_processes >= device["peak"] > 0
        for name, text in (("page", page), ("-v", whole)):
            trace.same(f"all processes on device {device['id']}, {name}", tells and words not in text, False)
    if report["complete"] and report["verdict"]["state"] != "nothing":
        for limit, code in ((most, 0), (most - 1, 1)) if most > 0 else ((1 << 40, 3),):
            found = trace.run("check", "--max-leak", "1T", "--fail-on", "none", "--max-peak", f"all:{limit}")[0]
            trace.same(f"check --max-peak all:{limit}", found, code)


def check_html(trace, report):
    with tempfile.NamedTemporaryFile(suffix=".html") as file:
        trace.run("report", "--html", file.name)
        with open(file.name, encoding="utf-8") as page:
            text = page.read()
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text[text.index("<body>"):])).split())
    verdict = report["verdict"]
    if verdict["state"] in ("live", "leaks"):
        trace.same("HTML's first sentence", f"{size_text(living(verdict)['bytes'])} {'live' if verdict['state'] == 'live' else 'leaked'} in" in text, True)
    for device in report["devices"]:
        if device["peak"]:
            trace.same(f"HTML's peak of device {device['id']}", size_text(device["peak"]) in text, True)


# ---- totals


def check_openmetrics(trace, report):
    samples = {}
    for line in trace.text("export", "-f", "openmetrics").splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            samples[name] = float(value)
    for device in report["devices"]:
        where = f'{{device="{device["id"]}"}}'
        trace.same("OpenMetrics: devices", (samples.get("gpumem_device_live_bytes" + where, 0), samples.get("gpumem_device_peak_bytes" + where, 0)),
                   (device["live"], device["peak"]))
        for kind, sums in device["kinds"].items():
            where = f'{{device="{device["id"]}",kind="{kind}"}}'
            for name, key in (("gpumem_live_bytes", "live"), ("gpumem_peak_bytes", "peak"), ("gpumem_allocations_total", "allocs"),
                              ("gpumem_frees_total", "frees"), ("gpumem_implicit_frees_total", "implicit_frees")):
                trace.same(f"OpenMetrics: {name}{where}", samples.get(name + where, 0), sums[key])
    for leak_class, sums in report["leaked"].items():
        trace.same(f"OpenMetrics: leaked, {leak_class}", samples[f'gpumem_leaked_bytes{{class="{leak_class}"}}'], sums["bytes"])
    trace.same("OpenMetrics: refused", samples["gpumem_failed_allocations_total"], report["failed"])
    trace.same("OpenMetrics: length, complete", (round(samples["gpumem_duration_seconds"] * 1e9), samples["gpumem_complete"]),
               (report["duration_ns"], report["complete"]))
    for pool in report.get("framework_blocks") or []:
        where = f'{{device="{pool["device"]}"}}'
        for name, key in (("live", "live"), ("peak", "peak"), ("reserved", "reserved"), ("reserved_peak", "reserved_peak")):
            trace.same(f"OpenMetrics: pool, {key}", samples[f"gpumem_pool_{name}_bytes{where}"], pool[key])


def check_top(trace, report):
    code, out = trace.run("top", "--once", "--json")
    if code:
        return
    top = json.loads(out)
    known = {device["id"]: device for device in report["devices"]}
    for device in top["devices"]:
        facts = known[device["id"]]
        trace.same(f"top: device {device['id']}", (device["live"], device["peak"]), (facts["live"], facts["peak"]))
    pinned = report["host"].get("pinned", {"live": 0, "peak": 0})
    trace.same("top: pinned", (top["pinned"]["live"], top["pinned"]["peak"]), (pinned["live"], pinned["peak"]))
    trace.same("top: events", top["events"], report["events"])


def check_ask(trace, report):
    """What an agent is told: the same as the report says, and rows that add up to their sums."""
    def ask(*words):
        return json.loads(subprocess.run([gpumem, "ask", trace.path, *words, "--size", "1M"], capture_output=True, timeout=120, check=False).stdout)

    answer = ask("verdict")
    leaked, severities = report["leaked"]["leak"], collections.Counter(one["severity"] for one in report["findings"])
    trace.same("ask verdict: totals", (answer["leaked_bytes"], answer["leaked_allocations"], answer["duration_ns"], answer["complete"]),
               (leaked["bytes"], leaked["count"], report["duration_ns"], report["complete"]))
    trace.same("ask verdict: findings", ([(one["severity"], one["code"], one["bytes"]) for one in answer["rows"]], answer["errors"], answer["warnings"]),
               ([(one["severity"], one["code"], one["bytes"]) for one in report["findings"]], severities["error"], severities["warning"]))
    known = {device["id"]: device for device in report["devices"]}
    for device in answer["devices"]:
        facts = known[device["device"]]
        trace.same(f"ask verdict: device {device['device']}", (device["peak_bytes"], device["live_bytes"]), (facts["peak"], facts["live"]))
    for device in ask("peak")["devices"]:
        facts = known[device["device"]]
        trace.same(f"ask peak: device {device['device']}", (device["peak_bytes"], device.get("peak_time_ns", 0)), (facts["peak"], facts["peak_time_ns"]))
    trace.same("ask leaks: classes", {one: (sums["bytes"], sums["allocations"]) for one, sums in ask("leaks")["classes"].items() if sums["allocations"]},
               {one: (sums["bytes"], sums["count"]) for one, sums in report["leaked"].items() if sums["count"]})
    trace.same("ask oom: requests", sum(one["count"] for one in ask("oom")["rows"] if one["by"] == "driver" and one["out_of_memory"]), report["failed"])
    for by in ("site", "line", "kind", "library"):
        owners = ask("owners", "--at", "end", "--by", by)
        trace.same(f"ask owners by {by}", by_key(owners["rows"], lambda row: row["memory"], lambda row: row["bytes"]),
                   {one["memory"]: one["bytes"] for one in owners["sums"] if one["bytes"]})


# ---- single allocations


def group(row):
    return (row["device"], row["kind"])


def check_rows(trace, report):
    rows = [row for row in csv.DictReader(io.StringIO(trace.text("export", "-f", "csv"), newline="")) if row["is_block"] == "0"]
    kinds = {}
    for device in report["devices"]:
        kinds.update({(str(device["id"]), kind): sums for kind, sums in device["kinds"].items()})
    counts = by_key(rows, group, lambda row: 1)
    live = by_key([row for row in rows if row["ended"] == "alive"], group, lambda row: int(row["bytes"]))
    for key, sums in kinds.items():
        if key[0] == "-1" or report["overwritten"]:
            continue
        trace.same(f"csv: allocations of {key}", counts.get(key, 0), sums["allocs"])
        trace.same(f"csv: live of {key}", live.get(key, 0), sums["live"])
    trace.same("csv: implicit", sum(row["ended"] == "context" for row in rows if not report["overwritten"]) > 0,
               sum(sums["implicit_frees"] for sums in list(kinds.values()) + list(report["host"].values())) > 0 and not report["overwritten"])
    lines = [json.loads(line) for line in trace.text("export", "-f", "ndjson").splitlines()]
    own = [line for line in lines if line["type"] == "allocation" and not line["is_block"]]
    trace.same("ndjson and csv", [(line["id"], line["begin_ns"], line["bytes"], line["ended"]) for line in own],
               [(int(row["id"]), int(row["begin_ns"]), int(row["bytes"]), row["ended"]) for row in rows])
    at_end = list(csv.DictReader(io.StringIO(trace.text("export", "-f", "csv", "--at", "end"), newline="")))
    lines = [json.loads(line) for line in trace.text("export", "-f", "ndjson", "--at", "end").splitlines()]
    wanted = {leak_class: (sums["bytes"], sums["count"]) for leak_class, sums in report["leaked"].items() if sums["count"]}
    for name, told in (("csv", [row for row in at_end if row["is_block"] == "0"]),
                       ("ndjson", [line for line in lines if line.get("class") and not line.get("is_block")])):
        found = {one: (sum(int(row["bytes"]) for row in told if row["class"] == one), sum(int(row["count"]) for row in told if row["class"] == one))
                 for one in {row["class"] for row in told}}
        trace.same(f"{name} at the end, by class", found, wanted)
    check_database(trace, rows, wanted)
    check_stacks(trace, "end", at_end)
    check_times(trace, report)
    code, snapshot = trace.run("export", "-f", "memory_viz")
    if code == 0 and snapshot:
        segments = pickle.loads(snapshot)["segments"]
        blocks = sum(block["size"] for one in segments for block in one["blocks"] if block["state"] == "active_allocated")
        trace.same("memory_viz: blocks in their segments", blocks, sum(one["allocated_size"] for one in segments))


def check_database(trace, rows, wanted):
    database = sqlite3.connect(":memory:")
    database.executescript(trace.text("export", "-f", "sqlite"))
    found = {row[0]: (row[1], row[2]) for row in database.execute("SELECT class, sum(bytes), sum(count) FROM v_leaks GROUP BY class") if row[0]}
    trace.same("sqlite: v_leaks", found, wanted)
    own = database.execute("SELECT count(*), sum(bytes) FROM allocations JOIN places USING (place) WHERE is_block = 0").fetchone()
    trace.same("sqlite: allocations", (own[0], own[1] or 0), (len(rows), sum(int(row["bytes"]) for row in rows)))


def fields(data):
    """Of a message in protocol buffers: number and value, bytes or integer."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 2:
            size = varint()
            yield key >> 3, data[at:at + size]
            at += size
        else:
            yield key >> 3, varint()


def check_stacks(trace, moment, held):
    """pprof, collapsed and speedscope at a moment hold what csv does."""
    whole = sum(int(row["bytes"]) for row in held)
    profile = gzip.decompress(trace.run("export", "-f", "pprof", "--at", moment)[1])
    samples = [[value for one, value in fields(sample) if one == 2] for number, sample in fields(profile) if number == 2]
    trace.same(f"pprof at {moment}", sum(values[3] + values[5] for values in samples), whole) # in use, of blocks
    lines = trace.text("export", "-f", "collapsed", "--at", moment).splitlines()
    trace.same(f"collapsed at {moment}", sum(int(line.rsplit(" ", 1)[1]) for line in lines), whole)
    scope = trace.run("export", "-f", "speedscope", "--at", moment)[1]
    trace.same(f"speedscope at {moment}", sum(sum(one["weights"]) for one in json.loads(scope)["profiles"]) if whole else 0, whole)


def kind_of(row):
    """A row of csv: the device, the kind, and whether a pool made it."""
    return row["device"], row["kind"], row["is_block"]


def check_times(trace, report):
    """At times of the run each output holds what lived then, by the begin and end of each allocation."""
    rows = list(csv.DictReader(io.StringIO(trace.text("export", "-f", "csv"), newline="")))
    if report["overwritten"] or not rows:
        return
    for time in sorted({int(row["begin_ns"]) for row in rows})[::max(1, len(rows) // 3)]:
        lived = [row for row in rows if int(row["begin_ns"]) <= time and (not row["end_ns"] or int(row["end_ns"]) > time)]
        wanted = by_key(lived, kind_of, lambda row: int(row["bytes"]))
        moment = f"{time}ns"
        held = list(csv.DictReader(io.StringIO(trace.text("export", "-f", "csv", "--at", moment), newline="")))
        trace.same(f"csv at {moment}", by_key(held, kind_of, lambda row: int(row["bytes"])), wanted)
        trace.same(f"csv at {moment}: allocations", sum(int(row["count"]) for row in held), len(lived))
        lines = [json.loads(line) for line in trace.text("export", "-f", "ndjson", "--at", moment).splitlines()]
        trace.same(f"ndjson at {moment}", sum(line["bytes"] for line in lines if line["type"] == "held"), sum(wanted.values()))
        check_stacks(trace, moment, held)


# ---- diff, check


def check_diff(trace, report):
    code, out = trace.run("diff", "--json", trace.path)
    diff = json.loads(out)
    trace.same("diff against itself", (code == 0 or not report["complete"] or report["verdict"]["state"] == "nothing", diff["differs"], [row for row in diff["totals"] if row["change"]]), (True, False, []))


def check_gate(trace, report):
    with tempfile.TemporaryDirectory() as folder:
        names = {name: os.path.join(folder, name) for name in ("json", "junit", "metrics", "sarif", "gitlab")}
        words = [word for name, path in names.items() for word in ("--format", f"{name}={path}")]
        code, out = trace.run("check", "--allow-empty", *words)
        read = {}
        for name, path in names.items():
            with open(path, encoding="utf-8") as file:
                read[name] = file.read()
    gate = json.loads(read["json"])
    issues = gate["issues"]
    trace.same("check: exit code", gate["exit_code"], code)
    sarif = json.loads(read["sarif"])["runs"][0]
    trace.same("SARIF: exit code", sarif["invocations"][0]["exitCode"], code)
    trace.same("SARIF: issues", [(one["ruleId"], one["level"]) for one in sarif["results"]], [(one["code"], one["level"]) for one in issues])
    told = [one for one in issues if one["state"] == "new" and one["level"] != "note"]
    trace.same("GitLab: issues", [one["check_name"] for one in json.loads(read["gitlab"])], [one["code"] for one in told])
    suites = xml.etree.ElementTree.fromstring(read["junit"])
    trace.same("JUnit: failures", len(suites.findall(".//failure")), sum(one["level"] == "error" for one in told))
    trace.same("JUnit: pid in a name", "4242" in "".join(one.get("name") for one in suites), False)
    metrics = dict(line.rsplit(" ", 1) for line in read["metrics"].splitlines() if not line.startswith("#"))
    trace.same("metrics: exit code", int(metrics["gpumem_check_exit_code"]), code)
    if not report["complete"]:
        trace.same("check of what is not complete", code, 3)
        return
    if report["verdict"]["state"] == "nothing":
        return
    for leak_class, sums in report["leaked"].items():
        own = [one for one in issues if one["code"] == leak_class and not one["is_finding"]]
        trace.same(f"check: class {leak_class}", sum(one["bytes"] for one in own), sums["bytes"])
        trace.same(f"metrics: class {leak_class}", int(metrics[f'gpumem_leaked_bytes{{class="{leak_class}"}}']), sums["bytes"])
    trace.same("check: findings", {one["code"] for one in issues if one["is_finding"]}, {one["code"] for one in report["findings"]})
    leaked = report["leaked"]["leak"]
    if leaked["count"]:
        trace.same("check: leaks", f"{size_text(leaked['bytes'])} in {leaked['count']:,} allocation" in out.decode(), True)
        trace.same("check: a leak fails", code, 1)


def check_filters(path):
    """A filter acts, or is refused: the whole is never shown for a part."""
    trace = Trace(path)
    code, page = trace.run("report", "-v")
    for words in (("--device", "0"), ("--kind", "managed"), ("--min-size", "1G"), ("--thread", "0"), ("--phase", "step"), ("--at", "end"), ("--site", "1")):
        trace.same(f"report -v {words}: as the page", trace.run("report", "-v", *words), trace.run("report", *words))
        trace.same(f"report -v {words}: as the whole", trace.run("report", "-v", *words)[1] == page, False)
        for whole in (("--json",), ("--html", os.devnull)):
            trace.same(f"report {whole[0]} {words}", trace.run("report", *whole, *words), (2, b""))
        with tempfile.NamedTemporaryFile(suffix=".sum") as file:
            file.write(trace.run("summarize")[1])
            file.flush()
            trace.same(f"report {words} of a summary", Trace(file.name).run("report", *words), (2, b""))
    for name, refuses in (("openmetrics", True), ("memory_viz", True), ("csv", False), ("sqlite", False), ("perfetto", False), ("speedscope", False)):
        trace.same(f"export -f {name} --at", trace.run("export", "-f", name, "--at", "end")[0], 2 if refuses else 0)
    report = json.loads(trace.text("report", "--json"))
    for kind, most in (("registered", report["host"]["registered"]["peak"]), ("external", max(one["kinds"]["external"]["peak"] for one in report["devices"]))):
        said = " ".join(trace.text("report", "--kind", kind).split())
        trace.same(f"report --kind {kind}", (f"{size_text(most)} of it lived at most" in said, "Nobody held any" in said), (most > 0, most == 0))
    trace.same("--json and --html", trace.run("report", "--html", os.devnull, "--json"), (2, b""))
    trace.same("exit code of -v", code, 0)


def check_several(paths):
    """Of several traces together: each as it is alone, and sums that are those of all."""
    trace = Trace(paths[-1])
    trace.name = "+".join(map(os.path.basename, paths))
    reports = [json.loads(Trace(path).text("report", "--json")) for path in paths]
    together = json.loads(trace.text("report", "--json", *paths[:-1]))["traces"]
    trace.same("reports together", sorted(map(json.dumps, together)) == sorted(map(json.dumps, reports)), True)
    lines = trace.text("summarize", *paths[:-1]).splitlines()
    alone = [line for path in paths for line in Trace(path).text("summarize").splitlines()]
    trace.same("summaries together", sorted(lines) == sorted(alone), True)
    with tempfile.NamedTemporaryFile(suffix=".txt") as file:
        trace.run("check", "--on-cut", "judge", "--format", f"metrics={file.name}", *paths[:-1])
        text = file.read().decode()
    metrics = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    trace.same("metrics of several: traces", int(metrics["gpumem_check_traces"]), len(paths))
    for classes in (("leak", "live"), ("late",), ("implicit",), ("external",), ("cached",), ("untold",), ("ignored",)): # what is live is judged as leaked
        trace.same(f"metrics of several: {classes}", sum(int(metrics[f'gpumem_leaked_bytes{{class="{one}"}}']) for one in classes),
                   sum(report["leaked"][one]["bytes"] for one in classes for report in reports))
    for device in {device["id"] for report in reports for device in report["devices"]}:
        peaks = [one["peak"] for report in reports for one in report["devices"] if one["id"] == device]
        told = int(metrics.get(f'gpumem_peak_bytes{{device="{device}",rank="none"}}', 0))
        trace.same(f"metrics of several: peak of device {device}", told, max(peaks))


def check_trace(path):
    trace = Trace(path)
    code, out = trace.run("report", "--json")
    if code and not out:
        return
    report = json.loads(out)
    for check in (check_json, check_pages, check_all_processes, check_html, check_openmetrics, check_top, check_ask, check_rows, check_diff, check_gate):
        try:
            check(trace, report)
        except (KeyError, TypeError, ValueError, IndexError, sqlite3.Error, xml.etree.ElementTree.ParseError) as error:
            problems.append(f"{trace.name}: {check.__name__}: {error!r}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        paths = sorted(glob.glob(os.path.join(source, "tests/corpus/*.trace")))
        made = [("mapped",), ("training", "2000")] + [("figures", str(seed)) for seed in range(RANDOM)]
        for kind, *more in made:
            paths.append(os.path.join(folder, "-".join([kind, *more]) + ".trace"))
            subprocess.run([export_traces, kind, paths[-1], *more], check=True)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(check_trace, paths))
        several = [path for path in paths if "figures-" in path]
        for first in range(0, min(len(several), 30) - 2, 3):
            check_several(several[first:first + 3])
        check_filters(next(path for path in paths if "figures-2" in path))
    for problem in problems[:40]:
        print("FAIL: " + problem, file=sys.stderr)
    print(f"{compared} figures of {len(paths)} traces compared, {len(problems)} disagree")
    return 1 if problems or compared < 100 * RANDOM else 0


if __name__ == "__main__":
    sys.exit(main())
