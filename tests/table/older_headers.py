#!/usr/bin/env python3
"""Compares the table with every CUDA whose headers pip has: older_headers.py SOURCE_FOLDER FOLDER LAYOUT

Downloads each minor version of nvidia-cuda-runtime 13.x, the latest of 12.x and of 11.x into FOLDER, once. Compares
with each: names, versions and prototypes (coverage.py), layouts (layout.c, against LAYOUT, which prints ours), and the
errors' names (cuda_errors.py). Exit code 77 (SKIP) if pip has none of them.
"""
import glob
import os
import subprocess
import sys

NEWEST_MINOR = 5  # of CUDA 13; the test reads later ones as soon as pip has them
here = os.path.dirname(os.path.abspath(__file__))
source, folder, own_layout = sys.argv[1:]
failed = []


def fetch(name, *packages):
    """The folder of cuda.h in the first of the packages, None if pip does not have it."""
    target = os.path.join(folder, name)
    done = os.path.join(target, "done")
    if not os.path.exists(done):
        result = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--upgrade", "--target", target,
                                 *packages], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if result.returncode == 0:
            with open(done, "w", encoding="utf-8"):
                pass
    found = glob.glob(target + "/**/cuda.h", recursive=True) if os.path.exists(done) else []
    return os.path.dirname(found[0]) if found else None


def fetch_all():
    """[folder of cuda.h], the newest last."""
    found = [fetch(f"cuda-{major}", f"nvidia-cuda-runtime-cu{major}") for major in (11, 12)]
    minor = 0
    while include := fetch(f"cuda-13.{minor}", f"nvidia-cuda-runtime==13.{minor}.*", f"nvidia-cuda-crt==13.{minor}.*"):
        found.append(include)
        minor += 1
    if any(found) and (None in found or minor <= NEWEST_MINOR):
        failed.append(f"pip has only some of the headers: {found}")
    return [include for include in found if include]


def run(*command):
    if subprocess.run(command, check=False).returncode != 0:
        failed.append(" ".join(command))


def check_layout(include):
    program = os.path.join(folder, "layout")
    if "/cuda-13." in include:
        run(os.environ.get("CC", "cc"), "-std=gnu11", "-w", "-DGM_CUDA_HEADERS", "-I", include, "-o", program,
            os.path.join(here, "layout.c"))
        run(sys.executable, os.path.join(here, "coverage.py"), "layout", program, own_layout)


includes = fetch_all()
if not includes:
    print("SKIP: pip has no CUDA headers here")
    sys.exit(77)
run(sys.executable, os.path.join(here, "coverage.py"), "headers", os.path.join(source, "preload/hooks/api.table"), *includes)
for each in includes:
    check_layout(each)
run(sys.executable, os.path.join(here, "cuda_errors.py"), os.path.join(source, "report/output/cuda_error.c"), *includes)
print("\n".join(f"FAIL: {what}" for what in failed))
sys.exit(1 if failed else 0)
