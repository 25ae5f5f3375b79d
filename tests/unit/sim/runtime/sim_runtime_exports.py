#!/usr/bin/env python3
"""The simulated runtimes export what programs look for, under the name and version they expect.

usage: sim_runtime_exports.py OBJDUMP FOLDER [REAL_LIBCUDART_13]

If the real library is there (the test reads only its symbol table), ours must have every function that it exports."""
import re
import subprocess
import sys


# Exported since 13.3, yet no header declares them: no program can be written that needs them.
UNDECLARED = {"cudaSubgridCreate", "cudaSubgridWorkerGridCreate", "cudaSubgridWorksetCreate"}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exports(objdump, library):
    """{name: version} of the functions defined in the dynamic symbol table."""
    return {name: version for version, name in re.findall(
        r"^\S+ .*?\.text\S*\s+\S+\s+(\S+)\s+(\w+)$", run(objdump, "-T", library), flags=re.M)}


def main():
    objdump, folder, *real = sys.argv[1:]
    problems = []
    for major in (12, 13):
        name = f"libcudart.so.{major}"
        if f"SONAME               {name}\n" not in run(objdump, "-p", f"{folder}/{name}"):
            problems.append(f"{name} has another soname")
        ours = exports(objdump, f"{folder}/{name}")
        if "cudaMalloc" not in ours:
            problems.append(f"{name} does not export cudaMalloc")
        problems += [f"{name}: {symbol} has version {version}" for symbol, version in ours.items()
                     if version != name]
        problems += [f"{name} exports {symbol}" for symbol in ours
                     if not symbol.lstrip("_").startswith("cuda")]
        if real and major == 13:
            problems += [f"{name} lacks {symbol}"
                         for symbol in sorted(set(exports(objdump, real[0])) - set(ours) - UNDECLARED)]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
