#!/usr/bin/env python3
"""All outputs of gpumem, of traces and snapshots whose names an attacker chose.

    test_outputs.py GPUMEM SOURCE EXPORT_TRACES

What must hold (each broken promise is one line on stderr, and exit code 1), for each row of OUTPUTS:
  - its format's own reader takes it, and no name left its field;
  - it is UTF-8 without control characters, and no line of it is a command to a runner of CI;
  - the same trace gives the same bytes: in another folder, language and time zone, too.
"""
import csv
import gzip
import io
import json
import os
import pickle
import re
import sqlite3
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

gpumem, source, export_traces = map(os.path.abspath, sys.argv[1:4])
problems = 0
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
COMMAND = re.compile(r"^\s*::|##\[", re.M)
ANNOTATION = re.compile(r"^::(error|warning|notice) (?:(?:file|line|title)=[^:,\n]*,?)*::[^\n]*$")
NAMES = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "=cmd|'/c calc'!A1", "a;b;c 12", "quote\" and 'quote', back\\slash",
         "line\r\nbreak\ttab\x1b[2Jescape\x00nul", "\u202eright\u2028line\u2066isolate\u061c\x9b", "'; DROP TABLE allocations; --", "# EOF", "",
         "::error file=x,line=1::command", "##[error]older %0A::warning::", "+1-2@3", "x<\"';,=\\" * 400, "{{7*7}} ${7*7} `id` ]]> <!--"]


def expect(good, text):
    global problems
    if not good:
        problems += 1
        print("FAIL: " + text[:600], file=sys.stderr)


# ---- what is read


def snapshot(path):
    """A memory snapshot whose names are hostile in every place that has one."""
    frames = [{"name": name, "filename": NAMES[(i + 3) % len(NAMES)], "line": i} for i, name in enumerate(NAMES)]
    blocks, events = [], []
    for i, name in enumerate(NAMES):
        address = 0x7f0000000000 + i * 4096
        stack = [frames[i], frames[(i + 1) % len(frames)]]
        blocks.append({"address": address, "size": 4096, "requested_size": 4000, "state": "active_allocated", "frames": stack})
        events.append({"action": "alloc", "addr": address, "size": 4096, "stream": 0, "time_us": 10 + i, "frames": stack,
                       "compile_context": name, "user_metadata": name})
    events.append({"action": "oom", "addr": 1 << 20, "size": 1 << 40, "stream": 0, "time_us": 99, "frames": frames[:2], "device_free": 0})
    segment = {"device": 0, "address": 0x7f0000000000, "total_size": 1 << 21, "allocated_size": 4096 * len(NAMES), "stream": 0,
               "active_size": 4096 * len(NAMES), "requested_size": 4000 * len(NAMES), "segment_type": NAMES[0], "segment_pool_id": (0, 0),
               "is_expandable": False, "frames": frames,
               "blocks": blocks + [{"address": 0x7f0000000000 + 4096 * len(NAMES), "size": (1 << 21) - 4096 * len(NAMES), "requested_size": 0,
                                    "state": "inactive", "frames": []}]}
    notes = [{"stage": "START" if i % 2 else "END", "name": name, "device": 0, "time_us": 20 + i} for i, name in enumerate(NAMES)]
    whole = {"segments": [segment], "device_traces": [events], "external_annotations": notes,
             "allocator_settings": {name: name for name in NAMES[:-1]}}
    with open(path, "wb") as file:
        pickle.dump(whole, file, protocol=4)


# ---- the readers of the formats: each raises or expects


def text(what, data):
    shown = data.decode()
    found = CONTROL.search(shown)
    expect(not found, f"{what}: a control character at {found and shown[max(found.start() - 40, 0):found.end()]!r}")
    return shown


def plain(what, data):
    found = COMMAND.search(text(what, data))
    expect(not found, f"{what}: a command to a runner: {found and data.decode()[found.start():found.end() + 60]!r}")


def unique(pairs):
    found = dict(pairs)
    expect(len(found) == len(pairs), f"a key twice: {[key for key, _ in pairs]}")
    return found


def one_json(what, data):
    json.loads(text(what, data), object_pairs_hook=unique)


def lines_of_json(what, data):
    for line in text(what, data).split("\n"):
        if line:
            json.loads(line, object_pairs_hook=unique)


def page(what, data):
    shown = text(what, data[data.index(b"<body>"):data.rindex(b"<script>")])
    bare = re.sub(r"<script[^>]*>.*?</script>", "", shown, flags=re.S)
    expect(not re.search(r"<(script|img|iframe|object|embed|link|form|a)\b", bare), f"{what}: an element of a name")
    expect(not re.search(r"<[^>]*\son\w+\s*=", bare), f"{what}: a handler")
    scripts = re.findall(r"<script([^>]*)>", shown)
    expect(all('type="application/' in one for one in scripts), f"{what}: scripts {scripts}")
    for names in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', shown, re.S):
        json.loads(names, object_pairs_hook=unique)


def junit(what, data):
    tree = xml.etree.ElementTree.fromstring(text(what, data))
    tags = {element.tag for element in tree.iter()}
    expect(tags <= {"testsuites", "testsuite", "testcase", "failure", "skipped", "system-out", "properties", "property", "error"}, f"{what}: {tags}")


def github(what, data):
    for line in text(what, data).split("\n"):
        if COMMAND.search(line):
            expect(ANNOTATION.match(line) and "##[" not in line, f"{what}: a command that is no annotation: {line!r}")


def metrics(what, data):
    shown = text(what, data)
    expect(shown.endswith("# EOF\n") and shown.count("# EOF") == 1, f"{what}: ends elsewhere")
    for line in shown.splitlines():
        if not line.startswith("#"):
            expect(re.match(r'^[a-z_:]+(\{([a-z_]+="([^"\\\n]|\\["\\n])*",?)*\})? [-+0-9.e]+$', line), f"{what}: {line!r}")


def rules(what, data):
    """The rules that it made accept what they were made of."""
    plain(what, data)


def collapsed(what, data):
    for line in text(what, data).splitlines():
        expect(re.match(r"^(device \d+|blocks on device \d+|host pinned)(;[^;]*)* \d+$", line), f"{what}: {line!r}")


def rows(what, data):
    found = list(csv.reader(io.StringIO(text(what, data.replace(b"\r\n", b"\n")), newline=""), strict=True))
    expect(len({len(row) for row in found}) == 1, f"{what}: rows of several lengths")
    for row in found[1:]:
        expect(not any(cell[:1] in ("=", "+", "-", "@", "\t", "\r") and not re.fullmatch(r"-?\d+", cell) for cell in row), f"{what}: a formula in {row}")


def database(what, data):
    connection = sqlite3.connect(":memory:")
    connection.executescript(text(what, data))
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    expect("allocations" in tables and connection.execute("SELECT count(*) FROM allocations").fetchone()[0] > 10, f"{what}: tables {tables}")


def zipped(what, data):
    strings(what, gzip.decompress(data))


def strings(what, data):
    """Protocol buffers: no control character in what reads as text."""
    for escape in (b"\x1b[", b"\xe2\x80\xae", b"\xe2\x80\xa8", b"\xe2\x81\xa6"):
        expect(escape not in data, f"{what}: {escape!r}")


class Plain(pickle.Unpickler):
    """Reads data, and no code."""

    def find_class(self, module, name):
        expect(False, f"a pickle that wants {module}.{name}")
        raise pickle.UnpicklingError


def pickled(what, data):
    Plain(io.BytesIO(data)).load()
    strings(what, data)


# Arguments (FILE: where it writes, if not to stdout), and the reader.
OUTPUTS = [
    ("report TRACE", plain), ("report -v TRACE", plain), ("report --all-frames -v --at end TRACE", plain), ("report --site 1 TRACE", plain),
    ("report --redact -v TRACE", plain), ("report --no-symbols TRACE", plain), ("report --json TRACE", one_json), ("report --html FILE TRACE", page),
    ("info TRACE", plain), ("check TRACE", plain), ("check --format github TRACE", github), ("check --format junit=FILE TRACE", junit),
    ("check --format sarif=FILE TRACE", one_json), ("check --format gitlab=FILE TRACE", one_json), ("check --format json=FILE TRACE", one_json),
    ("check --format metrics=FILE TRACE", metrics), ("check --format suppressions=FILE TRACE", rules), ("check --gen-suppressions TRACE", plain),
    ("check --baseline FILE --update-baseline TRACE", plain), ("diff BASE TRACE", plain), ("diff TRACE BASE", plain), ("diff --json BASE TRACE", one_json),
    ("diff --html FILE BASE TRACE", page), ("diff -f pprof -o FILE BASE TRACE", zipped), ("top --once TRACE", plain),
    ("top --once --json TRACE", lines_of_json), ("whatif TRACE", plain), ("whatif --json TRACE", one_json), ("whatif --advise TRACE", plain),
    ("ask TRACE verdict", one_json), ("ask TRACE peak", one_json), ("ask TRACE owners --at end --by line --size 1M", one_json),
    ("ask TRACE leaks", one_json), ("ask TRACE oom", one_json), ("ask TRACE growth", one_json), ("ask TRACE diff BASE", one_json),
    ("summarize TRACE", lines_of_json), ("export -f pprof TRACE", zipped), ("export -f collapsed TRACE", collapsed),
    ("export -f perfetto TRACE", strings), ("export -f memory_viz TRACE", pickled), ("export -f speedscope TRACE", one_json),
    ("export -f ndjson TRACE", lines_of_json), ("export -f csv TRACE", rows), ("export -f csv --at end TRACE", rows),
    ("export -f sqlite TRACE", database), ("export -f openmetrics TRACE", metrics),
]
ELSEWHERE = {"TZ": "Asia/Kathmandu", "LC_ALL": "C.UTF-8", "LANG": "de_DE.UTF-8", "MALLOC_PERTURB_": "165"}


def run(line, names, folder, environment):
    path = os.path.join(folder, "out")
    if os.path.exists(path):
        os.unlink(path)
    words = [names.get(word, word).replace("FILE", path) for word in line.split()]
    done = subprocess.run([gpumem, *words], capture_output=True, timeout=120, check=False, cwd=folder, env={**os.environ, "XDG_CACHE_HOME": folder, **environment})
    said = done.stdout + done.stderr.replace(path.encode(), b"FILE")
    written = None
    if os.path.exists(path):
        with open(path, "rb") as file:
            written = file.read()
    return done.returncode, said, written, done.stdout


def check_output(line, reader, names, folders, what):
    code, said, written, out = run(line, names, folders[0], {})
    expect(code in (0, 1), f"{what}: exit code {code}: {said[-300:]!r}")
    again = run(line, names, folders[1], ELSEWHERE)
    expect((code, said, written) == again[:3], f"{what}: another output elsewhere: {said[:200]!r} {again[1][:200]!r}")
    data = written if "FILE" in line else out
    if not data:
        expect("suppressions" in line and code == 0, f"{what}: nothing written") # what passes needs no rules
        return
    try:
        reader(what, data)
        if "FILE" in line and "github" not in line:
            plain(f"{what}, what it says", said)
    except (ValueError, KeyError, sqlite3.Error, xml.etree.ElementTree.ParseError, pickle.UnpicklingError, EOFError) as error:
        expect(False, f"{what}: its reader says {error!r}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        folders = [os.path.join(folder, name) for name in ("one", "another")]
        for one in folders:
            os.mkdir(one)
        trace, image = os.path.join(folder, "hostile.trace"), os.path.join(folder, "hostile.pickle")
        subprocess.run([export_traces, "hostile", trace], check=True)
        snapshot(image)
        base = os.path.join(source, "tests/corpus/pool.trace")
        for kind, path in (("trace", trace), ("snapshot", image)):
            for line, reader in OUTPUTS:
                if kind == "snapshot" and line.startswith(("top", "summarize", "info")): # of traces alone
                    continue
                check_output(line, reader, {"TRACE": path, "BASE": base}, folders, f"{kind}: gpumem {line}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
