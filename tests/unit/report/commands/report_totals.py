#!/usr/bin/env python3
"""Recomputes every total of the long report, and of who held memory at any moment, from what tools get.

    report_totals.py GPUMEM JUDGE_TRACES SOURCE

For the traces of tests/corpus and of judge_traces.c. `report -v`: each row of each table, what the rows leave out, and
the sums in titles, from `report --json`. `--at TIME` with `--device`, `--kind` and `--min-size`: from the rows of
`export --format csv`, which has the life of each allocation. `--phase`: what a phase holds is at most what the JSON says
that was allocated in it, and what all phases and marks hold is at most what was left.
"""
import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile

import report_page
from report_judge import size_text
from report_page import GROUP, REST, ROW, Page, count_text, expect, run

ALL = 100000  # rows: none is left out
ROW_SIZE = r"^\[\d+\] +(\S+ \S+) +\d+%  "
CALL = re.compile(r"^ {20}([\w?]+)(?:, (\w+) memory)?$")
CLASSES = {"late": "freed too late", "implicit": "freed with its context", "external": "of another owner",
           "cached": "cached by a framework", "untold": "freed or not", "ignored": "that the program says is no leak"}


def share(part, whole):
    return f"{100 * part / whole if whole else 0:.1f}"


def number(text):
    return int(text.replace(",", ""))


def plural(count):
    return "" if count == 1 else "s"


# ---- report -v


def rows_of(lines):
    """[(size, share, count, function, kind)] of a table: a row, and the function in a line of its own."""
    rows = []
    for line in lines:
        if match := ROW.match(line):
            rows.append([match[2], int(match[3]), match[4], None, None])
        elif (match := CALL.match(line)) and rows:
            rows[-1][3:] = match.groups()
    return [tuple(row) for row in rows]


def check_owners(page, where, lines, owners, whole, top):
    """The rows of a table are the first of `owners` with one stack, function and kind, and one says what the others hold."""
    sums, name = {}, f"{page.name}: {where}"
    for owner in owners:
        row = sums.setdefault((owner["stack"], owner["api"], owner["kind"]), [0, 0])
        row[0] += owner["bytes"]
        row[1] += owner["count"]
    ordered = sorted(sums.items(), key=lambda item: -item[1][0])
    shown = len(ordered) if len(ordered) == top + 1 else min(top, len(ordered))
    wanted = [(size_text(size), Page.share(size, whole), count_text(count), api or "?",
               None if kind in ("device", "pinned") else kind) for (_, api, kind), (size, count) in ordered]
    rows = rows_of(lines)
    expect(len(rows) == shown and [row[:2] for row in rows] == [row[:2] for row in wanted[:shown]] and
           (shown < len(wanted) or sorted(rows, key=str) == sorted(wanted, key=str)), f"{name}: rows {rows}, not {wanted[:shown]}")
    rest = sum(size for _, (size, _) in ordered[shown:])
    left_out = [row.groups() for row in map(REST.match, lines) if row]
    expect(left_out == ([(size_text(rest), str(Page.share(rest, whole)), str(len(ordered) - shown))] if rest or shown < len(ordered)
                        else []), f"{name}: left out {left_out}, not {rest}")
    expect(sum(owner["bytes"] for owner in owners) == whole, f"{name}: owners are not all of {whole}")


def said_of(lines, start):
    """The paragraphs of a section that begin so, each in one line."""
    starts = r"(?=Fragmentation of addresses|Driver \(|All processes|\[\d+\]|$)"
    return re.findall(rf"{re.escape(start)}.*?{starts}", " ".join(line.strip() for line in lines))


def check_devices(page, report, top):
    for device in report["devices"]:
        for title, lines in page.find(f"Peak of device {device['id']}  "):
            name = f"{page.name}: {title}"
            expect(title.startswith(f"Peak of device {device['id']}  {size_text(device['peak'])}"), name)
            check_peak(page, report, device, title, lines, top)
            kinds = {}
            for owner in device["at_peak"]["owners"]:
                kinds[owner["kind"]] = kinds.get(owner["kind"], 0) + owner["bytes"]
            said = re.findall(r"(?:^    |, )(device|managed|array|vmm|graph) (\S+ \S+?)(?=,|$)", "\n".join(lines), re.M)
            expect(dict(said) == ({kind: size_text(size) for kind, size in kinds.items()} if len(kinds) > 1 else {}),
                   f"{name}: {said}")
            for when, key in (("at most", "largest"), ("at last", "last")):
                one = device.get("residual", {}).get(key)
                said = said_of(lines, f"Driver (contexts, modules) {when}: ")
                words = one and f"{size_text(one['bytes'])} ({size_text(one['used'])} used, {size_text(one['tracked'])} tracked)"
                expect(bool(said) == bool(one) or when == "at most", f"{name}: {when}: {said}")
                expect(all(words in line for line in said), f"{name}: {said}, not {words}")
            for when, key in (("at the peak", "at_peak"), ("at the end", "at_end")):
                one = device[key]["fragmentation"]
                words = (f"{size_text(one['free'])} in {one['holes']:,} gap{plural(one['holes'])}, the largest "
                         f"{size_text(one['largest_hole'])}: {100 * one['fragmentation']:.1f}%")
                expect(all(words in line or "without a gap" in line for line in said_of(lines, f"Fragmentation of addresses {when}")),
                       f"{name}: not {words}")
        for title, lines in page.find(f"Device {device['id']} by library"):
            check_libraries(f"{page.name}: {title}", lines[1:], device, top)


def check_peak(page, report, device, title, lines, top):
    """Who held a device with no pool: when memory ran out, if it did, or else at its peak."""
    then = re.search(r"when memory ran out, (\S+ \S+) were live", "\n".join(lines))
    if then:
        moments = [one["live"] for one in report["failed_allocations"]
                   if one["out_of_memory"] and size_text(one.get("live", {"bytes": 0})["bytes"]) == then[1]]
        expect(moments, f"{page.name}: no failure with {then[1]}")
        for moment in moments[-1:]:
            check_owners(page, title, lines, moment["owners"], moment["bytes"], top)
    elif not any(pool["device"] == device["id"] and "at_peak" in pool for pool in report.get("framework_blocks", [])):
        check_owners(page, title, lines, device["at_peak"]["owners"], device["peak"], top)


def check_libraries(name, lines, device, top):
    whole = sum(one["at_peak"]["bytes"] for one in device["libraries"])
    rows = [line for line in lines if "%" in line]
    expect(len(rows) == min(top, len(device["libraries"])), f"{name}: {len(rows)} rows")
    for line, one in zip(rows, device["libraries"]):
        peak, end = one["at_peak"], one["at_end"]
        words = [size_text(peak["bytes"]) if peak["bytes"] else "-", share(peak["bytes"], whole) + "%",
                 f"{peak['count']:,}", size_text(end["bytes"]) if end["bytes"] else "-"]
        expect(re.search(" +".join(map(re.escape, words)), line), f"{name}: {line!r}, not {words}")


def check_leaks(page, report, top):
    """Each class of what was left: its sum, and its places."""
    left = [(title, lines) for title, lines in page.sections if title.startswith(("Left at", "Leaked: ", "Live "))]
    leaks = [leak for leak in report["leaks"] if leak["class"] in ("leak", "live")]
    expect(len(left) == bool(report["leaks"]), f"{page.name}: {left}, not {report['leaks']}")
    for title, lines in left:
        starts = [i for i, line in enumerate(lines) if re.match(r"    \S+ \S+ [a-z]", line) and "more places" not in line]
        check_owners(page, title, lines[:starts[0] if starts else len(lines)], leaks, sum(leak["bytes"] for leak in leaks), top)
        for leak_class, words in CLASSES.items():
            these = [leak for leak in report["leaks"] if leak["class"] == leak_class]
            size = sum(leak["bytes"] for leak in these)
            found = [i for i in starts if lines[i].startswith(f"    {size_text(size)} {words}")]
            expect(len(found) == bool(these), f"{page.name}: {leak_class}: {lines}, not {these}")
            for start in found if leak_class != "cached" else []:
                end = min((other for other in starts if other > start), default=len(lines))
                check_owners(page, leak_class, lines[start:end], these, size, top)


def check_pools(page, report, top):
    for title, lines in page.find("Who held PyTorch's pool on device "):
        name = f"{page.name}: {title}"
        pool = next(one for one in report["framework_blocks"] if f" on device {one['device']} " in title + " ")
        device = next(one for one in report["devices"] if one["id"] == pool["device"])
        peak, text = pool["at_peak"], "\n".join(lines)
        row = re.search(r"^  at the peak +(\S+ \S+) +(\S+ \S+) +(\S+ \S+)", text, re.M)
        free = sum(peak[part]["free"] for part in ("small", "large"))
        expect(row and row.groups() == (size_text(peak["allocated"]), size_text(peak["reserved"]), size_text(free)),
               f"{name}: {row}")
        driver = next((i for i, line in enumerate(lines) if line.startswith("  Who made the driver give")), None)
        if driver is not None:
            check_owners(page, title, lines[driver:], device["at_peak"]["owners"], device["peak"], top)
        if not title.endswith("at its peak"):
            continue
        said = re.search(r"By purpose: (.*?)\n(?:\[| {5}\S* \S)", text + "\n[", re.S)
        wanted = {one["category"]: size_text(one["bytes"]) for one in peak["categories"] if one["category"] != "cache"}
        found = dict(re.findall(r"([a-z-]+) (\S+ \S+?)(?=,|$)", " ".join(said[1].split()))) if said else {}
        expect(found.items() <= wanted.items() and (bool(found) or wanted.keys() <= {"other"}), f"{name}: {found}, not {wanted}")
        whole = max(peak["allocated"], peak["reserved"])
        expect(sum(line["bytes"] for line in peak["lines"]) == peak["allocated"], f"{name}: lines hold not all")
        end = next((i for i, line in enumerate(lines) if line.startswith("    blocks ") or line.startswith("  ") and
                    "allocated   reserved" in line), len(lines))
        rows = [row[:3] for row in rows_of(lines[:end])]
        merged = sorted(((size, Page.share(size, whole), count_text(count)) for _, (size, count) in
                         report_page.merged(peak["lines"])), key=lambda row: -row[0])
        shown = len(merged) if len(merged) == top + 1 else min(top, len(merged))
        wanted = [(size_text(size), *others) for size, *others in merged[:shown]]
        expect([row[:2] for row in rows] == [row[:2] for row in wanted], f"{name}: lines {rows}, not {wanted}")


def check_transfers(page, report, top):
    for _, lines in page.find("Transfers"):
        for one in report["transfers"]["directions"]:
            row = next((line for line in lines if line.startswith(f"  {one['direction']}  ")), "")
            expect(re.match(rf"^  {one['direction']} +{size_text(one['bytes'])} +{one['count']:,} ", row),
                   f"{page.name}: transfers: {row!r}, not {one}")
        said = [row.groups() for row in (re.match(r"^  (\S+ \S+) ([a-z ]+), ([\d,]+) x ", line) for line in lines) if row]
        wanted = [(size_text(one["bytes"]), one["direction"], f"{one['count']:,}") for one in report["transfers"]["sites"]]
        expect(said == wanted[:top], f"{page.name}: transfers: {said}, not {wanted[:top]}")


def check_rest(page, report, top):
    """Pinned memory, refusals, growth, temporaries, findings."""
    pinned = report["host"]["pinned"]
    for title, lines in page.find("Pinned host memory"):
        words = " ".join([title, *lines])
        expect(f"peak {size_text(pinned['peak'])}, " in words and f"; {size_text(pinned['live'])} " in words,
               f"{page.name}: {title}, not {pinned}")
        check_owners(page, title, lines, report["pinned_at_peak"]["owners"], pinned["peak"], top)
    for title, _ in page.find("Refused allocations"):
        words = f"{report['failed']:,} for lack of memory, {report['rejected'] + report['refused_by_runtime']:,} for another"
        expect(words in title, f"{page.name}: {title}, not {words}")
    for title, _ in page.find("Out of memory in PyTorch's pool"):
        count = sum(pool["out_of_memory"] for pool in report["framework_blocks"])
        expect(title.endswith(f"  {count:,} time{plural(count)}"), f"{page.name}: {title}, not {count}")
    for _, lines in page.find("Growth"):
        said = [line.split()[0] + " " + line.split()[1] for line in lines if line.startswith("  +")]
        expect(said == ["+" + size_text(one["growth"]) for one in report["growing"]][:top], f"{page.name}: growth {said}")
    for _, lines in page.find("Temporaries"):
        said = re.findall(r"^  ([\d,]+) of ([\d,]+) x ", "\n".join(lines), re.M)
        wanted = [(f"{one['short_lived']:,}", f"{one['allocs']:,}") for one in report["lifetimes"] if one["temporary"]]
        expect(said == wanted[:top], f"{page.name}: temporaries {said}, not {wanted[:top]}")
    said = re.findall(r"^(error|warning|note) +([a-z-]+)(?:, (\S+ \S+))?(?: on device \d+)?  [0-9a-f]{8}$", page.text, re.M)
    wanted = [(one["severity"], one["code"], size_text(one["bytes"]) if one["bytes"] else "") for one in report["findings"]]
    expect(said == wanted, f"{page.name}: findings {said}, not {wanted}")


def check_long(gpumem, name, path):
    for top in (ALL, 2):
        report = json.loads(run(gpumem, "report", "--json", "-n", str(ALL), path)[1])
        page = Page(name, run(gpumem, "report", "-v", "-n", str(top), path)[1])
        check_devices(page, report, top)
        check_leaks(page, report, top)
        check_pools(page, report, top)
        check_transfers(page, report, top)
        check_rest(page, report, top)


# ---- moments and filters

NAMES = {"device": "device {}", "managed": "device {}", "array": "device {}", "vmm": "device {}", "graph": "device {}",
         "pinned": "host pinned", "registered": "host registered", "external": "external on device {}"}


def group_of(life):
    name = "blocks on device {}" if life["is_block"] == "1" else NAMES[life["kind"]]
    return name.format(life["device"])


def living(lives, time):
    """{group: (bytes, count)} at that moment."""
    groups = {}
    for life in lives:
        if int(life["begin_ns"]) <= time and (not life["end_ns"] or int(life["end_ns"]) > time):
            size, count = groups.get(group_of(life), (0, 0))
            groups[group_of(life)] = (size + int(life["bytes"]), count + 1)
    return groups


def shown(gpumem, path, *options):
    """{group: (size, count)} of a page about one moment, and the page behind its title."""
    text = run(gpumem, "report", "-n", str(ALL), *options, path)[1].partition("\nWho held memory")[2]
    said = re.findall(r"^(device \S+|blocks on device \S+|host \S+|external on device \S+)  (.*) in ([\d,]+) allocations?$",
                      text, re.M)
    return {group: (size, number(count)) for group, size, count in said}, text


def as_text(groups):
    return {group: (size_text(size), count) for group, (size, count) in groups.items()}


def check_time(gpumem, name, path, lives, time):
    at = ("--at", f"{time}ns")
    groups = living(lives, time)
    said, text = shown(gpumem, path, *at)
    expect(said == as_text(groups), f"{name}: --at {time}ns: {said}, not {as_text(groups)}")
    for device in {life["device"] for life in lives if life["device"]}:
        wanted = living([life for life in lives if life["device"] == device and not group_of(life).startswith("host")], time)
        said = shown(gpumem, path, *at, "--device", device)[0]
        expect(said == as_text(wanted), f"{name}: --at {time}ns --device {device}: {said}, not {as_text(wanted)}")
    for kind in {life["kind"] for life in lives}:
        wanted = living([life for life in lives if life["kind"] == kind], time)
        said = shown(gpumem, path, *at, "--kind", kind)[0]
        expect(said == as_text(wanted), f"{name}: --at {time}ns --kind {kind}: {said}, not {as_text(wanted)}")
    rows = sorted(re.findall(ROW_SIZE, text, re.M))
    for least in (1, 1 << 20, 1 << 62):
        said, fewer = shown(gpumem, path, *at, "--min-size", str(least))
        kept = sorted(re.findall(ROW_SIZE, fewer, re.M))
        expect(said == as_text(groups), f"{name}: --min-size changes the sums to {said}")
        expect((kept == rows) if least == 1 else (not kept) if least == 1 << 62 else
               kept == [row for row in rows if row.split()[1] in ("MiB", "GiB", "TiB", "PiB")],
               f"{name}: --min-size {least}: {kept} of {rows}")


def check_moments(gpumem, name, path):
    code, text = run(gpumem, "export", "--format", "csv", path)
    if code:
        return 0
    lives = list(csv.DictReader(io.StringIO(text)))
    times = sorted({int(life["begin_ns"]) for life in lives} | {int(life["end_ns"]) for life in lives if life["end_ns"]})
    for time in {times[len(times) * part // 4] for part in range(4)} if times else ():
        check_time(gpumem, name, path, lives, time)
    return len(times)


def check_phases(gpumem, name, path):
    report = json.loads(run(gpumem, "report", "--json", path)[1])
    left = {group: number(count) for group, count in GROUP.findall(run(gpumem, "report", "--at", "end", path)[1])}
    names = {phase["path"][0] for phase in report["phases"]
             if len(phase.get("path", ())) == 1 and phase["path"][0].isprintable()}  # others are no argument
    for phase in names:
        allocs = sum(one["allocs"] for other in report["phases"] if phase in other.get("path", ()) for one in other["memory"])
        for option in ("peak", "end"):
            said = shown(gpumem, path, "--at", option, "--phase", phase)[0]
            count = sum(count for group, (_, count) in said.items() if not group.startswith("blocks"))
            expect(count <= allocs, f"{name}: --phase {phase} --at {option}: {count} of {allocs}")
            expect(option == "peak" or all(count <= left.get(group, 0) for group, (_, count) in said.items()),
                   f"{name}: --phase {phase}: {said}, and {left} in all")
    return len(names)


def check(gpumem, name, path):
    if run(gpumem, "report", "--json", path)[0]:
        return 0, 0
    check_long(gpumem, name, path)
    return check_moments(gpumem, name, path), check_phases(gpumem, name, path)


def main():
    gpumem, writer, source = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
    done = []
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(source, "tests/unit/report/commands/judge_traces.c"), encoding="utf-8") as file:
            stories = sorted(set(re.findall(r'^    \{"([a-z-]+)", ', file.read(), re.M)))
        for name in stories:
            path = os.path.join(folder, name + ".trace")
            if subprocess.run([writer, name, path], check=False).returncode == 0:
                done.append(check(gpumem, name, path))
    corpus = os.path.join(source, "tests/corpus")
    for name in sorted(os.listdir(corpus)):
        if name.endswith(".trace"):
            done.append(check(gpumem, name, os.path.join(corpus, name)))
    expect(sum(times > 0 for times, _ in done) > 20 and sum(phases for _, phases in done) > 0, f"little was checked: {done}")
    return 1 if report_page.problems else 0


if __name__ == "__main__":
    sys.exit(main())
