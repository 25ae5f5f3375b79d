"""A thread is found by the name that it has in the system, and by its number: named.py BUILD"""
import os
import re
import subprocess
import sys
import tempfile

BUILD = sys.argv[1]
HELD = re.compile(r"^device \S+  .* in (\d+) allocations?$", re.M)


def report(trace, thread):
    return subprocess.run([BUILD + "/report/gpumem", "report", "--at", "end", "--thread", thread, trace],
                          stdout=subprocess.PIPE, text=True, check=True).stdout


def main():
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for mode in ("file", "flight"):
            trace = f"{folder}/{mode}.trace"
            environment = dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim", LD_PRELOAD=BUILD + "/preload/libgpumem.so",
                               GPUMEM_OUTPUT=trace, GPUMEM_MODE=mode)
            subprocess.run([BUILD + "/tests/named"], env=environment, check=True)
            # Numbers are given in the order in which threads came, also where one has the ring of another that ended.
            for thread, count in {"conductor": 1, "loader": 2, "fetcher": 1, "0": 1, "1": 1, "2": 1, "3": 1, "4": 0,
                                  "load": 0}.items():
                page = report(trace, thread)
                found = sum(map(int, HELD.findall(page)))
                if found != count:
                    print(f"FAIL {mode}: thread {thread} holds {found}, not {count}:\n{page}")
                    wrong += 1
            threads = "There are threads: 0 conductor, 1 loader, 2 loader, 3 fetcher\n"
            if threads not in report(trace, "nobody"):
                print(f"FAIL {mode}: {report(trace, 'nobody')}")
                wrong += 1
    return wrong != 0


sys.exit(main())
