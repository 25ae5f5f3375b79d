#!/usr/bin/env python3
"""The headers test with the CUDA 12 and 11 headers of pip: older_headers.py COVERAGE API_TABLE FOLDER

Downloads nvidia-cuda-runtime-cu12 and -cu11 into FOLDER once. Exit code 77 (SKIP) when pip cannot.
"""
import glob
import os
import subprocess
import sys

coverage, table, folder = sys.argv[1:]
includes = []
for package in ("nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime-cu11"):
    target = os.path.join(folder, package)
    if not os.path.isdir(target):
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", target, package],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    includes += [os.path.dirname(path) for path in glob.glob(target + "/**/cuda.h", recursive=True)]
if not includes:
    print("SKIP: pip has no older CUDA headers here")
    sys.exit(77)
sys.exit(subprocess.run([sys.executable, coverage, "headers", table, *includes], check=False).returncode)
