#!/usr/bin/env python3
"""The command line's promises: cli.py BUILD

Bad input gives one clear line on standard error and exit code 2 or 3, never a crash and never "no leaks"; the gate's
exit codes are those of docs; a killed program's trace is readable up to the kill and never passes the gate.
"""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile

build = os.path.abspath(sys.argv[1])
gpumem = build + "/report/gpumem"
failures = []


def run(*arguments, environment=None, folder=None):
    base = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", **(environment or {}))
    base.pop("LD_PRELOAD", None)
    return subprocess.run(arguments, capture_output=True, text=True, env=base, cwd=folder, timeout=120, check=False,
                          errors="replace")


def expect(what, done, codes, one_line=False, says=None, silent_about=("no leak", "0 B leaked", "nothing leaked")):
    problems = []
    if done.returncode not in codes:
        problems.append(f"exit code {done.returncode}, expected {codes}")
    if one_line and len(done.stderr.strip().splitlines()) != 1:
        problems.append(f"expected one line on stderr: {done.stderr!r}")
    if one_line and any(word in (done.stdout + done.stderr).lower() for word in silent_about):
        problems.append(f"claims there are no leaks: {done.stdout!r} {done.stderr!r}")
    if says and says not in done.stdout + done.stderr:
        problems.append(f"does not say {says!r}: {done.stdout!r} {done.stderr!r}")
    if problems:
        failures.append(what)
        print(f"FAIL {what}: {'; '.join(problems)}", file=sys.stderr)
    else:
        print(f"ok   {what}")


def preloaded(folder, program, *arguments):
    base = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", LD_PRELOAD=build + "/preload/libgpumem.so")
    return subprocess.run([build + "/tests/" + program, *arguments], env=base, cwd=folder, capture_output=True,
                          timeout=120, check=False)


def only_trace(folder):
    traces = [name for name in os.listdir(folder) if name.endswith(".trace")]
    assert len(traces) == 1, traces
    return os.path.join(folder, traces[0])


def usage():
    expect("no command", run(gpumem), {2})
    expect("unknown command", run(gpumem, "frobnicate"), {2}, one_line=True)
    for command in ("report", "check", "info", "run"):
        expect(f"{command}: unknown option", run(gpumem, command, "--frobnicate"), {2}, one_line=True)
        expect(f"{command} --help", run(gpumem, command, "--help"), {0}, says="usage")
    expect("--help", run(gpumem, "--help"), {0}, says="usage")
    expect("--version", run(gpumem, "--version"), {0}, says="gpumem")
    for size in ("12Q", "", "-1", "1e3", "99999999999999999999", "M"):
        expect(f"check: bad size {size!r}", run(gpumem, "check", "--max-leak", size, "x.trace"), {2}, one_line=True)
        expect(f"check: bad peak {size!r}", run(gpumem, "check", "--max-peak", size, "x.trace"), {2}, one_line=True)
    expect("run: no command given", run(gpumem, "run"), {2}, one_line=True)


def bad_traces(folder, good):
    def written(name, content):
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    with open(good, "rb") as file:
        content = file.read()
    wrong_version = bytearray(content)
    wrong_version[12:14] = (99).to_bytes(2, "little")
    wrong_endian = bytearray(content)
    wrong_endian[8:12] = wrong_endian[8:12][::-1]
    empty = os.path.join(folder, "empty")
    os.mkdir(empty)
    random.seed(1)
    bad = {
        "missing": os.path.join(folder, "missing.trace"),
        "empty": written("empty.trace", b""),
        "random": written("random.trace", random.randbytes(5000)),
        "text": written("text.trace", b"not a trace\n" * 50),
        "header cut": written("cut1.trace", content[:100]),
        "header only": written("cut2.trace", content[:4095]),
        "other version": written("version.trace", bytes(wrong_version)),
        "other endianness": written("endian.trace", bytes(wrong_endian)),
        "an empty folder": empty,
    }
    for what, path in bad.items():
        for command in ("report", "check", "info"):
            expect(f"{command}: {what}", run(gpumem, command, path), {2, 3}, one_line=True)
    # The report shows the rest of a truncated trace, but the gate never passes it.
    for part in (0.3, 0.6, 0.9):
        path = written(f"truncated{part}.trace", content[:int(len(content) * part)])
        expect(f"check: truncated at {part}", run(gpumem, "check", "--max-leak", "1G", path), {3})
        expect(f"report: truncated at {part}", run(gpumem, "report", path), {0, 3})


def gate(folder):
    preloaded(folder, "families")
    leaky = only_trace(folder)
    expect("check: a leak fails", run(gpumem, "check", leaky), {1}, says="forget_buffer")
    expect("check: a leak within the limit", run(gpumem, "check", "--max-leak", "1M", leaky), {0})
    expect("check: one byte too much", run(gpumem, "check", "--max-leak", str(123456 + 3 * 4096 - 1), leaky), {1})
    expect("check: exactly the limit", run(gpumem, "check", "--max-leak", str(123456 + 3 * 4096), leaky), {0})
    expect("check: peak above", run(gpumem, "check", "--max-leak", "1G", "--max-peak", "1K", leaky), {1})
    expect("check: peak below", run(gpumem, "check", "--max-leak", "1G", "--max-peak", "0:1G", leaky), {0})
    expect("check -- CMD with a leak", run(gpumem, "check", "--", build + "/tests/training_loop"), {1})
    expect("check -- CMD that fails: its own code", run(gpumem, "check", "--max-leak", "1G", "--", build + "/tests/families"), {7})
    expect("check -- CMD without CUDA", run(gpumem, "check", "--", "/bin/true"), {4})
    expect("check --allow-empty", run(gpumem, "check", "--allow-empty", "--", "/bin/true"), {0})
    expect("run: the program's exit code", run(gpumem, "run", "--", build + "/tests/families", folder=folder), {7})
    expect("run: no such program", run(gpumem, "run", "--", "/no/such/program", folder=folder), {127})
    expect("run: no CUDA", run(gpumem, "run", "--", "/bin/true", folder=folder), {0}, says="no CUDA")
    return leaky


def killed(folder):
    done = preloaded(folder, "keep", "SIGKILL")
    assert done.returncode == -signal.SIGKILL
    trace = only_trace(folder)
    mode = os.stat(trace).st_mode & 0o777
    if mode != 0o600:
        failures.append("mode")
        print(f"FAIL a trace has mode {mode:o}: others can read the command line", file=sys.stderr)
    report = run(gpumem, "report", trace)
    expect("report: killed in mid-run", report, {0}, says="killed")
    expect("check: killed in mid-run", run(gpumem, "check", "--max-leak", "1G", trace), {3})
    totals = json.loads(run(gpumem, "report", "--json", trace).stdout)
    kept = totals["devices"][0]["kinds"]["device"]["allocs"]
    if kept != 50000 or totals["complete"]:
        failures.append("killed")
        print(f"FAIL killed: {kept} allocations found, complete {totals['complete']}", file=sys.stderr)


with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two, tempfile.TemporaryDirectory() as three:
    usage()
    bad_traces(two, gate(one))
    killed(three)
sys.exit(1 if failures else 0)
