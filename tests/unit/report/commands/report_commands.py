#!/usr/bin/env python3
"""The commands of gpumem on the traces of tests/corpus and on wrong usage.

    report_commands.py GPUMEM SOURCE

What must hold (each broken promise is one line on stderr, and exit code 1):
  - report and check give the exit codes and texts of tests/corpus/expected.txt;
  - text fits 80 columns and holds no control characters; errors are one line;
  - JSON follows docs/report.schema.json, whatever bytes the trace holds, and names no member twice;
  - the same trace gives the same bytes;
  - wrong usage is one clear line and exit code 2.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../support"))
from json_schema import violations  # noqa: E402

problems = 0


def expect(good, text):
    global problems
    if not good:
        problems += 1
        print("FAIL: " + text, file=sys.stderr)


def run(gpumem, *arguments, folder=None, environment=None):
    return subprocess.run([gpumem, *arguments], capture_output=True, cwd=folder, timeout=60, check=False,
                          env=dict(os.environ, LC_ALL="C.UTF-8", **(environment or {})))


def unique_members(pairs):
    names = [name for name, _ in pairs]
    expect(len(names) == len(set(names)), f"a member twice in {names}")
    return dict(pairs)


# ---- the corpus


def check_text(name, text):
    for line in text.splitlines():
        expect(len(line) <= 80, f"{name}: {len(line)} columns: {line}")
    expect(not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text), f"{name}: control characters in the text")


def stack_numbers(value):
    """All that refer to a stack, in a report or a part of it."""
    found = []
    if isinstance(value, dict):
        found += [value["stack"]] if "stack" in value else []
        value = list(value.values())
    for one in value if isinstance(value, list) else []:
        found += stack_numbers(one)
    return found


def check_stacks(name, report):
    stacks = report["stacks"]
    expect(set(stack_numbers(report)) == set(range(len(stacks))), f"{name}: stacks that are not referred to, or not there")
    expect(len({json.dumps(stack) for stack in stacks}) == len(stacks), f"{name}: a stack stands twice")


def check_corpus(gpumem, source):
    with open(os.path.join(source, "docs/report.schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    with open(os.path.join(source, "tests/corpus/expected.txt"), encoding="utf-8") as file:
        lines = [line.split(None, 3) for line in file if not line.startswith("#")]
    folder = os.path.join(source, "tests/corpus")
    present = sorted(name[:-6] for name in os.listdir(folder) if name.endswith(".trace"))
    expect(present == sorted(line[0] for line in lines), f"traces and expected.txt differ: {present}")
    for name, report_code, check_code, text in lines:
        path = os.path.join(folder, name + ".trace")
        report, check = run(gpumem, "report", path), run(gpumem, "check", path)
        output = report.stdout.decode() + report.stderr.decode()
        expect(report.returncode == int(report_code), f"{name}: report ended with {report.returncode}")
        expect(check.returncode == int(check_code), f"{name}: check ended with {check.returncode}")
        if not int(report_code):
            output += run(gpumem, "report", "-v", path).stdout.decode()
        expect(text.strip() in output.replace("\n", " "), f"{name}: not said: {text.strip()}")
        if int(report_code):
            expect(output.count("\n") == 1 and not report.stdout, f"{name}: not one line on stderr: {output!r}")
        else:
            whole = run(gpumem, "report", "-v", path).stdout.decode()
            check_text(name, whole)
            check_text(name, report.stdout.decode())
            check_text(name, run(gpumem, "info", path).stdout.decode().replace(path, ""))
            expect("No leaks" not in output or name == "clean", f"{name}: said to have no leaks")
        expect(run(gpumem, "report", path).stdout == report.stdout, f"{name}: two runs differ")
        shown = run(gpumem, "report", "--json", path)
        expect(shown.returncode == report.returncode, f"{name}: --json ended with {shown.returncode}")
        if shown.returncode == 0:
            document = json.loads(shown.stdout.decode("utf-8"), object_pairs_hook=unique_members)
            for violation in violations(document, schema, schema):
                expect(False, f"{name}: {violation}")
            check_stacks(name, document)
            expect(document["complete"] == (check.returncode != 3), f"{name}: complete is {document['complete']}")
    whole = [os.path.join(folder, name + ".trace") for name in ("leak", "clean", "hostile-text")]
    several = run(gpumem, "report", "--json", *whole)
    for violation in violations(json.loads(several.stdout), schema, schema):
        expect(False, f"several traces: {violation}")
    check_text("several traces", run(gpumem, "report", *whole).stdout.decode())
    text = run(gpumem, "report", "-v", *whole).stdout.decode()
    check_text("several traces, all of each", text)
    expect(re.search(r"sum +- +2\.00 MiB +2\.00 MiB", text) is not None, f"wrong sums:\n{text[-400:]}")
    expect(run(gpumem, "report", whole[0], path + "x").returncode == 3, "a missing trace among others is no success")


# ---- usage


def check_usage(gpumem, source):
    leak = os.path.join(source, "tests/corpus/leak.trace")
    wrong = [
        [], ["frobnicate"], ["report", "--frobnicate"], ["report", "--top"], ["report", "--top", "0"],
        ["report", "--top", "-1"], ["report", "--at", "x"], ["report", "--device", "-1"], ["report", "--kind", "x"],
        ["report", "--min-size", "x"], ["report", "--site", "0"], ["report", "--top", "5x"], ["check", "--max-leak", "12Q", leak],
        ["check", "--max-leak", "", leak], ["check", "--max-leak", "-1", leak],
        ["check", "--max-leak", "99999999999G", leak], ["check", "--max-leak", "1.5", leak],
        ["check", "--max-leak", "KiB", leak], ["check", "--max-leak", "0x10", leak],
        ["check", "--max-peak", "x:1G", leak], ["check", "--max-peak", "1:", leak],
        ["check", "--max-peak", "999:1G", leak], ["check", "--on-cut", "maybe", leak], ["check", "--max-growth", "much", leak],
        ["check", leak, "--", "true"], ["check", "--"], ["run"], ["run", "--"], ["run", "--on-full", "x", "true"],
        ["info", "--json", leak], ["run", "--depth", "many", "true"], ["check", "--max-increase", "5%", leak],
        ["check", "--baseline", leak, "--max-increase", "5", leak], ["check", "--baseline", "/", leak], ["check", "--suppressions", "/", leak],
        ["report", "--json", "--device", "0", leak], ["report", "--html", "/dev/null", "--json", leak],
        ["export", "-f", "openmetrics", "--at", "end", leak],
    ]
    for arguments in wrong:
        done = run(gpumem, *arguments)
        expect(done.returncode == 2, f"{arguments}: exit code {done.returncode}")
        expect(done.stderr.count(b"\n") == 1 and not done.stdout, f"{arguments}: not one line: {done.stderr!r}")
    for command in ([], ["run"], ["report"], ["check"], ["info"], ["path"], ["summarize"]):
        shown = run(gpumem, *command, "--help")
        expect(shown.returncode == 0 and shown.stdout.startswith((b"usage", b"gpumem")), f"{command} --help")
        check_text(f"{command} --help", shown.stdout.decode())
        version = run(gpumem, *command, "--version")
        expect(re.fullmatch(rb"gpumem \d+\.\d+\.\d+\n", version.stdout) is not None, f"{command} --version")


def check_gate(gpumem, source):
    leak, killed, phases, flight = (os.path.join(source, f"tests/corpus/{name}.trace")
                                    for name in ("leak", "killed", "phases", "flight"))
    cases = [
        ([leak], 1), (["--max-leak", "1M", leak], 0), (["--max-leak", "1023K", leak], 1),
        (["--max-leak", "1.0MiB", "--max-peak", "5M", leak], 0), (["--max-leak", "1M", "--max-peak", "4M", leak], 1),
        (["--max-leak", "1M", "--max-peak", "0:4M", leak], 1), (["--max-leak", "1M", "--max-peak", "1:4M", leak], 3),
        (["--max-leak", "2M", phases], 0), (["--max-leak", "2M", "--max-growth", "256K", phases], 0),
        (["--max-leak", "2M", "--max-growth", "255K", phases], 1), (["--max-leak", "2M", "--max-growth", "0", leak], 3),
        (["--max-leak", "2M", "--max-unused", "0", leak], 3), (["--max-leak", "2M", "--max-growth-per-round", "0", leak], 3),
        (["--max-leak", "2mb", leak], 0), ([killed], 3), (["--on-cut", "judge", killed], 1),
        (["--on-cut=judge", "--max-leak=1M", killed], 0),
        (["--max-leak", "1G", flight], 0), (["--max-leak", "1G", "--max-peak", "1G", flight], 3),
        (["--max-leak", "1G", "--max-growth", "0", flight], 3),
        (["--max-leak", "1G", "--max-peak", "1G", "--on-cut", "judge", flight], 0),
        (["--allow-empty", os.path.join(source, "tests/corpus/nothing.trace")], 0), ([leak, killed], 3),
        # Not sampled is not observed, and that is never a pass.
        (["--max-leak", "1M", "--max-residual", "1G", leak], 3),
        (["--max-leak", "1M", "--max-residual", "1G", "--on-cut", "judge", leak], 0),
    ]
    for arguments, code in cases:
        done = run(gpumem, "check", *arguments)
        expect(done.returncode == code, f"check {arguments}: exit code {done.returncode}, not {code}")
    pool = os.path.join(source, "tests/corpus/pool.trace")
    done = run(gpumem, "check", "--max-leak", "2G", pool)
    expect(done.returncode == 1 and b"FAIL  retained, 122 MiB on device 0" in done.stdout,
           f"what a pool keeps from round to round fails a check: {done.stdout!r}")
    done = run(gpumem, "check", "--max-leak", "2G", "--fail-on", "leak", "--warn-on", "pool-fragmentation", pool)
    expect(done.returncode == 0 and b"warn  pool-fragmentation, 600 MiB on device 0" in done.stdout and
           b"note  retained" in done.stdout, f"findings are notes of a check: {done.stdout!r}")
    with tempfile.TemporaryDirectory() as folder:
        for command in ("report", "check", "info"):
            done = run(gpumem, command, folder=folder)
            expect(done.returncode == 3 and done.stderr.count(b"\n") == 1, f"{command} in an empty folder")
        shutil.copy(leak, os.path.join(folder, "old.trace"))
        os.utime(os.path.join(folder, "old.trace"), (1, 1))
        shutil.copy(killed, os.path.join(folder, "new.trace"))
        newest = run(gpumem, "report", "--json", folder=folder)
        expect(json.loads(newest.stdout)["trace"] == "new.trace", "the newest trace is not the default")
        named = run(gpumem, "report", "--json", folder)
        expect(json.loads(named.stdout)["trace"] == os.path.join(folder, "new.trace"), "a folder is its newest run")
        expect(b"\033" not in run(gpumem, "report", folder=folder).stdout, "colour without a terminal")
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([gpumem, "report", leak], stdout=full, stderr=subprocess.PIPE, check=False)
        expect(done.returncode == 3, f"a full disk: exit code {done.returncode}")


def main():
    gpumem, source = os.path.abspath(sys.argv[1]), sys.argv[2]
    check_corpus(gpumem, source)
    check_usage(gpumem, source)
    check_gate(gpumem, source)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
