#!/usr/bin/env python3
"""gpumem run and gpumem check -- COMMAND.

    report_run.py GPUMEM PROGRAM LIBRARIES

PROGRAM is a program that leaks device memory and ends with 0, PROGRAM_edited the same, linked in another way; LIBRARIES the folder of its CUDA libraries. What must
hold: exit codes are the command's own, as a shell returns them; one line says where the trace is; LD_PRELOAD keeps its
entries; no file is left that was not requested.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../support"))
from report_json import with_stacks  # noqa: E402

problems = 0
GM_NOTE = ".gpumem.last-run"


def expect(good, text):
    global problems
    if not good:
        problems += 1
        print("FAIL: " + text, file=sys.stderr)


def main():
    gpumem, program, libraries = sys.argv[1:4]
    folder = tempfile.TemporaryDirectory()
    environment = dict(os.environ, LD_LIBRARY_PATH=libraries, TMPDIR=folder.name, LC_ALL="C.UTF-8")
    environment.pop("GPUMEM_OUTPUT", None)
    environment.pop("GPUMEM_SYMBOL_CACHE", None)

    def run(*arguments, **more):
        return subprocess.run([gpumem, *arguments], capture_output=True, text=True, cwd=folder.name, timeout=120,
                              env=dict(environment, **more), check=False)

    def files():
        return sorted(os.listdir(folder.name))

    # Exit codes are the command's.
    with open(os.path.join(folder.name, "plain"), "w", encoding="ascii") as file:
        file.write("not a program\n")
    for command, code in ((["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], 128 + signal.SIGKILL),
                          (["no-such-command"], 127), (["./plain"], 126), (["true"], 0)):
        done = run("run", "--", *command)
        expect(done.returncode == code, f"run {command}: exit code {done.returncode}, not {code}")
        expect(done.stderr.count("\n") == 1, f"run {command}: not one line: {done.stderr!r}")
    expect(run("run", "--quiet", "true").stderr == "", "run --quiet true says something")
    os.unlink(os.path.join(folder.name, "plain"))
    expect(files() == [], f"left behind: {files()}")

    # gpumem names the trace, and it is where it was requested, whatever folder the command changes to.
    done = run("run", "-o", "here.trace", "sh", "-c", "cd / && exec " + program)
    expect(done.returncode == 0 and files() == ["here.trace"], f"run -o here.trace: {done.returncode}, {files()}")
    lines = done.stderr.splitlines()
    expect(len(lines) == 3 and " leaked in " in done.stderr and "peak " in lines[1] and "SIMULATED" in lines[1] and
           lines[2] == f"gpumem: more: gpumem report {folder.name}/here.trace", f"said: {done.stderr!r}")
    os.unlink(os.path.join(folder.name, "here.trace"))
    done = run("run", "--", program)
    expect(len(files()) == 1 and files()[0].startswith("gpumem."), f"default name: {files()}")
    expect(run("report").returncode == 0, "report does not find the default name")
    done = run("run", "-o", "%p.trace", "sh", "-c", f"{program} & {program} & wait")
    expect(len(done.stderr.splitlines()) == 3 and "gpumem: process " in done.stderr and
           done.stderr.endswith(f"gpumem: more, of all 2 processes: gpumem report {folder.name}\n"),
           f"two processes: {done.stderr!r}")

    # A run that recorded nothing, or recorded elsewhere, is not passed over for an older one.
    for command in (["report"], ["check"], ["info"], ["report", "."], ["report", folder.name]):
        expect(run(*command).returncode in (0, 1), f"{command} before: {run(*command)}")
    done = run("run", "sh", "-c", "exit 3")
    for command in (["report"], ["check"], ["info"], ["report", "."], ["report", folder.name]):
        done = run(*command)
        expect(done.returncode == 4 and not done.stdout and "'sh -c exit 3' ended with exit code 3" in done.stderr,
               f"{command} after a run that recorded nothing: {done}")
    expect(run("check", "--allow-empty").returncode == 0, "check --allow-empty after a run that recorded nothing")
    with tempfile.TemporaryDirectory() as elsewhere:
        run("run", "-q", "-o", elsewhere + "/there.trace", program)
        shown = run("report", "--json")
        expect(shown.returncode == 0 and json.loads(shown.stdout)["trace"] == os.path.realpath(elsewhere) + "/there.trace" or
               json.loads(shown.stdout)["trace"] == elsewhere + "/there.trace", f"a run elsewhere: {shown}")
    run("run", "-q", "-o", "new.trace", program)
    shown = run("report", "--json")
    expect(json.loads(shown.stdout)["trace"] == "new.trace", "the note of an older run outlives it")
    named = run("report", "--json", "ne*.trace")
    expect(json.loads(named.stdout)["trace"] == "new.trace", f"a quoted pattern: {named}")
    expect(GM_NOTE not in files(), "the note of an older run is left")
    for name in files():
        os.unlink(os.path.join(folder.name, name))

    # What cannot be written is refused before the command starts, and so are values that make no sense.
    for output, code in (("/no/such/folder/x.trace", 125), (folder.name, 125), (folder.name + "/", 125),
                         ("/proc/x.trace", 125), ("x" * 600, 125)):
        done = run("run", "-o", output, "sh", "-c", "touch started")
        expect(done.returncode == code and done.stderr.count("\n") == 1 and files() == [], f"run -o {output}: {done} {files()}")
    for option in (["--depth", "1000"], ["--depth", "0"], ["--stacks", "nativ"], ["--stacks="], ["--flight=1"]):
        done = run("run", *option, "sh", "-c", "touch started")
        expect(done.returncode == 2 and done.stderr.count("\n") == 1 and files() == [], f"run {option}: {done}")
    done = run("path")
    expect(done.returncode == 0 and os.path.isfile(done.stdout.strip()) and done.stdout.endswith("/libgpumem.so\n"), f"{done}")
    expect(run("path", "x").returncode == 2, "path x")
    expect(run("help", "run").stdout == run("run", "--help").stdout, "help run")

    # A program that was replaced since gives no names, and above all no wrong ones; wherever its build-id stands.
    for original in (program, program + "_edited"):
        copy = shutil.copy(original, os.path.join(folder.name, "program"))
        run("run", "-q", "-o", "changed.trace", "--", copy)
        before = run("report", "-v", "changed.trace").stdout
        shutil.copy(gpumem, copy)
        after = run("report", "-v", "changed.trace").stdout
        expect("train_step" in before and "changed since" not in before, f"names are missing: {before}")
        expect(re.search(r"program\+0x[0-9a-f]+ +\(changed since the recording\)", after) is not None and
               "train_step" not in after and "training_loop.c" not in after, f"a replaced program: {after}")
        frames = [frame for owner in with_stacks(json.loads(run("report", "--json", "changed.trace").stdout))["leaks"]
                  for frame in owner["stack"] if frame["module"] == "program"]
        expect(frames and all(frame["module_status"] == "changed since the recording" and frame["line"] == 0
                              for frame in frames), f"a replaced program, as JSON: {frames}")
        os.unlink(copy)
        os.unlink(os.path.join(folder.name, "changed.trace"))

    # Names are kept for the next report, where the user has it and not where he does not want it.
    run("run", "-q", "-o", "named.trace", "--", program)
    named = [run("report", "-v", "named.trace", **where).stdout
             for where in ({"GPUMEM_SYMBOL_CACHE": ""}, *2 * [{"GPUMEM_SYMBOL_CACHE": folder.name + "/named"}],
                           *2 * [{"XDG_CACHE_HOME": folder.name}], *2 * [{"HOME": folder.name, "XDG_CACHE_HOME": ""}],
                           {"GPUMEM_SYMBOL_CACHE": folder.name + "/named.trace"})]
    expect("train_step" in named[0] and all(text == named[0] for text in named), f"names change by the cache: {named}")
    for kept in ("named", "gpumem/symbols", ".cache/gpumem/symbols"):
        expect(len(os.listdir(os.path.join(folder.name, kept))) > 0, f"nothing is kept in {kept}")
        shutil.rmtree(os.path.join(folder.name, kept.split("/")[0]))
    os.unlink(os.path.join(folder.name, "named.trace"))
    expect(files() == [], f"left behind by reports: {files()}")

    # LD_PRELOAD is a list, ours comes first, nothing else is changed.
    done = run("run", "-q", "sh", "-c", "echo $LD_PRELOAD", LD_PRELOAD="libm.so.6:libdl.so.2")
    libraries_loaded = done.stdout.strip().split(":")
    expect(libraries_loaded[0].endswith("/libgpumem.so") and libraries_loaded[1:] == ["libm.so.6", "libdl.so.2"],
           f"LD_PRELOAD: {done.stdout!r}")
    done = run("run", "-q", "cat")
    expect(done.stdout == "", "stdin")
    done = run("run", "-q", "echo", "--help", "-o", "x")
    expect(done.stdout == "--help -o x\n", f"arguments of the command were taken: {done.stdout!r}")

    # gpumem warns of an invalid value before the command starts, and the trace has it afterwards.
    bad = {"GPUMEM_RING": "8", "GPUMEM_DEPTH": "1000", "GPUMEM_STACKS": "native,pyton", "GPUMEM_ON_FULL": "stop",
           "GPUMEM_TORCH": "yes", "GPUMEM_NVML": "2", "GPUMEM_XLA": "on"}
    for name, value in bad.items():
        done = run("run", "-o", "bad.trace", program, **{name: value})
        expect(done.returncode == 0 and f"gpumem: {name}='{value}' is not understood" in done.stderr.split("\n")[0],
               f"{name}={value}: {done.stderr!r}")
        expect(f"SETTING: {name}={value} was not understood" in run("report", "bad.trace").stdout, f"report: {name}")
        expect(f"not understood {name}={value}\n" in run("info", "bad.trace").stdout, f"info: {name}")
        told = json.loads(run("report", "--json", "bad.trace").stdout)["settings_not_understood"]
        expect(told == [f"{name}={value}"], f"report --json: {told}")
        os.unlink(os.path.join(folder.name, "bad.trace"))
    good = {"GPUMEM_RING": "1M", "GPUMEM_DEPTH": "256", "GPUMEM_STACKS": "none", "GPUMEM_ON_FULL": "block",
            "GPUMEM_TORCH": "0", "GPUMEM_NVML": ""}
    done = run("run", "-q", "-o", "good.trace", program, **good)
    expect(done.stderr == "", f"good settings: {done.stderr!r}")
    expect("SETTING" not in run("report", "good.trace").stdout, "report: good settings")
    os.unlink(os.path.join(folder.name, "good.trace"))

    # A signal to gpumem is meant for the command.
    child = subprocess.Popen([gpumem, "run", "sh", "-c", "trap 'exit 3' TERM; echo ready; while :; do sleep 0.1; done"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder.name, env=environment)
    expect(child.stdout.readline() == b"ready\n", "the command does not start")
    child.terminate()
    expect(child.wait(60) == 3, f"SIGTERM was not passed on: {child.returncode}")
    child.stdout.close()

    # check -- COMMAND: the gate's code, unless the command itself fails.
    for arguments, code in ((["--", program], 1), (["--max-leak", "1T", "--", program], 0),
                            (["--max-leak", "1T", "--max-peak", "1K", "--", program], 1), (["--", "true"], 4),
                            (["--allow-empty", "--", "true"], 0), (["--", "sh", "-c", f"{program}; exit 9"], 9),
                            (["--", "no-such-command"], 127), (["--max-leak", "1", "--", "sh", "-c", "kill $$"], 143)):
        done = run("check", *arguments)
        expect(done.returncode == code, f"check {arguments}: exit code {done.returncode}, not {code}: {done.stdout}")
    expect(files() == [], f"check leaves behind: {files()}")
    run("check", "-o", "kept.trace", "--", program)
    expect(files() == ["kept.trace"], f"check -o: {files()}")
    folder.cleanup()
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
