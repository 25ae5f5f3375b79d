#!/usr/bin/env python3
"""exports.py OBJDUMP DRIVER [STUB]: what the simulated driver exports.

Every name is unversioned and belongs to CUDA or to us. The driver has every name of the toolkit's stub library, if
there is one, so that whatever links with the real driver links with this one.
"""
import re
import subprocess
import sys


def exported(objdump, library):
    text = subprocess.run([objdump, "-T", library], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    names = {}
    for line in text.splitlines():
        match = re.match(r"[0-9a-f]+ (.{7}) (\S+)\s+[0-9a-f]+\s+(.*)", line)
        if match and match.group(2) != "*UND*":
            names[match.group(3).split()[-1]] = match.group(3).split()[:-1]
    return names


def main():
    objdump, driver, *stub = sys.argv[1:]
    names = exported(objdump, driver)
    wrong = [name for name, version in names.items()
             if version not in ([], ["Base"]) or not re.match(r"cu(dbg)?[A-Z]|gpumem_", name)]
    missing = [name for name in (exported(objdump, stub[0]) if stub else [])
               if name.startswith("cu") and name not in names]
    soname = subprocess.run([objdump, "-p", driver], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    print(f"{len(names)} exported, unexpected: {wrong}, missing: {missing}")
    return bool(wrong or missing or "libcuda.so.1" not in soname or "cuMemAlloc_v2" not in names)


if __name__ == "__main__":
    sys.exit(main())
