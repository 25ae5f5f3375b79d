#!/usr/bin/env python3
"""With --redact no output tells of a machine or its user, and the numbers and functions are the same: test_redact.py BUILD

Each path, argument, value and name that a recording could give away has the word "secret" in it. The same outputs
without --redact do have the word: else this test could not fail.
"""
import base64
import binascii
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FORMATS = ("collapsed", "csv", "memory_viz", "ndjson", "openmetrics", "perfetto", "pprof", "speedscope", "sqlite")
LIBRARY = """
#include <cuda_runtime_api.h>
void native_keep(void **memory) { cudaMalloc(memory, 5 << 20); }
"""
SCRIPT = """
import ctypes, sys
import gpumem
native = ctypes.CDLL(sys.argv[1])
runtime = ctypes.CDLL("libcudart.so.13")
kept = []

def keep_batch():
    memory = ctypes.c_void_p()
    native.native_keep(ctypes.byref(memory))
    kept.append(memory)

def forget(size):
    memory = ctypes.c_void_p()
    runtime.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(size))

def refused():
    runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 40))

for step in range(8):
    with gpumem.range("training"):
        keep_batch()
    gpumem.mark("epoch of wordsecret")
    gpumem.mark("step")
gpumem.mark("valuesecret")
gpumem.mark(sys.argv[1])
forget(3 << 20)
refused()
"""
ENVIRONMENT = {"PYTORCH_ALLOC_CONF": "max_split_size_mb:envsecret", "TORCHELASTIC_RUN_ID": "jobsecret", "RANK": "1",
               "WORLD_SIZE": "2", "GPUMEM_RING": "ringsecret", "GPUMEM_SIM_MEMORY": "2G"}
failed = []


def expect(condition, text):
    if not condition:
        failed.append(text)
        print("FAIL:", text)


def setting(build, name):
    with open(build + "/CMakeCache.txt", encoding="utf-8") as file:
        return next(line.split("=", 1)[1].strip() for line in file if line.startswith(name + ":"))


def record(build, folder):
    """A script and a library below a folder that names a user, under a host's name of our own where we may set one."""
    home = folder + "/home/usersecret/projectsecret"
    os.makedirs(home)
    for name, text in (("nativesecret.c", LIBRARY), ("scriptsecret.py", SCRIPT)):
        with open(f"{home}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    library = home + "/libnativesecret.so"
    subprocess.run(["cc", "-g", "-O0", "-shared", "-fPIC", "-isystem", setting(build, "GPUMEM_CUDA_INCLUDE"),
                    home + "/nativesecret.c", "-o", library, build + "/sim/libcudart.so.13"], check=True)
    command = [build + "/report/gpumem", "run", "-q", "-o", home + "/outsecret.%p.trace", "--", sys.executable,
               home + "/scriptsecret.py", library, "--token=valuesecret", "wordsecret"]
    named = ["unshare", "--uts", "sh", "-c", 'hostname hostsecret && exec "$@"', "sh"]
    can_name = shutil.which("unshare") and subprocess.run([*named, "true"], capture_output=True, check=False).returncode == 0
    print("the host's name is ours" if can_name else "SKIP of the host's name: it cannot be set here")
    subprocess.run([*(named if can_name else []), *command], check=True, cwd=home,
                   env=dict(os.environ, LD_LIBRARY_PATH=build + "/sim", PYTHONPATH=ROOT + "/python", **ENVIRONMENT))
    trace, = (f"{home}/{name}" for name in os.listdir(home) if name.endswith(".trace"))
    return trace, can_name


def unpacked(data):
    """The bytes, and those of whatever is compressed in them."""
    parts = [data]
    if data[:2] == b"\x1f\x8b":
        parts.append(gzip.decompress(data))
    for text in re.findall(rb"[A-Za-z0-9+/]{64,}={0,2}", data):
        try:
            decoded = base64.b64decode(text, validate=True)
        except binascii.Error:
            continue
        if decoded[:2] == b"\x1f\x8b":
            parts.append(gzip.decompress(decoded))
    return b"\n".join(parts)


def output(build, folder, arguments, redact):
    """What a command writes to stdout or to the file OUT."""
    path = folder + "/out"
    command = [build + "/report/gpumem", *arguments[:1], *(["--redact"] if redact else []),
               *(path if argument == "OUT" else argument for argument in arguments[1:])]
    done = subprocess.run(command, capture_output=True, check=False)
    expect(done.returncode == 0, f"{command}: {done.returncode} {done.stderr}")
    if "OUT" not in arguments:
        return done.stdout
    with open(path, "rb") as file:
        data = file.read()
    os.remove(path)
    return data


def outputs(trace, other):
    yield from (("report", "--json", trace), ("report", trace), ("report", "-v", trace), ("report", "--site", "1", trace),
                ("report", "--at", "end", "--all-frames", trace), ("report", "-v", trace, other),
                ("report", trace, other), ("report", "--html", "OUT", trace), ("report", "--html", "OUT", trace, other),
                ("report", "--json", "--no-symbols", trace), ("summarize", trace, other),
                ("ask", trace, "verdict"), ("ask", trace, "owners", "--at", "end"), ("ask", trace, other, "verdict"),
                ("diff", trace, other), ("diff", "--json", trace, other), ("diff", "--html", "OUT", trace, other))
    for name in FORMATS:
        yield "export", "--format", name, "-o", "OUT", trace
    yield "export", "--format", "ndjson", "--at", "end", trace


def check_outputs(build, folder, trace, other, can_name):
    told = 0
    for arguments in outputs(trace, other):
        what = " ".join(os.path.basename(argument) for argument in arguments)
        plain = unpacked(output(build, folder, arguments, redact=False))
        hidden = unpacked(output(build, folder, arguments, redact=True))
        for found in re.finditer(rb"[^\n]{0,60}secret[^\n]{0,40}", hidden, re.I):
            expect(False, f"{what}: {found[0]!r}")
        expect(ROOT.encode() not in hidden and folder.encode() not in hidden, f"{what}: a path of this machine")
        told += b"secret" in plain
        if "openmetrics" not in arguments:
            expect(b"secret" in plain, f"{what}: the plain output has nothing to hide, so this shows nothing")
            function = b"refused" if "--site" in arguments else b"" if arguments[-1] == "verdict" else b"keep_batch" if arguments[0] == "ask" else b"keep_batch" if "csv" in arguments else b"native_keep"
            expect("--no-symbols" in arguments or arguments[0] == "diff" or function in hidden, f"{what}: {function} is not named")
        if arguments[:2] == ("report", "--json") and can_name:
            expect(b"hostsecret" in plain, "the host's name is not in the plain JSON")
    return told


def numbers(value, path=""):
    """Numbers and booleans by where they stand; of texts whether they are there."""
    if isinstance(value, dict):
        return [entry for name in sorted(value) for entry in numbers(value[name], f"{path}.{name}")]
    if isinstance(value, list):
        return [entry for index, item in enumerate(value) for entry in numbers(item, f"{path}[{index}]")]
    return [(path, value if isinstance(value, (int, float)) else type(value).__name__)]


def check_numbers(build, folder, trace):
    plain, hidden = (json.loads(output(build, folder, ("report", "--json", trace), redact)) for redact in (False, True))
    for report in (plain, hidden):
        report.pop("job")
        expect(report.pop("command"), "no command")
    differing = set(numbers(plain)) ^ set(numbers(hidden))
    expect(not differing, f"numbers differ: {sorted(map(str, differing))[:6]}")
    functions = [sorted({frame["function"] for frame in report["frames"]} if "frames" in report else
                        set(re.findall(r'"function": ?"([^"]*)"', json.dumps(report)))) for report in (plain, hidden)]
    expect(functions[0] == functions[1] and "keep_batch" in functions[1], f"functions differ: {functions}")
    names = json.dumps(hidden)
    expect('"step"' in names and '"training"' in names, "marks that tell nothing lost their names")
    expect("epoch of *" in names, "the mark that names an argument")
    expect(re.search(r'"[0-9a-f]{8}\.py"', names), "the script is no number")


def check_refusal(build, folder, trace):
    summary = folder + "/x.sum"
    subprocess.run([build + "/report/gpumem", "summarize", trace, "-o", summary], check=True)
    for command in (("report",), ("summarize",), ("diff", summary)):
        done = subprocess.run([build + "/report/gpumem", *command, "--redact", summary], capture_output=True, text=True,
                              check=False)
        expect(done.returncode == 2 and not done.stdout and "summar" in done.stderr, f"{command} of a summary: {done}")


def main():
    build = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        trace, can_name = record(build, folder)
        other = os.path.dirname(trace) + "/othersecret.trace"
        shutil.copy(trace, other)
        told = check_outputs(build, folder, trace, other, can_name)
        check_numbers(build, folder, trace)
        check_refusal(build, folder, trace)
    print("FAILED" if failed else f"passed: {told} outputs with secrets, none of them with --redact")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
