#!/usr/bin/env python3
"""
Children of a signal handler return into the recorder and live: forks.py BUILD PROGRAM [PRELOAD]. The parent's trace is whole. It
ignores what the children record, because they free memory that their own traces do not have.
"""
import json
import os
import subprocess
import sys
import tempfile


def main():
    build, program, *before = (os.path.abspath(path) for path in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", LD_PRELOAD=":".join([*before, build + "/preload/libgpumem.so"]),
                           GPUMEM_OUTPUT=os.path.join(folder, "%p.trace"))
        with subprocess.Popen([program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as process:
            said, errors = process.communicate()
        if process.returncode or errors or said != "0 crashed, 0 hung\n":
            sys.exit(f"FAIL: exit code {process.returncode}: {said}{errors}")
        trace = os.path.join(folder, f"{process.pid}.trace")
        shown = subprocess.run([build + "/report/gpumem", "report", "--json", trace], capture_output=True, text=True)
        if shown.returncode:
            sys.exit(f"FAIL: report: {shown.stderr}")
        report = json.loads(shown.stdout)
        if not report["complete"] or report["damaged"]:
            sys.exit(f"FAIL: the parent's trace: {shown.stdout[:400]}")


if __name__ == "__main__":
    main()
