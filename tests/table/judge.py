#!/usr/bin/env python3
"""Tests what coverage.py finds: judge.py COVERAGE

coverage.py must read the headers that it is told to, whatever other CUDA the machine has, and say so if the compiler
read others. It must find an unclassified function, a missing ABI and two rows that cannot be told apart.
"""
import importlib.util
import os
import sys
import tempfile

specification = importlib.util.spec_from_file_location("coverage", sys.argv[1])
coverage = importlib.util.module_from_spec(specification)
specification.loader.exec_module(coverage)
failures = []


def expect(what, good, found=""):
    print(("ok   " if good else "FAIL ") + what + ("" if good else f": {found}"))
    if not good:
        failures.append(what)


def headers(folder, text, version=20010):
    os.makedirs(folder)
    with open(folder + "/cuda.h", "w", encoding="utf-8") as file:
        file.write(f"#ifndef GUARD\n#define GUARD\n#define CUDA_VERSION {version}\ntypedef int CUresult;\n{text}\n#endif\n")
    with open(folder + "/cuda_runtime_api.h", "w", encoding="utf-8") as file:
        file.write("typedef int cudaError_t;\n")
    return folder


class Table:
    """A table of one traced function."""

    since = {"cuMemAlloc": 2000, "cuMemAlloc_v2": 3020}
    traced = {"cuMemAlloc"}
    left_out = ["cuInit"]


with tempfile.TemporaryDirectory() as place:
    ours = headers(place + "/ours", "CUresult cuOurs(void); CUresult cuMemAlloc_v2(void);\n")
    other = headers(place + "/other", "CUresult cuOther(void);", 20020)
    for lender in (ours, other, place + "/none", ours + "/../ours"):
        os.environ["CUDA_INCLUDE"] = lender
        found = coverage.functions(ours)
        expect(f"the headers meant are read, {os.path.relpath(lender, place)} lends", found == {"cuOurs", "cuMemAlloc_v2"},
               found)
    os.environ["CUDA_INCLUDE"] = other
    os.environ["C_INCLUDE_PATH"] = os.environ["CPATH"] = other
    expect("whatever the environment names", coverage.functions(ours) == {"cuOurs", "cuMemAlloc_v2"})
    liar = headers(place + "/liar", "")
    with open(liar + "/cuda.h", "w", encoding="utf-8") as file:
        file.write(f'#include "{other}/cuda.h"\n')
    for what, folder in (("a header that leads to another folder's", liar),):
        try:
            expect(what + " is noticed", False, coverage.functions(folder))
        except coverage.WrongHeader as wrong:
            expect(what + " is noticed", True, wrong)
    with open(liar + "/cuda.h", "w", encoding="utf-8") as file:
        file.write("#define CUDA_VERSION 1\n#undef CUDA_VERSION\n#define CUDA_VERSION 2\n")
    try:
        expect("two versions are noticed", False, coverage.functions(liar))
    except coverage.WrongHeader as wrong:
        expect("two versions are noticed", True, wrong)

    new = headers(place + "/new", "CUresult cuNobodyKnows(void); CUresult cuMemAlloc_v3(void); CUresult cuInit(int);\n")
    problems = " ".join(coverage.check_names(Table, new))
    expect("an unclassified name fails, whatever it is called", "cuNobodyKnows: neither traced nor left out" in problems, problems)
    expect("so does a new ABI", "cuMemAlloc_v3: an ABI" in problems, problems)
    expect("and nothing else", "cuInit" not in problems, problems)
    with open(new + "/cudaTypedefs.h", "w", encoding="utf-8") as file:
        file.write("typedef int (*PFN_cuMemAlloc_v2000)(); typedef int (*PFN_cuMemAlloc_v3030)();\n"
                   "typedef int (*PFN_cuMemAlloc_v7000_ptsz)();\n")
    problems = " ".join(coverage.check_versions(Table, new))
    expect("a wrong version fails", "[2000, 3030], the table says [2000, 3020]" in problems or
           "came with [2000, 3030]" in problems, problems)
    expect("a missing per-thread form fails", "cuMemAlloc_ptsz came with [7000]" in problems, problems)
    Table.since = {"cuMemAlloc": 2000, "cuMemAlloc_v2": 2000}
    problems = " ".join(coverage.check_rows(Table))
    expect("two ABIs of one version fail", "two ABIs of one version" in problems, problems)

sys.exit(1 if failures else 0)
