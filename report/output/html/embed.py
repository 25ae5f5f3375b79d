#!/usr/bin/env python3
"""Makes the header with the page's style and script: embed.py HEADER STYLE SCRIPT...

The scripts become one, in their order. gm_page_policy names both by their hashes: nothing else in the page runs.
"""
import base64
import hashlib
import sys


def read(path):
    with open(path, "rb") as file:
        return file.read()


def array(name, data):
    rows = [",".join(map(str, data[i:i + 32])) for i in range(0, len(data), 32)]
    return f"static const unsigned char {name}[] = {{\n" + ",\n".join(rows) + "};\n"


def policy(directive, data):
    return f"{directive} 'sha256-{base64.b64encode(hashlib.sha256(data).digest()).decode()}'"


def main():
    header, style, scripts = sys.argv[1], read(sys.argv[2]), [read(path) for path in sys.argv[3:]]
    script = b'"use strict";\n(() => {\n' + b"".join(scripts) + b"})();\n"
    for name, data in (("style", style), ("script", script)):
        if b"</" + name.encode() in data or b"<!--" in data:
            sys.exit(f"the {name} would end its element")
    with open(header, "w", encoding="ascii") as file:
        file.write("/* Made by embed.py. */\n")
        file.write(f"static const char gm_page_policy[] = \"{policy('style-src', style)}; {policy('script-src', script)}\";\n")
        file.write(array("gm_page_style", style) + array("gm_page_script", script))


main()
