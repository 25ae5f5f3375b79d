#!/usr/bin/env python3
"""
A set-user-id program with the recorder linked to it makes no file where its caller says: secure.py PROGRAM. Skipped
(77) if the caller is not root, or the folder for temporary files ignores the bit.
"""
import os
import shutil
import subprocess
import sys
import tempfile

NOBODY = 65534


def run(program, folder, name, user):
    trace = os.path.join(folder, name)
    result = subprocess.run([program], env={"GPUMEM_OUTPUT": trace, "GPUMEM_SIM_ORACLE": ""}, user=user, group=user,
                            extra_groups=[], capture_output=True, text=True, timeout=60)
    if result.returncode or result.stderr:
        sys.exit(f"FAIL: exit code {result.returncode}: {result.stdout}{result.stderr}")
    return result.stdout, os.path.exists(trace)


def main():
    if os.geteuid() != 0:
        print("SKIP: only root can make such a program")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        program = os.path.join(folder, "program")
        shutil.copy(sys.argv[1], program)
        said, is_recorded = run(program, folder, "plain.trace", 0)
        if said != "secure 0\n" or not is_recorded:
            sys.exit(f"FAIL: not recorded by its own user: {said}")
        os.chmod(program, 0o4755)
        said, is_recorded = run(program, folder, "secure.trace", NOBODY)
        if said == "secure 0\n":
            print("SKIP: the bit is not honoured in", folder)
            return 77
        if is_recorded:
            sys.exit("FAIL: the caller had a file made by the program's rights")
    return 0


if __name__ == "__main__":
    sys.exit(main())
