#!/usr/bin/env python3
"""The names of CUDA's errors in report/cuda_error.c are those of the headers.

    cuda_errors.py SOURCE INCLUDE
"""
import re
import sys


def main():
    source, include = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        rows = re.findall(r"^ +\{(\d+), (\w+|\"\w+\"), (\w+|\"\w+\")\},$", file.read(), re.MULTILINE)
    problems = []
    numbers = [int(number) for number, _, _ in rows]
    if numbers != sorted(set(numbers)):
        problems.append("not sorted, or a number twice")
    for column, header, pattern in ((1, "cuda.h", r"\b(CUDA_ERROR_\w+)\s*=\s*(\d+)"),
                                    (2, "driver_types.h", r"\b(cudaError\w+)\s*=\s*(\d+)")):
        with open(f"{include}/{header}", encoding="utf-8", errors="replace") as file:
            wanted = {int(number): name for name, number in re.findall(pattern, file.read())}
        ours = {int(row[0]): row[column].strip('"') for row in rows if row[column] != "NULL"}
        problems += [f"{header}: {number} is {wanted.get(number)}, not {ours.get(number)}"
                     for number in sorted(wanted.keys() | ours.keys()) if wanted.get(number) != ours.get(number)]
        if len(wanted) < 90:
            problems.append(f"{header}: only {len(wanted)} errors found")
    print("\n".join(problems) or f"{len(rows)} errors are named as in the headers")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
