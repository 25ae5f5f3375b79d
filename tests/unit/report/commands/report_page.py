#!/usr/bin/env python3
"""Recomputes every total on the page of `gpumem report` from the JSON of the same trace.

    report_page.py GPUMEM JUDGE_TRACES SOURCE

For the traces of tests/corpus and of judge_traces.c: the head (findings, peaks, the request that was refused), each row
of each table (bytes, share, count, and the number of its place, which is that of its stack), what the rows leave out,
and what was left by class. A page has 80 columns at most, and no more lines than a screen or two.
"""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

from report_judge import size_text

problems = 0
ROW = re.compile(r"^\[(\d+)\] +(\S+ \S+) +(\d+)%  .* ([\d,]+[kM]?) x$")
REST = re.compile(r"^ +(\S+ \S+) +(\d+)%  from ([\d,]+) more places$")
TOP, LEFT_TOP = 5, 3
SIZE = r"[\d.]+ (?:B|[KMGT]iB)"
ROWS_OF = {command: re.compile(pattern) for command, pattern in {
    "report": rf"( *\d+\.\d%  (?!.*from \d)|  {SIZE} of |  {SIZE} \S+ to |  \S+ \.\. \S+ +\d)", "top": rf" *{SIZE} +\d+  .*\.py:",
    "diff": r"\[\d+\] ", "check": rf" +{SIZE} of "}.items()}


def expect(good, text):
    global problems
    if not good:
        problems += 1
        print("FAIL: " + text, file=sys.stderr)


def run(gpumem, *arguments):
    done = subprocess.run([gpumem, *arguments], capture_output=True, text=True, timeout=60, check=False,
                          env=dict(os.environ, LC_ALL="C.UTF-8"))
    return done.returncode, done.stdout


def time_text(nanoseconds):
    if nanoseconds >= 60e9:
        return None
    value, units = float(nanoseconds), ["ns", "us", "ms", "s"]
    while value >= 999.5 and len(units) > 1:
        value, units = value / 1000, units[1:]
    digits = 0 if units[0] == "ns" else 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f} {units[0]}"


def merged(owners):
    """Places of one stack are one row."""
    rows = {}
    for owner in owners:
        row = rows.setdefault(owner["stack"], [0, 0])
        row[0] += owner["bytes"]
        row[1] += owner["count"]
    return sorted(rows.items(), key=lambda item: -item[1][0])


def count_text(count):
    return f"{count:,}" if count < 100000 else f"{count // 1000}k" if count < 100000000 else f"{count // 1000000}M"


class Page:
    """The page in sections: the lines behind each heading."""

    def __init__(self, name, text):
        self.name, self.text, self.sections = name, text, []
        for block in text.split("\n\n"):
            lines = block.splitlines()
            if lines:
                self.sections.append((lines[0], lines[1:]))
        self.numbers = {}

    def find(self, start):
        return [section for section in self.sections if section[0].startswith(start)]

    def check_rows(self, lines, owners, whole, top, where):
        """The rows of a table are the first of `owners`, and one says what the others hold."""
        rows = [ROW.match(line) for line in lines if ROW.match(line)]
        rests = [REST.match(line) for line in lines if REST.match(line)]
        wanted = merged(owners)
        shown = len(wanted) if len(wanted) == top + 1 else min(top, len(wanted))
        where = f"{self.name}: {where}"
        expect(len(rows) == shown, f"{where}: {len(rows)} rows, not {shown}\n{self.text}")
        said = sorted((row[2], int(row[3]), row[4]) for row in rows)
        calculated = sorted((size_text(size), self.share(size, whole), count_text(count)) for _, (size, count) in wanted[:shown])
        expect(said == calculated, f"{where}: {said}, not {calculated}")
        for row, (stack, _) in zip(rows, wanted):
            ties = [one for one, sums in wanted if size_text(sums[0]) == row[2]]
            known = self.numbers.setdefault(int(row[1]), stack if len(ties) == 1 else None)
            expect(known is None or known == stack or len(ties) > 1, f"{where}: [{row[1]}] is of two stacks")
        rest = sum(sums[0] for _, sums in wanted[shown:])
        expect(len(rests) == (len(wanted) > shown), f"{where}: rows for the rest: {len(rests)}")
        for row in rests:
            expect((row[1], int(row[2]), row[3]) == (size_text(rest), self.share(rest, whole), count_text(len(wanted) - shown)),
                   f"{where}: the rest is {row.groups()}, not {rest}")

    @staticmethod
    def share(size, whole):
        return int(100.0 * size / whole + 0.5) if whole > 0 else 0


def check_head(page, report):
    severities = [finding["severity"] for finding in report["findings"]]
    for severity in ("error", "warning"):
        said = re.findall(rf"(\d+) {severity}s?\b", page.text.split("\n\n")[1])
        expect([int(one) for one in said] == [severities.count(severity)] * bool(severities.count(severity)),
               f"{page.name}: {said} {severity}s, not {severities.count(severity)}")
    refused = re.search(r"^(OUT OF MEMORY|Out of memory)( on device (\d+))?, (not )?survived: (\S+ \S+) asked$", page.text, re.M)
    out = [one for one in report["failed_allocations"] if one["out_of_memory"] and not one.get("pool")]
    pools = [one for pool in report.get("framework_blocks", []) for one in pool["failures"]]
    expect((refused is not None) == bool(out or pools) or not refused, f"{page.name}: refusal {refused}")
    if refused:
        sizes = [size_text(one.get("request", one.get("size"))) for one in out + pools]
        expect(refused[5] in sizes, f"{page.name}: {refused[5]} asked, not one of {sizes}")


def check_devices(page, report):
    seen = [device for device in report["devices"] if device["peak"]]
    for device in seen:
        found = page.find(f"Peak of device {device['id']} ")
        expect(device["id"] < 0 or len(found) >= 1 or len(seen) > 1, f"{page.name}: no peak of device {device['id']}")
        for title, _ in found:
            expect(f"  {size_text(device['peak'])}" in title, f"{page.name}: {title}, not {device['peak']}")
    for title, lines in page.find("Peak of device "):
        device = next(one for one in report["devices"] if title.startswith(f"Peak of device {one['id']} "))
        pooled = [one for one in report.get("framework_blocks", []) if one["device"] == device["id"] and "at_peak" in one]
        then = re.search(r"when memory ran out, (\S+ \S+) were live", "\n".join(lines))
        if then:
            moments = [one for one in report["failed_allocations"]
                       if one["out_of_memory"] and size_text(one.get("live", {"bytes": 0})["bytes"]) == then[1]]
            expect(moments, f"{page.name}: no failure with {then[1]}")
            if moments:
                page.check_rows(lines, moments[-1]["live"]["owners"], moments[-1]["live"]["bytes"], TOP, title)
        elif not pooled and title == page.find("Peak of device ")[0][0]:
            page.check_rows(lines, device["at_peak"]["owners"], device["peak"], TOP, title)


def check_pools(page, report):
    for title, lines in page.find("Who held PyTorch's pool on device "):
        device = int(re.search(r"device (\d+)", title)[1])
        pool = next(one for one in report["framework_blocks"] if one["device"] == device)
        moments = [pool["at_peak"]] if title.endswith("at its peak") else [one["at"] for one in pool["failures"] if "at" in one]
        said = re.match(r" +(\S+ \S+) in blocks, (\S+ \S+) reserved, at (.*)$", lines[0])
        fits = [one for one in moments if (size_text(one["allocated"]), size_text(one["reserved"])) == (said[1], said[2])]
        expect(fits, f"{page.name}: {lines[0]}")
        free = re.search(r"^ +(\S+ \S+) +\d+%  free in the pool's", "\n".join(lines), re.M)
        for moment in fits[:1]:
            whole = max(moment["reserved"], moment["allocated"])
            expect((free[1] if free else size_text(0)) == size_text(max(0, moment["reserved"] - moment["allocated"])),
                   f"{page.name}: free {free}")
            sizes = [size_text(line["bytes"]) for line in moment["lines"]]
            shares = {size_text(line["bytes"]): Page.share(line["bytes"], whole) for line in moment["lines"]}
            for row in filter(None, map(ROW.match, lines)):
                expect(row[2] in sizes and shares[row[2]] == int(row[3]), f"{page.name}: {row[0]}, lines {sizes}")


def check_left(page, report):
    leaks = [leak for leak in report["leaks"] if leak["class"] in ("leak", "live")]
    expect(len({leak["class"] for leak in leaks}) <= 1, f"{page.name}: leaked, and alive at a cut")
    for start in ("Leaked: never freed", "Live now", "Live when the process was cut off"):
        for _, lines in page.find(start):
            page.check_rows(lines, leaks, sum(leak["bytes"] for leak in leaks), LEFT_TOP, start)
    titles = {"normal": "Leaked: never freed", "running": "Live now", "cut": "Live when the process was cut off"}
    expect(bool(page.find(titles[report["ending"]])) == bool(leaks), f"{page.name}: leaks {leaks} and {titles}")
    means = {"late": "freed too late", "implicit": "freed with its context", "external": "of another owner",
             "cached": "cached by a framework", "untold": "freed or not"}
    for leak_class, words in means.items():
        size = sum(leak["bytes"] for leak in report["leaks"] if leak["class"] == leak_class)
        there = any(leak["class"] == leak_class for leak in report["leaks"])
        expect((f"    {size_text(size)} {words}" in page.text) == there, f"{page.name}: {leak_class} {size}")


def refused(gpumem, page, path, words, *option):
    """What the trace does not have is wrong usage, and one line on stderr says what there is."""
    done = subprocess.run([gpumem, "report", *option, path], capture_output=True, text=True, timeout=60, check=False)
    expect((done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1) and words in done.stderr, f"{page.name}: {option}: {done}")


def check_sites(gpumem, page, path):
    number = max([int(one) for one in re.findall(r"^(?: {9})?\[(\d+)\] ", page.text, re.M)], default=0)
    said = re.search(r"--site 1(?: to (\d+))?$", page.text, re.M)
    expect(number == (int(said[1] or 1) if said else 0), f"{page.name}: {number} places, said {said and said[0]}")
    if number:
        expect(f"[{number}]" in run(gpumem, "report", "--site", str(number), path)[1], f"{page.name}: --site {number}")
    refused(gpumem, page, path, f"there is no place [{number + 1}], the page has {number}\n", "--site", str(number + 1))


def check_moments(gpumem, page, report, path):
    """--at and the filters: the sums are those of the JSON."""
    at_peak = run(gpumem, "report", "--at", "peak", path)[1]
    for device in report["devices"]:
        if device["peak"] and device["id"] >= 0:
            line = f"device {device['id']}  {size_text(device['peak'])} in "
            expect(("\n" + line) in at_peak, f"{page.name}: --at peak: not {line!r}\n{at_peak}")
            one = run(gpumem, "report", "--device", str(device["id"]), "--min-size", str(device["peak"] + 1), path)[1]
            shown = one.split("Who held memory at the peak", 1)[1]
            expect(line in shown and not re.search(r"^\[1\]", shown, re.M), f"{page.name}: --min-size\n{shown}")
            expect(not re.search(rf"^device (?!{device['id']} )", shown, re.M), f"{page.name}: --device\n{shown}")
    pinned = report["host"]["pinned"]["peak"]
    shown = run(gpumem, "report", "--kind", "pinned", path)[1]
    expect((f"\nhost pinned  {size_text(pinned)} in " in shown) == (pinned > 0), f"{page.name}: --kind pinned: not {pinned}\n{shown}")
    if not report["failed"] and not any(pool["out_of_memory"] for pool in report.get("framework_blocks", [])):
        refused(gpumem, page, path, "no allocation was refused", "--at", "oom")
        expect(run(gpumem, "export", "-f", "csv", "--at", "oom", path) == (2, ""), f"{page.name}: export --at oom")
    end, late = report["duration_ns"], report["duration_ns"] + report["duration_ns"] // 50 + 1
    expect(run(gpumem, "report", "--at", f"{end}ns", path)[0] == 0, f"{page.name}: --at its end")
    refused(gpumem, page, path, f"its end, {time_text(end) or ''}", "--at", f"{late}ns")
    expect(run(gpumem, "export", "-f", "csv", "--at", f"{late}ns", path) == (2, ""), f"{page.name}: export --at behind the end")
    known = [device["id"] for device in report["devices"]]
    refused(gpumem, page, path, "there is no device 126" + ", but " * any(one >= 0 for one in known), "--device", "126")


GROUP = re.compile(r"^(device \S+|blocks on device \S+|host \S+|external on device \S+)  .* in ([\d,]+) allocations?$", re.M)


def check_threads(gpumem, page, report, path):
    """What all threads allocated and was left is all that was left."""
    none = run(gpumem, "report", "--thread", "nobody", path)[1]
    threads = re.search(r"^There are threads: (.*)$", none, re.M)
    if report["overwritten"] or (threads and threads[1].endswith("...")):
        return # what was carried over is of no thread
    left = {group: int(count.replace(",", "")) for group, count in
            GROUP.findall(run(gpumem, "report", "--at", "end", path)[1])}
    summed = {}
    for thread in threads[1].split(", ") if threads else []:
        for group, count in GROUP.findall(run(gpumem, "report", "--at", "end", "--thread", thread.split()[0], path)[1]):
            summed[group] = summed.get(group, 0) + int(count.replace(",", ""))
    expect(summed == left, f"{page.name}: threads hold {summed}, all {left}")


def on_terminal(columns, *words):
    """What a command prints on a terminal of so many columns."""
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(words, stdout=other, env=dict(os.environ, LC_ALL="C.UTF-8", TERM="dumb")) as process:
        os.close(other)
        shown = b""
        try:
            while piece := os.read(main, 65536):
                shown += piece
        except OSError: # the process has ended
            pass
        os.close(main)
        process.wait()
    return re.sub(r"\033\[[\d;]*m", "", shown.decode()).splitlines()


def check_widths(gpumem, path):
    """The page and the gate fit the terminal from 60 columns on, a word that is longer itself apart, and take 160 at most."""
    for command in (("report",), ("report", "--at", "end"), ("check", "--on-cut", "judge")):
        for columns in (60, 72, 100, 160, 200):
            lines = on_terminal(columns, gpumem, *command, path)
            wide = [line for line in lines if len(line) > min(columns, 160) and len(line.split()) > 1 and path not in line]
            expect(len(lines) > 2 and not wide, f"{path}: {command} in {columns} columns: {wide}")
        wide = max(map(len, on_terminal(160, gpumem, "report", path)))
        expect(wide > 90, f"{path}: {wide} of 160 columns")


def check_top(gpumem, name, path, report):
    """-n is one thing: rows of each list, in every command that has it."""
    global TOP, LEFT_TOP
    before = TOP, LEFT_TOP
    for top in (1, 7):
        TOP = LEFT_TOP = top
        page = Page(f"{name} -n {top}", run(gpumem, "report", "-n", str(top), path)[1])
        check_devices(page, report)
        check_left(page, report)
        one = json.loads(run(gpumem, "report", "--json", "-n", str(top), path)[1])
        lists = [device["at_peak"]["owners"] for device in one["devices"] if "at_peak" in device] + [one["phases"], one["lifetimes"]]
        expect(all(len(rows) <= top for rows in lists), f"{name}: --json -n {top}: {list(map(len, lists))}")
        for command in (("report", "-v"), ("top", "--once"), ("diff",), ("check", "--on-cut", "judge")):
            paths = (path, path) if command == ("diff",) else (path,)
            text = run(gpumem, *command, "-n", str(top), *paths)[1]
            for section in text.split("\n\n"):
                rows = [line for line in section.splitlines()[1:] if ROWS_OF[command[0]].match(line)]
                listed = re.match("Stacks|Findings|Totals", section) or len(rows) <= top
                expect(listed, f"{name}: {command} -n {top}: {len(rows)} rows\n{section}")
    TOP, LEFT_TOP = before


def check(gpumem, name, path):
    code, shown = run(gpumem, "report", "--json", path)
    if code:
        return
    report, page = json.loads(shown), Page(name, run(gpumem, "report", path)[1])
    check_top(gpumem, name, path, report)
    expect(all(len(line) <= 80 for line in page.text.splitlines()), f"{name}: wider than 80 columns\n{page.text}")
    expect(len(page.text.splitlines()) <= 70, f"{name}: {len(page.text.splitlines())} lines")
    ascii_page = subprocess.run([gpumem, "report", path], capture_output=True, check=False,
                                env=dict(os.environ, LC_ALL="C")).stdout.decode()
    expect("▁" not in ascii_page and "█" not in ascii_page, f"{name}: not ASCII")
    check_head(page, report)
    check_devices(page, report)
    check_pools(page, report)
    check_left(page, report)
    check_sites(gpumem, page, path)
    check_moments(gpumem, page, report, path)
    check_threads(gpumem, page, report, path)


def main():
    gpumem, writer, source = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(source, "tests/unit/report/commands/judge_traces.c"), encoding="utf-8") as file:
            stories = sorted(set(re.findall(r'^    \{"([a-z-]+)", ', file.read(), re.M)))
        expect(len(stories) > 20, f"stories: {stories}")
        for name in stories:
            path = os.path.join(folder, name + ".trace")
            if subprocess.run([writer, name, path], check=False).returncode == 0:
                check(gpumem, name, path)
    corpus = os.path.join(source, "tests/corpus")
    for name in sorted(os.listdir(corpus)):
        if name.endswith(".trace"):
            check(gpumem, name, os.path.join(corpus, name))
    for name in ("pool", "leak", "phases", "killed"):
        check_widths(gpumem, os.path.join(corpus, name + ".trace"))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
