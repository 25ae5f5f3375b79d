#!/usr/bin/env python3
"""The names of CUDA's errors in report/output/cuda_error.c are those of the headers.

    cuda_errors.py SOURCE INCLUDE...

Names of the newest of these headers must be exactly ours, and be all of ours if the headers are of CUDA 13.5 or later;
each error of an older header must have a name, even if a later one.
"""
import re
import sys

COLUMNS = ((1, "cuda.h", r"\b(CUDA_ERROR_\w+)\s*=\s*(\d+)"), (2, "driver_types.h", r"\b(cudaError\w+)\s*=\s*(\d+)"))


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def version(include):
    return int(re.search(r"^#define CUDA_VERSION (\d+)", read(f"{include}/cuda.h"), re.M)[1])


def compare(rows, include, exactly, all_of_ours):
    for column, header, pattern in COLUMNS:
        wanted = {int(number): name for name, number in re.findall(pattern, read(f"{include}/{header}"))}
        ours = {int(row[0]): row[column].strip('"') for row in rows if row[column] != "NULL"}
        if len(wanted) < (90 if exactly else 80):
            yield f"{include}: {header}: only {len(wanted)} errors found"
        for number in sorted(wanted.keys() | (ours.keys() if all_of_ours else set())):
            if number not in ours or (exactly and wanted.get(number) != ours[number]):
                yield f"{include}: {header}: {number} is {wanted.get(number)}, not {ours.get(number)}"


def main():
    source, *includes = sys.argv[1:]
    rows = re.findall(r"^ +\{(\d+), (\w+|\"\w+\"), (\w+|\"\w+\")\},$", read(source), re.MULTILINE)
    newest = max(map(version, includes))
    problems = []
    numbers = [int(number) for number, _, _ in rows]
    if numbers != sorted(set(numbers)):
        problems.append("not sorted, or a number twice")
    for include in includes:
        is_newest = version(include) == newest
        problems += compare(rows, include, is_newest, is_newest and newest >= 13050)
    print("\n".join(problems) or f"{len(rows)} errors are named as in the headers")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
