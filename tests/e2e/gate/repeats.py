#!/usr/bin/env python3
"""The gate's verdict does not depend on luck: each program is recorded and judged again and again while all CPUs are busy.

    repeats.py BUILD TIMES [PROGRAM...]

PROGRAM is the beginning of a command line below; all without one.
Sound programs must pass each time and the others fail each time, with the same bytes leaked.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile

BUILD, TIMES = os.path.abspath(sys.argv[1]), int(sys.argv[2])
GPUMEM = BUILD + "/report/gpumem"
SOUND = ("train", "swap_models", "cache_of_an_epoch", "lru_cache", "workspace_of_the_largest", "token_cache",
         "joined_results", "prefetch", "many_small", "stream_ordered")
SICK = ("early_return", "unbounded_cache", "cancelled_requests", "history", "pageable_batches", "pinned_batches", "gathering",
        "too_large")
PROGRAMS = [ # command, options, exit code
    (["training_loop"], [], 1),
    (["training_loop"], ["--max-leak", "12M"], 0),
    (["diff_program"], [], 1),
    (["threads_program"], [], 0),
    (["threads_program", "leaky"], [], 1),
    *((["findings_programs", name], [], 0) for name in SOUND),
    *((["findings_programs", name], ["--fail-on", "leak,findings"], 1) for name in SICK),
]


def judge(command, options, folder):
    """Exit code, and what leaked, of one run."""
    answer = os.path.join(folder, "answer")
    done = subprocess.run([GPUMEM, "check", *options, "--format", "json=" + answer, "--", BUILD + "/tests/" + command[0], *command[1:]],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=300,
                          env=dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim", GPUMEM_SIM_MEMORY="2G"))
    with open(answer, encoding="utf-8") as file:
        issues = json.load(file)["issues"]
    leaks = sorted((issue["bytes"], issue["count"], issue["fingerprint"]) for issue in issues if issue["code"] == "leak")
    return done.returncode, tuple(leaks)


def main():
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    failed = False
    try:
        with tempfile.TemporaryDirectory() as folder:
            for command, options, code in PROGRAMS:
                name = " ".join(command + options)
                if len(sys.argv) > 3 and not any(name.startswith(wanted) for wanted in sys.argv[3:]):
                    continue
                seen = collections.Counter(judge(command, options, folder) for _ in range(TIMES))
                good = len(seen) == 1 and next(iter(seen))[0] == code
                failed |= not good
                print("ok  " if good else "FAIL", name, f"{TIMES} times:", f"exit code {code}" if good else seen, flush=True)
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
