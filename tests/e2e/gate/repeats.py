#!/usr/bin/env python3
"""The gate's verdict does not depend on luck: each program is recorded and judged again and again while all CPUs are busy.

    repeats.py BUILD TIMES [PROGRAM...]

PROGRAM is the beginning of a command line below; all without one.
Sound programs must pass each time and the others fail each time, with the same bytes leaked. What keeps the CPUs busy are
the runs themselves: JOBS for each CPU at a time, so each run is interrupted where it stands.
"""
import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

JOBS = 4
BUILD, TIMES = os.path.abspath(sys.argv[1]), int(sys.argv[2])
GPUMEM = BUILD + "/report/gpumem"
SOUND = ("train", "swap_models", "cache_of_an_epoch", "cache_on_purpose", "lru_cache", "workspace_of_the_largest", "token_cache",
         "joined_results", "prefetch", "many_small", "stream_ordered")
SICK = ("early_return", "unbounded_cache", "cancelled_requests", "history", "cache_beside_purpose", "pageable_batches", "pinned_batches", "gathering",
        "too_large")
PROGRAMS = [ # command, options, exit code
    (["training_loop"], [], 1),
    (["training_loop"], ["--max-leak", "12M"], 0),
    (["diff_program"], [], 1),
    (["threads_program"], [], 0),
    (["threads_program", "caching"], [], 0),
    (["threads_program", "leaky"], [], 1),
    (["threads_program", "keeping"], ["--fail-on", "leak,retained"], 1),
    *((["findings_programs", name], [], 0) for name in SOUND),
    *((["findings_programs", name], ["--fail-on", "leak,findings,retained"], 1) for name in SICK),
]


def judge(number):
    """Exit code, what leaked, and what failed besides, of one run of a program."""
    command, options, _ = PROGRAMS[number]
    with tempfile.NamedTemporaryFile() as answer:
        done = subprocess.run([GPUMEM, "check", *options, "--format", "json=" + answer.name, "--", BUILD + "/tests/" + command[0],
                               *command[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=600,
                              env=dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim", GPUMEM_SIM_MEMORY="2G"))
        issues = json.load(answer)["issues"]
    leaks = sorted((issue["bytes"], issue["count"], issue["fingerprint"]) for issue in issues if issue["code"] == "leak")
    others = {issue["code"] for issue in issues if issue["level"] == "error" and issue["code"] != "leak"}
    return done.returncode, tuple(leaks), tuple(sorted(others))


def main():
    names = [" ".join(command + options) for command, options, _ in PROGRAMS]
    chosen = [number for number, name in enumerate(names)
              if len(sys.argv) < 4 or any(name.startswith(wanted) for wanted in sys.argv[3:])]
    failed = not chosen
    with concurrent.futures.ThreadPoolExecutor(JOBS * (os.cpu_count() or 1)) as pool:
        runs = {number: [pool.submit(judge, number) for _ in range(TIMES)] for number in chosen}
        for number in chosen:
            code = PROGRAMS[number][2]
            seen = collections.Counter(run.result() for run in runs[number])
            good = len(seen) == 1 and next(iter(seen))[0] == code
            failed |= not good
            print("ok  " if good else "FAIL", names[number], f"{TIMES} times:", f"exit code {code}" if good else dict(seen), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
