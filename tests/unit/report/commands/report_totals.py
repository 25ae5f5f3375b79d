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
from report_page import GROUP, Page, expect, run

ALL = 100000  # rows: none is left out
OWNER = re.compile(r"^ *(-?[\d.]+)%  (\S+ \S+) +([\d,]+) x (\S+)(?: \((\w+)\))?$")
LEFT_OUT = re.compile(r"^ *(-?[\d.]+)%  (\S+ \S+) +from (\d+) more places?$")
LINE = re.compile(r"^ *([\d.]+)%  (\S+ \S+) +([\d,]+) blocks? ")
ROW_SIZE = r"^\[\d+\] +(\S+ \S+) +\d+%  "
CLASSES = {"Leaked": "leak", "Live": "live", "Freed too late": "late", "Freed with its context": "implicit",
           "Cached by frameworks": "cached", "Freed or not": "untold", "Ignored": "ignored"}


def share(part, whole):
    return f"{100 * part / whole if whole else 0:.1f}"


def number(text):
    return int(text.replace(",", ""))


def plural(count):
    return "" if count == 1 else "s"


# ---- report -v


def check_owners(name, lines, owners, whole, top):
    """The rows of a table are the first of `owners`, in their order, and one says what the others hold."""
    rows = [row.groups() for row in map(OWNER.match, lines) if row]
    wanted = [(share(owner["bytes"], whole), size_text(owner["bytes"]), f"{owner['count']:,}", owner["api"] or "?",
               None if owner["kind"] in ("device", "pinned") else owner["kind"]) for owner in owners]
    expect(rows == wanted[:top], f"{name}: rows {rows}, not {wanted[:top]}")
    rest = whole - sum(owner["bytes"] for owner in owners[:top])
    left_out = [row.groups() for row in map(LEFT_OUT.match, lines) if row]
    expect(left_out == ([(share(rest, whole), size_text(rest), str(len(owners) - top))] if len(owners) > top else []),
           f"{name}: left out {left_out}, not {rest}")
    expect(len(owners) > top or sum(owner["bytes"] for owner in owners) == whole, f"{name}: rows are not all of {whole}")


def check_devices(page, report, top):
    for device in report["devices"]:
        for title, lines in page.find(f"Peak of device {device['id']}  "):
            name = f"{page.name}: {title}"
            owners = device["at_peak"]["owners"]
            expect(title.startswith(f"Peak of device {device['id']}  {size_text(device['peak'])}"), name)
            check_owners(name, lines, owners, device["peak"], top)
            kinds = {}
            for owner in owners:
                kinds[owner["kind"]] = kinds.get(owner["kind"], 0) + owner["bytes"]
            said = re.findall(r"(?:^  |, )(device|managed|array|vmm|graph) (\S+ \S+?)(?=,|$)", "\n".join(lines), re.M)
            expect(not said or dict(said) == {kind: size_text(size) for kind, size in kinds.items()}, f"{name}: {said}")
        for title, lines in page.find(f"Device {device['id']} by library"):
            check_libraries(f"{page.name}: {title}", lines[1:], device, top)
        for title, lines in page.find(f"Residual of device {device['id']}  "):
            for when, key in (("at most", "largest"), ("at last", "last")):
                one = device["residual"][key]
                words = f"{size_text(one['bytes'])} ({size_text(one['used'])} used, {size_text(one['tracked'])} tracked)"
                expect(all(words in line for line in lines if line.strip().startswith(when)), f"{page.name}: {title}: {words}")
        for title, lines in page.find(f"Fragmentation of device {device['id']}  "):
            for when, key in (("at the peak", "at_peak"), ("at the end", "at_end")):
                one = device[key]["fragmentation"]
                words = (f"{size_text(one['free'])} in {one['holes']:,} gap{plural(one['holes'])}, the largest "
                         f"{size_text(one['largest_hole'])}: {100 * one['fragmentation']:.1f}%")
                expect(all(words in line or "without a gap" in line for line in lines if line.strip().startswith(when)),
                       f"{page.name}: {title}: not {words}")


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
    for start, leak_class in CLASSES.items():
        sections = [section for section in page.sections if section[0] == start]
        leaks = [leak for leak in report["leaks"] if leak["class"] == leak_class]
        size, count = sum(leak["bytes"] for leak in leaks), sum(leak["count"] for leak in leaks)
        expect(bool(sections) == bool(leaks), f"{page.name}: {start}: {leaks}")
        for _, lines in sections:
            expect(lines[0].startswith(f"  {size_text(size)} in {count:,} allocation{plural(count)}:"),
                   f"{page.name}: {start}: {lines[0]!r}, not {size} in {count}")
            said = [row.groups() for row in (re.match(r"^  (\S+ \S+) of (\w+) memory on [^,]+, ([\d,]+) x ", line)
                                             for line in lines) if row]
            wanted = [(size_text(leak["bytes"]), leak["kind"], f"{leak['count']:,}") for leak in leaks[:top]]
            is_told_before = leak_class == "cached" and report.get("framework_blocks")
            expect(said == wanted or (is_told_before and not said), f"{page.name}: {start}: {said}, not {wanted}")


def check_pools(page, report):
    for title, lines in page.find("PyTorch's pool on device "):
        name = f"{page.name}: {title}"
        pool = next(one for one in report["framework_blocks"] if title.startswith(f"PyTorch's pool on device {one['device']} "))
        peak, text = pool["at_peak"], "\n".join(lines)
        expect(f"  {size_text(peak['allocated'])} allocated at the peak, {size_text(peak['reserved'])} reserved" in title, name)
        row = re.search(r"^  at the peak +(\S+ \S+) +(\S+ \S+) +(\S+ \S+)", text, re.M)
        free = sum(peak[part]["free"] for part in ("small", "large"))
        expect(row and row.groups() == (size_text(peak["allocated"]), size_text(peak["reserved"]), size_text(free)),
               f"{name}: {row}")
        said = re.search(r"By purpose: (.*?)\n  \S", text + "\n  x", re.S)
        wanted = {one["category"]: size_text(one["bytes"]) for one in peak["categories"] if one["category"] != "cache"}
        found = dict(re.findall(r"([a-z-]+) (\S+ \S+?)(?=,|$)", " ".join(said[1].split()))) if said else {}
        expect(found.items() <= wanted.items() and bool(found) == bool(wanted), f"{name}: {found}, not {wanted}")
        whole = sum(line["bytes"] for line in peak["lines"])
        expect(whole == peak["allocated"], f"{name}: lines hold {whole} of {peak['allocated']}")
        begin = lines.index("  Lines that held blocks at the peak:") if "  Lines that held blocks at the peak:" in lines else None
        rows = []
        for line in lines[begin + 1:] if begin is not None else []:
            if line.startswith("  ") and line.rstrip().endswith(":"):
                break
            rows += [match.groups() for match in [LINE.match(line)] if match]
        wanted = [(share(line["bytes"], whole), size_text(line["bytes"]), f"{line['count']:,}") for line in peak["lines"]]
        expect(rows == wanted[:len(rows)] and bool(rows) == bool(wanted), f"{name}: lines {rows}, not {wanted}")


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
        expect(f"peak {size_text(pinned['peak'])}, " in title and f"; {size_text(pinned['live'])} " in title,
               f"{page.name}: {title}, not {pinned}")
        check_owners(f"{page.name}: {title}", lines, report["pinned_at_peak"]["owners"], pinned["peak"], top)
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
    for _, lines in page.find("Findings"):
        said = re.findall(r"^  (error|warning|note) +([a-z-]+)(?:, (\S+ \S+))?(?: on device \d+)?  [0-9a-f]{8}$", "\n".join(lines), re.M)
        wanted = [(one["severity"], one["code"], size_text(one["bytes"]) if one["bytes"] else "")
                  for one in report["findings"]]
        expect(said == wanted, f"{page.name}: findings {said}, not {wanted}")


def check_long(gpumem, name, path):
    for top in (ALL, 2):
        report = json.loads(run(gpumem, "report", "--json", "-n", str(ALL), path)[1])
        page = Page(name, run(gpumem, "report", "-v", "-n", str(top), path)[1])
        check_devices(page, report, top)
        check_leaks(page, report, top)
        check_pools(page, report)
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
