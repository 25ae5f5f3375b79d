"""Shared by the checks of frameworks other than PyTorch: a scenario is a program with one argument, its name."""
import glob
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, folder) for folder in ("e2e", "torch", "support")]
import run as e2e  # noqa: E402
import trace_reader as t  # noqa: E402
from report_json import with_stacks  # noqa: E402


def record(build, command, environment):
    """The report of one run, and its trace read by trace_reader."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, LD_PRELOAD=build + "/preload/libgpumem.so", **environment)
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        [trace] = glob.glob(folder + "/*.trace")
        shown = subprocess.check_output([build + "/report/gpumem", "report", "--json", trace])
        return with_stacks(json.loads(shown)), t.Trace(trace)


def totals(build, command, environment):
    """The output is the same both ways, and all totals are the oracle's."""
    good = e2e.hold(build, command, environment, leaks=False)
    return ([] if good else list(e2e.problems)), "output equal, totals those of the oracle"


def place(report, scenarios, library):
    """The largest owner is the line of the scenarios that is marked so, and most memory belongs to the library."""
    owner = report["devices"][0]["at_peak"]["owners"][0]
    with open(scenarios, encoding="utf-8") as file:
        line = next(number for number, text in enumerate(file, 1) if "the report must name" in text)
    frames = [(os.path.basename(frame["file"] or ""), frame["line"]) for frame in owner["stack"]]
    found = max(report["devices"][0]["libraries"], key=lambda row: row["at_peak"]["bytes"])["library"]
    problems = [] if (os.path.basename(scenarios), line) in frames else [f"line {line} is not among {frames}"]
    if found != library:
        problems.append(f"not {library}'s but {found}'s")
    return problems, f"largest owner {owner['bytes']} bytes in {owner['count']}, line {line}, library {found}"


def run_all(checks):
    """Runs (name, function that returns problems and figures) and prints a line for each. Returns the exit code."""
    failed = False
    for name, check in checks:
        problems, figures = check()
        failed |= bool(problems)
        print(f"{'FAIL' if problems else 'PASS'} {name}: {figures}", flush=True)
        for problem in problems:
            print("    ", problem)
    return 1 if failed else 0
