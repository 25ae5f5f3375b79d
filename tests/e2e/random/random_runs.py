#!/usr/bin/env python3
"""Random programs held against the oracle.

    random_runs.py BUILD [--first SEED] [--count N] [--jobs N] [--racing] [--coverage] [--flight SIZE --steps N]

Each seed is one program (random_program.c) with its own device count, capacity and injected failures. It runs without
and with the preload: output and exit code must be equal, the report's totals must equal the oracle's, and it must have
as many copies and sets as the program made. Exit code 1 if any differs; the failing seeds are printed, so that you can
run one alone. With --racing the threads do not take turns: totals must be equal, but output and peaks are random. With
--flight the trace is a flight recorder's with an area of SIZE, which programs of N steps must fill more than once.

With --coverage the programs of seeds 1 to 200 must together have called, with success, every function of the table
(preload/hooks/api.table) that the simulator implements, except those left out (random_coverage.py).
"""
import argparse
import collections
import concurrent.futures
import contextlib
import functools
import io
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import random_coverage as coverage  # noqa: E402
import run as harness  # noqa: E402


COVERING_SEEDS = range(1, 201)


def settings(seed):
    """Devices, capacity and failures of a program: every third has none, the rest fail now and then."""
    environment = {"GPUMEM_SIM_DEVICES": str(1 + seed % 3), "GPUMEM_SIM_MEMORY": ("512M", "64M", "2G")[seed // 3 % 3]}
    failures = ("", f"alloc:{5 + seed % 17}", f"alloc:{7 + seed % 11},free:{3 + seed % 13}")[seed % 3]
    if seed % 4 == 1:  # contexts, code, launches, streams, events, graphs
        failures += ("," if failures else "") + f"other:{4 + seed % 19}"
    if failures:
        environment["GPUMEM_SIM_FAIL"] = failures
    if seed % 5 == 2:
        environment["GPUMEM_SIM_TAKES"] = "context:9M,code:300K,launch:3M,limit:1M,stream:70K,event:1K,graph:100K"
    if seed % 16 == 7:  # from some call on, all are answered with this
        environment["GPUMEM_SIM_ERROR"] = f"{(700, 719, 214)[seed % 3]}:call:{60 + 9 * (seed % 50)}"
    return environment


def compare_transfers(succeeded, report):
    """Each copy and each set that succeeded is in the report, once; the oracle does not count them."""
    found = collections.Counter()
    for direction in report["transfers"]["directions"]:
        found["sets" if direction["direction"] == "fill" else "copies"] += direction["count"]
    for what, part in (("copies", "Memcpy"), ("sets", "Memset")):
        made = sum(part in name for name in succeeded)
        if made != found[what]:
            harness.problem(f"{what}: {made} made, {found[what]} in the report")


def try_seed(build, racing, flight, steps, seed):
    said = io.StringIO()
    called = set()
    command = [build + "/tests/random_" + ("race" if racing else "program"), str(seed), *([steps] if steps else [])]
    environment = settings(seed)
    if flight:
        environment.update(GPUMEM_RING="4K", GPUMEM_STACKS="none")
        environment.pop("GPUMEM_SIM_ERROR", None)  # the history would be too short

    def examine(printed, report):
        succeeded = [line.split(" ", 1)[1] for line in printed.splitlines() if line.startswith("0 ")]
        called.update(succeeded)
        if not flight:
            compare_transfers(succeeded, report)

    with contextlib.redirect_stderr(said):
        good = harness.hold(build, command, environment, leaks=False, racing=racing, flight=flight, forks=True,
                            examine=examine)
    return seed, good, said.getvalue(), called


def main():
    options = argparse.ArgumentParser()
    options.add_argument("build")
    options.add_argument("--first", type=int, default=1)
    options.add_argument("--count", type=int, default=1000)
    options.add_argument("--jobs", type=int, default=os.cpu_count())
    options.add_argument("--racing", action="store_true")
    options.add_argument("--coverage", action="store_true")
    options.add_argument("--flight", help="size of the area of a flight recorder's trace")
    options.add_argument("--steps", help="of each thread, instead of the program's own number")
    arguments = options.parse_args()
    build = os.path.abspath(arguments.build)
    failed, called = [], set()
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        seeds = range(arguments.first, arguments.first + arguments.count)
        one = functools.partial(try_seed, build, arguments.racing, arguments.flight, arguments.steps)
        for seed, good, said, succeeded in pool.map(one, seeds, chunksize=8):
            if seed in COVERING_SEEDS:
                called |= succeeded
            if not good:
                failed.append(seed)
                print(f"seed {seed}:\n{said}", file=sys.stderr)
    print(f"{len(seeds) - len(failed)} of {len(seeds)} {'racing' if arguments.racing else 'random'} programs agree with the oracle")
    if failed:
        print("seeds that do not:", *failed[:50])
    uncovered = arguments.coverage and not coverage.check(build, called)
    return 1 if failed or uncovered else 0


if __name__ == "__main__":
    sys.exit(main())
