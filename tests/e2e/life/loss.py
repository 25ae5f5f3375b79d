#!/usr/bin/env python3
"""The loss matrix: kept allocations found in the trace after each way a process can end.

    loss.py BUILD [--write FILE]

Exit code 1 if any is missing or a trace reports the wrong ending. --write puts the table into docs/reliability.md.
"""
import json
import os
import subprocess
import sys
import tempfile

KEPT = 50_000
# ending -> (allocations expected in all traces, how each trace must say it ended)
ENDINGS = {
    "clean": (KEPT, ["normal"]),
    "SIGKILL": (KEPT, ["cut"]),
    "SIGSEGV": (KEPT, ["cut"]),
    "abort": (KEPT, ["cut"]),
    "_exit": (KEPT, ["normal"]),
    "quick_exit": (KEPT, ["normal"]),
    "exec": (2 * KEPT, ["normal", "normal"]),
    "fork": (KEPT + 30_000, ["normal", "normal"]),
}


def run(build, ending):
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", LD_PRELOAD=build + "/preload/libgpumem.so")
        subprocess.run([build + "/tests/keep", ending], env=environment, cwd=folder, check=False,
                       stderr=subprocess.DEVNULL)
        found, ended = 0, []
        for name in sorted(os.listdir(folder)):
            shown = subprocess.run([build + "/report/gpumem", "report", "--json", os.path.join(folder, name)],
                                   capture_output=True, check=True)
            report = json.loads(shown.stdout)
            found += sum(device["kinds"]["device"]["allocs"] for device in report["devices"])
            ended.append(report["ending"])
        return found, sorted(ended)


def main():
    build = os.path.abspath(sys.argv[1])
    lines = ["| ending | kept | found | lost | the trace says |", "|---|---|---|---|---|"]
    good = True
    for ending, (kept, endings) in ENDINGS.items():
        found, ended = run(build, ending)
        good = good and found == kept and ended == endings
        lines.append(f"| {ending} | {kept:,} | {found:,} | {kept - found:,} | {' and '.join(ended)} |")
    table = "\n".join(lines)
    print(table)
    if "--write" in sys.argv:
        path = sys.argv[sys.argv.index("--write") + 1]
        with open(path, encoding="utf-8") as file:
            text = file.read()
        begin, end = "<!-- loss matrix -->\n", "<!-- end of loss matrix -->"
        head, rest = text.split(begin)
        tail = rest.split(end)[1]
        with open(path, "w", encoding="utf-8") as file:
            file.write(head + begin + table + "\n" + end + tail)
    return 0 if good else 1


sys.exit(main())
