#!/usr/bin/env python3
"""Every command about a process that still runs: test_running.py BUILD

What must hold (each broken promise is one line on stderr, and exit code 1):
  - each says that the process runs, and as of when, and none speaks of leaks, of frees that never came or of an end;
  - all that the process did before the command was started is there, also where two threads share memory;
  - as soon as the process has ended, the same commands speak of its end.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from program import Program

build = os.path.abspath(sys.argv[1])
gpumem = build + "/report/gpumem"
MIB = 1 << 20
AS_OF = r"as of [0-9.,]+ (ns|us|ms|s|min)( to [0-9.,]+ (ns|us|ms|s|min))? after (the start|its start|their starts)"
OF_AN_END = r"(?i)leaked|no leaks|never freed|at the end|to the end|left at|exit code"
TEXTS = {
    "report": ["report"],
    "report -v": ["report", "-v"],
    "report --at end": ["report", "--at", "end"],
    "report --site 1": ["report", "--site", "1"],
    "check": ["check"],
    "info": ["info"],
}
FORMATS = ("collapsed", "csv", "memory_viz", "ndjson", "openmetrics", "perfetto", "pprof", "speedscope", "sqlite")
problems = 0


def expect(good, text):
    global problems
    if not good:
        problems += 1
        print("FAIL: " + text, file=sys.stderr)


def run(*arguments):
    return subprocess.run([gpumem, *arguments], capture_output=True, timeout=60, check=False)


def flat(*streams):
    return re.sub(r"\s+", " ", " ".join(stream.decode(errors="replace") for stream in streams))


def check_texts(trace):
    for name, arguments in TEXTS.items():
        done = run(*arguments, trace)
        text = flat(done.stdout, done.stderr)
        expect(done.returncode == (3 if name == "check" else 0), f"{name}: exit code {done.returncode}: {text}")
        expect(re.search("(?i)still running|has not ended", text), f"{name}: does not say that it runs: {text}")
        expect(re.search(AS_OF, text), f"{name}: does not say as of when: {text}")
        expect(not re.search(OF_AN_END, text), f"{name}: speaks of an end: {re.search(OF_AN_END, text)}: {text}")


def check_page(trace, folder):
    page = os.path.join(folder, "page.html")
    done = run("report", "--html", page, trace)
    with open(page, encoding="utf-8") as file:
        head = file.read().split("<script")[0]
    expect(done.returncode == 0 and re.search(r"still running, " + AS_OF, head), f"html: {head[:600]}")
    shown = re.sub(r"(?s)<style.*?</style>", "", head)
    expect(not re.search(OF_AN_END, shown), f"html: speaks of an end: {re.search(OF_AN_END, shown)}")


def check_exports(trace):
    for name in FORMATS:
        done = run("export", "-f", name, trace)
        expect(done.returncode == 0 and done.stdout, f"export {name}: {done.returncode}")
        expect(re.search("still running; " + AS_OF, flat(done.stderr)), f"export {name}: {done.stderr}")
    done = run("whatif", trace)
    expect(re.search("still running; " + AS_OF, flat(done.stderr)), f"whatif: {done.stderr}")


def check_summary(trace, folder):
    summary = os.path.join(folder, "one.sum")
    done = run("summarize", trace, "-o", summary)
    with open(summary, encoding="utf-8") as file:
        line = json.loads(file.read())
    expect(done.returncode == 0 and line["ending"] == "still running" and line["as_of_ns"] > 0, f"summary: {line['ending']}")
    other = Program(build, os.path.join(folder, "other.trace"))
    other.do(f"a 1 {MIB}")
    done = run("report", summary, os.path.join(folder, "other.trace"))
    other.end()
    expect(re.search("2 processes still run: " + AS_OF, flat(done.stdout)), f"report of a summary: {done.stdout}")


def report(trace):
    return json.loads(run("report", "--json", trace).stdout)


def check_one(folder):
    """What it did just before is there."""
    trace = os.path.join(folder, "one.trace")
    program = Program(build, trace)
    last = 0
    for number in range(1, 6):
        program.do(f"a {number} {number * MIB}")
        one = report(trace)
        live = sum(range(number + 1)) * MIB
        expect(one["devices"][0]["live"] == live, f"{one['devices'][0]['live']} live, not {live}")
        expect(one["ending"] == "running" and last < one["as_of_ns"] == one["duration_ns"], f"as of {one['as_of_ns']} after {last}")
        expect(one["verdict"]["state"] == "live" and [gap["code"] for gap in one["gaps"]] == ["running"], f"{one['verdict']} {one['gaps']}")
        last = one["as_of_ns"]
    check_texts(trace)
    check_page(trace, folder)
    check_exports(trace)
    check_summary(trace, folder)
    program.end()
    ended = report(trace)
    expect(ended["ending"] == "normal" and ended["as_of_ns"] is None and ended["verdict"]["state"] == "leaks", f"ended: {ended['verdict']}")
    expect("leaked in 5 allocations" in flat(run("report", trace).stdout), "the end is not told")


def check_young(folder):
    """A record that is younger than the moment of asking may still get a neighbour: it is not read. The trace names this
    process, which lives."""
    trace = os.path.join(folder, "young.trace")
    with open("/proc/self/stat", encoding="utf-8") as file:
        began = file.read().rsplit(")", 1)[1].split()[19]
    with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
        boot = file.read().strip()
    start = time.monotonic_ns() - 2_000_000_000
    subprocess.run([build + "/tests/judge_traces", "young", trace, f"pid={os.getpid()}", f"began={began}", f"boot={boot}", f"start={start}"],
                   check=True)
    one = report(trace)
    expect((one["ending"], one["devices"][0]["live"], one["events"]) == ("running", MIB, 1), f"young: {one['ending']}, {one['devices']}")
    expect(2e9 < one["as_of_ns"] < 3600e9, f"young: as of {one['as_of_ns']}")


def check_two_threads(folder, name, **settings):
    """One allocates what the other frees, all the time: no free comes before its allocation."""
    trace = os.path.join(folder, name + ".trace")
    program = Program(build, trace, **settings)
    program.do(f"a 1 {MIB}", "h")
    events = 0
    for _ in range(10):
        one = report(trace)
        expect([gap["code"] for gap in one["gaps"]] == ["running"], f"{name}: {one['gaps']}")
        expect(one["events"] > events or "GPUMEM_MODE" in settings, f"{name}: {one['events']} events after {events}")
        expect(0 <= one["devices"][0]["live"] <= 4 * MIB, f"{name}: {one['devices'][0]['live']} live")
        events = one["events"]
    program.process.kill()
    program.process.wait()
    subprocess.run(["kill", "-9", program.pid], check=False, stderr=subprocess.DEVNULL)


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_one(folder)
        check_young(folder)
        check_two_threads(folder, "full")
        check_two_threads(folder, "small", GPUMEM_RING="4K")
        check_two_threads(folder, "flight", GPUMEM_MODE="flight", GPUMEM_FLIGHT_SIZE="1M")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
