#!/usr/bin/env python3
"""Programs that reach the limits of the recorder: limits.py BUILD [CASE]...

Each limit has its own counter; report, info and check say what it cost, and say nothing false.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
from report_json import with_stacks  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
PROGRAM = BUILD + "/tests/limits"
problems = []


def expect(good, text):
    if not good:
        problems.append(text)
        print("FAIL: " + text, file=sys.stderr)


def gpumem(*arguments):
    return subprocess.run([BUILD + "/report/gpumem", *arguments], capture_output=True, text=True, check=False)


class Run:
    """One recorded program, whose trace is examined while its folder exists."""

    def __init__(self, *arguments, **environment):
        self.folder = tempfile.TemporaryDirectory()
        self.trace = self.folder.name + "/trace"
        environment = dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim", LD_PRELOAD=BUILD + "/preload/libgpumem.so",
                           GPUMEM_OUTPUT=self.trace, **environment)
        done = subprocess.run([PROGRAM, *map(str, arguments)], env=environment, cwd=self.folder.name,
                              capture_output=True, text=True, check=False, timeout=300)
        expect(done.returncode == 0 and done.stdout == "done\n" and not done.stderr,
               f"{arguments}: exit code {done.returncode}, {done.stdout!r}, {done.stderr!r}")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.folder.cleanup()

    def report(self):
        shown = gpumem("report", "--json", self.trace)
        expect(shown.returncode == 0, f"report: exit code {shown.returncode}: {shown.stderr}")
        return with_stacks(json.loads(shown.stdout))

    def text(self):
        return " ".join(gpumem("report", "-v", self.trace).stdout.split())

    def gaps(self):
        return [gap["code"] for gap in self.report()["gaps"]]

    def info(self):
        return gpumem("info", self.trace).stdout

    def check(self, *options):
        return gpumem("check", *options, self.trace).returncode


def contexts():
    with Run("contexts", 5000) as run:
        report = run.report()
        expect(report["complete"] and report["leaked"]["leak"]["count"] == 0 and report["recorder"]["context_limit"] == 0,
               f"5,000 contexts: {report['leaked']}, {report['recorder']}")
        expect(run.check() == 0, "5,000 contexts: check does not pass")


def contexts_beyond_the_numbers():
    with Run("contexts", 65600) as run:
        report = run.report()
        expect(report["recorder"]["context_limit"] == 66, f"context_limit: {report['recorder']}")
        expect(not report["complete"] and report["leaked"]["leak"]["count"] == 0 and report["leaked"]["untold"]["count"],
               f"65,600 contexts: {report['leaked']}")
        expect("contexts beyond 65,534 were not followed" in run.text() and "context_limit" in run.gaps(),
               "the report does not say that there were too many contexts")
        expect(run.check() == 3 and run.check("--on-cut=judge") == 0, "65,600 contexts: check judges what is not known")


def contexts_in_flight():
    with Run("contexts", 20000, GPUMEM_MODE="flight", GPUMEM_FLIGHT_SIZE="512K", GPUMEM_RING="4K") as run:
        report = run.report()
        expect(report["overwritten"] and report["complete"] and report["leaked"]["leak"]["count"] == 0,
               f"flight, 20,000 contexts: {report['leaked']}, {report['recorder']}")


def threads():
    count = 2000
    with Run("threads", count) as run:
        report = run.report()
        leaks = [leak for leak in report["leaks"] if leak["bytes"] == 2 * count * 1024]
        expect(report["complete"] and len(leaks) == 1 and leaks[0]["count"] == 2 * count, f"threads: {leaks}")
        rings = int(re.search(r"(\d+) rings", run.info())[1])
        expect(count <= rings <= count + count // 8 + 64, f"threads: {rings} rings")
        size = os.path.getsize(run.trace)
        expect(size < count * 8192 + (2 << 20), f"threads: the trace has {size} bytes")


def page_faults(count, folder, **environment):
    """Of a process with that many threads at one time, and then as many one after the other."""
    process = subprocess.Popen([PROGRAM, "threads", str(count)], stdout=subprocess.DEVNULL,
                               env=dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim", GPUMEM_OUTPUT=folder + "/trace",
                                        **environment))
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    expect(status == 0, f"threads: wait status {status}")
    return usage.ru_minflt


def pages_of_threads():
    """A thread that records a call touches few pages of the recorder's, and one that takes a lane over none."""
    count = 1000
    with tempfile.TemporaryDirectory() as folder:
        bare = page_faults(count, folder)
        recorded = page_faults(count, folder, LD_PRELOAD=BUILD + "/preload/libgpumem.so")
    for_each = (recorded - bare - 1000) / count  # 1,000: of the process; 300 to 700 were seen
    expect(for_each <= 4, f"threads: each costs {for_each:.1f} page faults (bare {bare}, recorded {recorded})")


def plugin(room):
    return f"{BUILD}/tests/liblimits_plugin_{room}.so"


def functions_of(report, size):
    """The frames of the leak of that many bytes, innermost first."""
    return [[frame["function"] for frame in leak["stack"]] for leak in report["leaks"] if leak["bytes"] == size]


def expect_named(report, what):
    stacks = functions_of(report, 999)
    expect(len(stacks) == 1 and "allocate_in_plugin" in stacks[0], f"{what}: the new library has no name: {stacks}")


def marks():
    with Run("marks", 300000, plugin(100)) as run:
        report = run.report()
        expect_named(report, "marks")
        recorder = report["recorder"]
        expect(recorder["mark_limit"] > 0 and recorder["string_limit"] == 0 and report["complete"], f"marks: {recorder}")
        expect("marks and ranges have no name" in run.text(), "the report does not tell of nameless marks")


def generated_code_and_dlclose():
    with Run("generated", 4500, plugin(100), plugin(9000)) as run:
        report = run.report()
        expect_named(report, "generated code")
        expect(report["recorder"]["module_limit"] == 0, f"generated code: {report['recorder']}")


def libraries_in_turn():
    with Run("churn", 4500, plugin(100), plugin(9000), plugin(50000)) as run:
        expect_named(run.report(), "libraries in turn")
        modules = int(re.search(r"(\d+) modules", run.info())[1])
        expect(modules < 100, f"libraries in turn: {modules} modules")


def full_disk_that_passes():
    with Run("full_disk", 2500) as run:
        report = run.report()
        recorder = report["recorder"]
        stacks = functions_of(report, 2000)
        expect(len(stacks) == 1 and "after_full" in stacks[0] and "main" in stacks[0], f"after the full disk: {stacks}")
        expect(recorder["grow_failed"] > 0 and recorder["stack_limit"] == 0, f"full disk: {recorder}")
        expect("grow_failed" in run.gaps() and "stack_limit" not in run.gaps(),
               "the report does not say that the disk was full")


CASES = [contexts, contexts_beyond_the_numbers, contexts_in_flight, threads, pages_of_threads, marks,
         generated_code_and_dlclose, libraries_in_turn, full_disk_that_passes]

for case in CASES:
    if len(sys.argv) == 2 or case.__name__ in sys.argv[2:]:
        case()
sys.exit(1 if problems else 0)
