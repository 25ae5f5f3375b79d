"""Compiles image.c with the headers of each CPython that scripts/get-pythons has fetched, with a GIL and without, and
runs it.

    python image.py COMPILER PRELOAD_FOLDER
"""

import glob
import os
import subprocess
import sys
import tempfile

import run

SOURCES = ("stack/python/python", "stack/python/python_attach", "stack/python/python_lines", "stack/python/python_text",
           "stack/python/python_told", "stack/native/unwind_maps", "stack/native/stack_bounds")


def main():
    compiler, preload = sys.argv[1:3]
    subprocess.run([os.path.join(run.HERE, "../../scripts/get-pythons")])
    headers = sorted(glob.glob(os.path.join(run.PYTHONS, "3.*/usr/include/python3.*")))
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "image")
        for include in headers:
            for build in ([], ["-DPy_GIL_DISABLED=1"]):
                made = subprocess.run(
                    [compiler, "-D_GNU_SOURCE", "-w", "-o", program, *build, "-isystem", include,
                     "-isystem", include + "/internal", "-idirafter", os.path.dirname(include),
                     "-iquote", preload, "-I", os.path.join(preload, "../include"), os.path.join(run.HERE, "image.c")]
                    + [os.path.join(preload, source + ".c") for source in SOURCES] + ["-ldl", "-lpthread"])
                status = made.returncode or subprocess.run([program]).returncode
                print("%s%s: %s" % (os.path.basename(include), "t" if build else "",
                                    "FAIL" if status else "as expected"), flush=True)
                failed += status != 0
    if not headers:
        print("SKIP: no headers of CPython 3.14 or later")
        return 77
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
