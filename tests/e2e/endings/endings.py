#!/usr/bin/env python3
"""How a process ended, in its trace: endings.py BUILD

The exit code comes from the process, the signal from who waited for it: gpumem run, or a recorded parent. Waiting tells
the program what it tells without the recorder. A pool's workers ended by SIGTERM are no crash.
"""
import json
import os
import subprocess
import sys
import tempfile

build = os.path.abspath(sys.argv[1])
gpumem, program = build + "/report/gpumem", build + "/tests/endings"
environment = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", LC_ALL="C.UTF-8")
environment.pop("LD_PRELOAD", None)
failures = 0


def expect(what, good, found=""):
    global failures
    failures += not good
    print(("ok   " if good else "FAIL ") + what + ("" if good else f": {found}"), flush=True)


def run(*arguments, folder=None, **more):
    return subprocess.run(arguments, capture_output=True, text=True, env=dict(environment, **more), cwd=folder, timeout=60,
                          check=False)


def reports(folder):
    shown = json.loads(run(gpumem, "report", "--json", folder=folder).stdout)
    return shown.get("traces", [shown])


def one(arguments, ended, words, by_run=True):
    with tempfile.TemporaryDirectory() as folder:
        bare = run(program, *arguments, folder=folder)
        if by_run:
            done = run(gpumem, "run", "-q", "--", program, *arguments, folder=folder)
            bare.returncode = bare.returncode if bare.returncode >= 0 else 128 - bare.returncode
        else:
            done = run(program, *arguments, folder=folder, LD_PRELOAD=build + "/preload/libgpumem.so")
        what = " ".join(arguments) + ("" if by_run else " (LD_PRELOAD)")
        expect(f"{what}: as without the recorder", (done.stdout, done.returncode) == (bare.stdout, bare.returncode), done)
        [report] = reports(folder)
        expect(f"{what}: told", (report["exit_code"], report["signal"]) == ended, (report["exit_code"], report["signal"]))
        text = " ".join(run(gpumem, "report", folder=folder).stdout.split())
        expect(f"{what}: said: {words}", words in text, text)
        info = run(gpumem, "info", folder=folder).stdout
        expect(f"{what}: in info", str(ended[1] or ended[0]) in info, info)


def pool(number, name, code):
    with tempfile.TemporaryDirectory() as folder:
        run(gpumem, "run", "-q", "--", program, "pool", str(number), folder=folder)
        found = reports(folder)
        expect(f"pool {name}: three workers", [report["signal"] for report in found] == [name] * 3, found)
        expect(f"pool {name}: complete", {report["complete"] for report in found} == {code == 0}, found)
        done = run(gpumem, "check", folder=folder)
        expect(f"pool {name}: check", done.returncode == code and name in done.stdout, done)


def gate(how, number, code):
    """The gate judges who ends by the bare system call as it judges others."""
    with tempfile.TemporaryDirectory() as folder:
        done = run(gpumem, "check", "--max-leak", "0", "--", program, how, str(number), folder=folder)
        expect(f"check: {how} {number}", done.returncode == code, done)


def in_a_shell(how, ended):
    """Who waits is a program of another name."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(300):
            with open(f"{folder}/gpumem.other{number}.{number}.trace", "w", encoding="ascii") as file:
                file.write("none")
        run(gpumem, "run", "-q", "--", "/bin/sh", "-c", f"{program} {how}; exit 0", folder=folder)
        for number in range(300):
            os.remove(f"{folder}/gpumem.other{number}.{number}.trace")
        [report] = reports(folder)
        expect(f"{how} in a shell: told", (report["exit_code"], report["signal"]) == ended, report)


def not_told():
    """Nobody waits who would tell."""
    with tempfile.TemporaryDirectory() as folder:
        run(program, "tidy", "0", folder=folder, LD_PRELOAD=build + "/preload/libgpumem.so")
        [report] = reports(folder)
        expect("tidy, not told: cut", report["ending"] == "cut" and report["exit_code"] is None, report["ending"])
        expect("tidy, not told: check", run(gpumem, "check", folder=folder).returncode == 3)


one(["exit", "0"], (0, None), "exit code 0")
one(["exit", "3"], (3, None), "exit code 3")
one(["_exit", "259"], (3, None), "exit code 3")
one(["signal", "9"], (None, "SIGKILL"), "killed by SIGKILL")
one(["signal", "15"], (None, "SIGTERM"), "killed by SIGTERM")
one(["signal", "11"], (None, "SIGSEGV"), "crashed by SIGSEGV")
BARE = ", without its destructors"
one(["raw", "0"], (0, None), "exit code 0" + BARE)
one(["raw", "3"], (3, None), "exit code 3" + BARE)
one(["tidy", "0"], (0, None), "exit code 0" + BARE)
gate("tidy", 0, 0)
gate("tidy", 7, 7)
gate("raw", 0, 1)
gate("exit", 0, 1)
not_told()
in_a_shell("raw 5", (5, None))
in_a_shell("signal 9", (None, "SIGKILL"))
for by_run in (True, False):
    one(["-p", "raw", "5"], (5, None), "exit code 5" + BARE, by_run)
    one(["-p", "signal", "11"], (None, "SIGSEGV"), "crashed by SIGSEGV", by_run)
    one(["-p", "exit", "4"], (4, None), "exit code 4", by_run)
pool(15, "SIGTERM", 0)
pool(9, "SIGKILL", 3)
sys.exit(1 if failures else 0)
