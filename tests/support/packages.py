#!/usr/bin/env python3
"""Takes from pip, once, what tests read outputs with: packages.py FOLDER REQUIREMENTS

A package that cannot be had is named, and so does the test that wants it; the others come all the same.
"""
import os
import subprocess
import sys

folder, requirements = sys.argv[1:3]
with open(requirements, encoding="utf-8") as file:
    wanted = [line.split("#")[0].strip() for line in file if line.split("#")[0].strip()]
done = os.path.join(folder, "done")


def install(packages):
    return subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check",
                           "--root-user-action", "ignore", "--target", folder, *packages],
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


try:
    with open(done, encoding="utf-8") as file:
        had = file.read().splitlines()
except OSError:
    had = []
missing = [package for package in wanted if package not in had]
if missing and not install(missing):
    for package in list(missing):
        if not install([package]):
            missing.remove(package)
            print(f"pip has no {package} here")
if missing:
    with open(done, "w", encoding="utf-8") as file:
        file.write("\n".join(had + missing) + "\n")
