#!/usr/bin/env python3
"""Runs one program without and with the preload and compares the report with the oracle.

    run.py --build DIR [--env NAME=VALUE]... [--preload LIB]... [--racing] [--expect-no-trace | --expect-bypassed]
           -- PROGRAM [ARG]...

What must hold (each broken promise is one line on stderr, and exit code 1):
  - standard output, standard error and exit code are the same with and without the preload;
  - live, peak, allocs, frees and implicit frees per kind and device, and failed and rejected calls, in the
    report equal the oracle's of the same run;
  - every line `LEAK function=F line=N bytes=B [count=C]` that the program printed is a leak in the report whose stack
    has a frame F at line N, with those bytes; there is no other leak. With --expect-no-trace, instead of the last two:
    the program leaves no file. With --expect-bypassed: the trace says that the driver was loaded and no call was seen,
    and the gate does not judge it.

GPUMEM_TEST_EMULATOR names a user-mode emulator, for a build folder of another architecture.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from report_json import with_stacks  # noqa: E402

problems = []
emulator = os.environ.get("GPUMEM_TEST_EMULATOR", "").split()


def problem(text):
    problems.append(text)
    print("FAIL: " + text, file=sys.stderr)


def run(command, environment, folder):
    if emulator:  # its own loader must not see the preload
        environment = dict(environment)
        preload = environment.pop("LD_PRELOAD", None)
        command = [*emulator, *(["-E", "LD_PRELOAD=" + preload] if preload else []), *command]
    with subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            stdout, stderr = process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    result = subprocess.CompletedProcess(command, process.returncode, stdout, stderr)
    result.pid = process.pid
    return result


def first_difference(bare, recorded):
    if not isinstance(bare, bytes):
        return f"without the preload {bare!r}, with it {recorded!r}"
    ours, theirs = bare.splitlines(), recorded.splitlines()
    line = next((at for at, pair in enumerate(zip(ours, theirs)) if pair[0] != pair[1]), min(len(ours), len(theirs)))
    return f"from line {line + 1}: without the preload {ours[line:line + 8]!r}, with it {theirs[line:line + 8]!r}"


def compare_runs(bare, recorded, names):
    for name in names:
        if getattr(bare, name) != getattr(recorded, name):
            problem(f"{name} differs: {first_difference(getattr(bare, name), getattr(recorded, name))}")


COUNTERS = {"live", "peak", "allocs", "frees", "implicit_frees"}


def compare_kinds(where, oracle, report, counters):
    for kind, expected in oracle.items():
        for counter in counters:
            found = report.get(kind, {}).get(counter, 0)
            if expected[counter] != found:
                problem(f"{where} {kind}.{counter}: oracle {expected[counter]}, report {found}")


def compare_totals(oracle, report, counters):
    reported = {device["id"]: device for device in report["devices"]}
    for device in oracle["devices"]:
        mine = reported.get(device["id"], {"kinds": {}, "peak": 0, "live": 0})
        compare_kinds(f"device {device['id']}", device["kinds"], mine["kinds"], counters)
        for key in counters & {"live", "peak"}:
            if device[key] != mine[key]:
                problem(f"device {device['id']} {key}: oracle {device[key]}, report {mine[key]}")
    compare_kinds("host", oracle["host"], report["host"], counters)
    for key in ("failed", "rejected"):
        if oracle[key] != report[key]:
            problem(f"{key}: oracle {oracle[key]}, report {report[key]}")


def alive(counter):
    """The number of live allocations of a kind."""
    return counter["allocs"] - counter["frees"] - counter["implicit_frees"] if counter else 0


def compare_flight(oracle, report, racing):
    """
    For a trace whose history may have been overwritten: live memory is exact, and peaks are at least the live memory
    and at most the peaks of the whole run (which are random where threads race).
    """
    reported = {device["id"]: device for device in report["devices"]}
    places = [(f"device {device['id']}", device["kinds"], reported.get(device["id"], {}).get("kinds", {}))
              for device in oracle["devices"]]
    for where, expected, found in (*places, ("host", oracle["host"], report["host"])):
        for kind, counter in expected.items():
            mine = found.get(kind)
            live, peak = (mine["live"], mine["peak"]) if mine else (0, 0)
            if live != counter["live"] or alive(mine) != alive(counter):
                problem(f"{where} {kind}: oracle {counter['live']} live in {alive(counter)}, report {live} in {alive(mine)}")
            if not live <= peak <= (peak if racing else counter["peak"]):
                problem(f"{where} {kind}: peak {peak} is not between {live} and {counter['peak']}")


def planted(output):
    leaks = []
    for line in output.decode(errors="replace").splitlines():
        match = re.match(r"LEAK function=(\S+) line=(\d+) bytes=(\d+)(?: count=(\d+))?", line)
        if match:
            leaks.append((match[1], int(match[2]), int(match[3]), int(match[4] or 1)))
    return leaks


def compare_leaks(expected, report):
    found = [leak for leak in report["leaks"] if leak["class"] == "leak"]
    for function, line, size, count in expected:
        for leak in found:
            frames = [(f["function"].split("(")[0], f["line"]) for f in leak["stack"]]
            if (function, line) in frames and leak["bytes"] == size and leak["count"] == count:
                found.remove(leak)
                break
        else:
            problem(f"planted leak not found: {function}:{line}, {size} bytes in {count}")
    for leak in found:
        problem(f"called a leak but not planted: {json.dumps(leak)[:400]}")


def single_trace(folder):
    traces = [name for name in os.listdir(folder) if name.endswith(".trace")]
    if len(traces) != 1:
        problem(f"expected one trace, found {sorted(traces)}")
        return None
    return os.path.join(folder, traces[0])


def gpumem(build, *arguments):
    return subprocess.run([*emulator, os.environ.get("GPUMEM_TEST_REPORT", build + "/report/gpumem"), *arguments], capture_output=True, text=True, check=False)


def set_children_aside(build, folder, pid):
    """Children that reached for CUDA after a fork have traces of their own: without memory, the driver refused them."""
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".trace") or name.endswith(f".{pid}.trace"):
            continue
        trace = os.path.join(folder, name)
        report = with_stacks(json.loads(gpumem(build, "report", "--json", trace).stdout))
        kinds = [*report["host"].values(), *(kind for device in report["devices"] for kind in device["kinds"].values())]
        if not report["complete"] or any(kind["allocs"] or kind["frees"] or kind["live"] for kind in kinds):
            problem(f"not the trace of a child without memory: {json.dumps(report)[:400]}")
        os.remove(trace)


def compare_bypassed(build, trace):
    report = with_stacks(json.loads(gpumem(build, "report", "--json", trace).stdout))
    if not report["bypassed"] or not report["complete"] or report["events"] or report["devices"]:
        problem(f"not a trace of a bypassed recorder: {json.dumps(report)[:400]}")
    if "BYPASSED" not in gpumem(build, "report", trace).stdout:
        problem("the report does not say that the recorder was bypassed")
    if gpumem(build, "check", trace).returncode != 4:
        problem("the gate judges a trace without records")


def hold(build, command, environment, preload=None, leaks=True, racing=False, expect_no_trace=False,
         expect_bypassed=False, flight=None, forks=False, examine=None):
    """
    Runs `command` both ways and compares everything; True when all promises were kept. Where threads race, their output
    and their peaks are random and not compared. `flight`: the size of the area of a flight trace, which the program
    must overfill. `forks`: children may leave traces without memory. `examine`: a further check, called with the
    program's output and the report.
    """
    problems.clear()
    base = {**os.environ, "LD_LIBRARY_PATH": build + "/sim", "LC_ALL": "C.UTF-8", **environment}
    if flight:
        base.update(GPUMEM_MODE="flight", GPUMEM_FLIGHT_SIZE=str(flight))
    preload = ":".join(preload or [os.environ.get("GPUMEM_TEST_PRELOAD", build + "/preload/libgpumem.so")])
    with tempfile.TemporaryDirectory() as folder:
        oracle_file = os.path.join(folder, "oracle")
        bare = run(command, base, folder)
        recorded = run(command, dict(base, LD_PRELOAD=preload, GPUMEM_SIM_ORACLE=oracle_file), folder)
        compare_runs(bare, recorded, ("stderr", "returncode") if racing else ("stdout", "stderr", "returncode"))
        if expect_no_trace:
            left = [name for name in os.listdir(folder) if name != "oracle"]
            if left:
                problem(f"files left by a process without CUDA calls: {left}")
            return not problems
        if forks:
            set_children_aside(build, folder, recorded.pid)
        trace = single_trace(folder)
        if not trace:
            return False
        if expect_bypassed:
            compare_bypassed(build, trace)
            return not problems
        shown = gpumem(build, "report", "--json", trace)
        if shown.returncode != 0:
            problem(f"report: exit code {shown.returncode}: {shown.stderr}")
            return False
        report = with_stacks(json.loads(shown.stdout))
        oracle = json.loads(subprocess.check_output([*emulator, build + "/sim/sim-oracle", oracle_file]))
        losses = {gap["code"] for gap in report["gaps"] if gap["loss"]}
        if "GPUMEM_SIM_ERROR" in environment:  # a device that failed is told, and nothing else is lost
            losses.discard("device_failed")
        if losses or not report["simulated"] or report["bypassed"]:
            problem(f"lost by {sorted(losses)}, simulated {report['simulated']}, bypassed {report['bypassed']}")
        if flight:
            compare_flight(oracle, report, racing)
            if not report["overwritten"]:
                problem("nothing was overwritten")
        else:
            compare_totals(oracle, report, COUNTERS - {"peak"} if racing else COUNTERS)
        if examine:
            examine(recorded.stdout.decode(errors="replace"), report)
        if leaks:
            compare_leaks(planted(recorded.stdout), report)
    return not problems


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--build", required=True)
    options.add_argument("--env", action="append", default=[])
    options.add_argument("--preload", action="append", help="instead of libgpumem.so alone, in this order")
    options.add_argument("--racing", action="store_true", help="output and peaks are random")
    options.add_argument("--expect-no-trace", action="store_true")
    options.add_argument("--expect-bypassed", action="store_true")
    options.add_argument("command", nargs="+")
    arguments = options.parse_args()
    environment = dict(pair.split("=", 1) for pair in arguments.env)
    good = hold(os.path.abspath(arguments.build), arguments.command, environment, arguments.preload,
                racing=arguments.racing, expect_no_trace=arguments.expect_no_trace, expect_bypassed=arguments.expect_bypassed)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
