#!/usr/bin/env python3
"""The library is marked as fit for shadow stacks, which it would else switch off: shadow_stack.py LIBRARY."""
import subprocess
import sys

notes = subprocess.run(["readelf", "-n", sys.argv[1]], capture_output=True, text=True, check=True).stdout
if "SHSTK" not in notes:
    print("FAIL: no SHSTK among the properties of", sys.argv[1], file=sys.stderr)
    print(notes, file=sys.stderr)
    sys.exit(1)
