#!/usr/bin/env python3
"""`gpumem top` beside a process that runs: test_top.py BUILD SOURCE

What must hold (each broken promise is one line on stderr, and exit code 1):
  - what it shows of a running process becomes what the process did, found by number or by trace;
  - its last look, made of many, is what `gpumem report` says of the whole trace;
  - text fits 80 columns and holds no control characters, JSON is one line for each look;
  - the process is not disturbed: its trace is complete.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from program import Program

build, source = map(os.path.abspath, sys.argv[1:3])
gpumem = build + "/report/gpumem"
MIB = 1 << 20
LOOKS = 400 # of which one must show what was done: two a second at most
problems = 0


def expect(good, text):
    global problems
    if not good:
        problems += 1
        print("FAIL: " + text, file=sys.stderr)


def top(*arguments):
    return subprocess.run([gpumem, "top", *arguments], capture_output=True, text=True, timeout=60, check=False)


def look_until(wanted, *arguments):
    """A look that shows what was done: young records are left for the next."""
    for _ in range(LOOKS):
        done = top("--once", "--json", *arguments)
        expect(done.returncode == 0 and done.stdout.count("\n") == 1, f"top {arguments}: {done}")
        look = json.loads(done.stdout)
        if wanted(look):
            return look
    expect(False, f"top {arguments} never showed it: {look}")
    return look


def device(look):
    return look["devices"][0] if look["devices"] else {"live": 0, "peak": 0}


def check_once(folder):
    trace = os.path.join(folder, "once.trace")
    program = Program(build, trace)
    program.do(f"a 1 {8 * MIB}", f"a 2 {4 * MIB}", "f 2")
    look = look_until(lambda one: (device(one)["live"], device(one)["peak"]) == (8 * MIB, 12 * MIB), program.pid)
    expect(look["ending"] == "running" and look["simulated"], f"of a running process: {look}")
    expect([place["bytes"] for place in look["places"]] == [8 * MIB] and "steps.c" in look["places"][0]["place"], f"places: {look['places']}")
    expect(look["libraries"] == [{"library": "application", "bytes": 8 * MIB, "count": 1}], f"libraries: {look['libraries']}")
    by_trace = look_until(lambda one: device(one)["live"] == 8 * MIB, trace)
    expect(by_trace["pid"] == int(program.pid), f"by its trace: {by_trace['pid']}")
    program.end()


def check_following(folder, name, **settings):
    """Many looks at a program that works on several threads end with what the report says."""
    trace = os.path.join(folder, name + ".trace")
    program = Program(build, trace, **settings)
    program.do(f"a 1 {MIB}")
    following = subprocess.Popen([gpumem, "top", "--json", trace], stdout=subprocess.PIPE, text=True)
    looks = [json.loads(following.stdout.readline())]
    for turn in range(4):
        program.do(f"a {turn + 2} {(turn + 1) * MIB}", "t 0 20000", f"f {turn + 1}")
        looks.append(json.loads(following.stdout.readline()))
    program.end()
    looks += [json.loads(line) for line in following.stdout]
    expect(following.wait(60) == 0, f"{name}: top failed")
    expect(len(looks) >= 6, f"{name}: {len(looks)} looks")
    report = json.loads(subprocess.run([gpumem, "report", "--json", trace], capture_output=True, check=True).stdout)
    last, of_report = looks[-1], report["devices"][0]
    expect(last["ending"] == "normal" and report["complete"], f"{name}: {last['ending']}, complete {report['complete']}")
    expect((device(last)["live"], device(last)["peak"]) == (of_report["live"], of_report["peak"]),
           f"{name}: {device(last)}, the report has {of_report['live']}, {of_report['peak']}")
    if "GPUMEM_MODE" not in settings:
        expect(last["events"] == report["events"], f"{name}: {last['events']} events, the report has {report['events']}")
        expect([look["events"] for look in looks] == sorted(look["events"] for look in looks), f"{name}: events become fewer")
    expect(sum(place["bytes"] for place in last["places"]) == of_report["live"], f"{name}: places {last['places']}")


def outer_pid(inner):
    """The number here of a program whose number in its own PID namespace is `inner`."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8") as comm, open(f"/proc/{pid}/status", encoding="utf-8") as status:
                numbers = re.search(r"NSpid:\t(.*)", status.read()).group(1).split()
                if comm.read() == "top_steps\n" and len(numbers) > 1 and numbers[-1] == inner:
                    return pid
        except OSError:
            continue
    return None


def check_container(folder):
    """A process of another PID namespace, as those of containers are."""
    unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
        print("SKIP: no PID namespaces here")
        return
    trace = os.path.join(folder, "container.trace")
    program = Program(build, trace, unshare)
    program.do(f"a 1 {8 * MIB}")
    pid = outer_pid(program.pid)
    expect(pid is not None and pid != program.pid, f"container: number {program.pid} in it, {pid} here")
    look = look_until(lambda one: device(one)["live"] == 8 * MIB, pid)
    expect(look["ending"] == "running" and look["pid"] == int(program.pid), f"container: {look['ending']}, {look['pid']}")
    look = look_until(lambda one: device(one)["live"] == 8 * MIB, trace)
    expect(look["ending"] == "running", f"container, by its trace: {look['ending']}")
    os.rename(trace, trace + ".moved") # as if its file system were not ours: the file is known by its addresses
    if os.geteuid() == 0:
        look = look_until(lambda one: device(one)["live"] == 8 * MIB, pid)
        expect(look["ending"] == "running", f"container, renamed: {look['ending']}")
    program.end()
    last = json.loads(top("--once", "--json", trace + ".moved").stdout)
    expect(last["ending"] == "normal", f"container: {last['ending']}")


def check_owners(folder):
    """A process of somebody else, and several at once."""
    setpriv = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    if os.geteuid() == 0 and subprocess.run([*setpriv, "true"], capture_output=True, check=False).returncode == 0:
        with tempfile.TemporaryDirectory() as open_to_all:
            os.chmod(open_to_all, 0o755)
            copy = shutil.copy(gpumem, open_to_all)
            done = subprocess.run([*setpriv, copy, "top", "--once", "1"], capture_output=True, text=True, timeout=60, check=False)
        expect(done.returncode == 4 and "belongs to another user" in done.stderr, f"somebody else's: {done}")
    none = top("--once", "4194305") # no process can have this number
    expect(none.returncode == 4 and "there is no process 4194305" in none.stderr, f"no process: {none}")
    several = os.path.join(folder, "several")
    os.mkdir(several)
    programs = [Program(build, os.path.join(several, f"{name}.trace"), GPUMEM_RUN="a") for name in "ab"]
    for program in programs:
        program.do(f"a 1 {MIB}")
    both = [os.path.join(several, name + ".trace") for name in "ab"]
    done = top("--once", *both)
    expect(done.returncode == 2 and all(path in done.stderr for path in both), f"several: {done}")
    programs[0].end()
    look = look_until(lambda one: device(one)["live"] == MIB, *both)
    expect(look["ending"] == "running" and look["pid"] == int(programs[1].pid), f"of several the one that runs: {look['pid']}")
    programs[1].end()


def check_text():
    for name in ("pool", "hostile-text", "flight", "killed", "deep", "graphs", "nothing"):
        done = top("--once", os.path.join(source, f"tests/corpus/{name}.trace"))
        expect(done.returncode == 0, f"{name}: {done}")
        for line in done.stdout.splitlines():
            expect(len(line) <= 80, f"{name}: {len(line)} columns: {line}")
        expect(re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stdout) is None, f"{name}: control characters")
        expect(top("--once", os.path.join(source, f"tests/corpus/{name}.trace")).stdout == done.stdout, f"{name}: two looks differ")


def check_usage(folder):
    for arguments in (["--frobnicate"], ["-n", "0"]):
        done = top(*arguments)
        expect(done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout, f"top {arguments}: {done}")
    none = top("--once", str(os.getpid()))
    expect(none.returncode == 4 and "writes no trace" in none.stderr, f"a process without a trace: {none}")
    expect(top("--once", os.path.join(source, "tests/corpus/text.trace")).returncode == 3, "no trace")
    expect(top("--once", os.path.join(folder, "none.trace")).returncode == 3, "a trace that is not there")
    shown = top("--help").stdout
    expect(shown.startswith("usage") and max(map(len, shown.splitlines())) <= 80, "top --help")


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_once(folder)
        check_following(folder, "full")
        check_following(folder, "small", GPUMEM_RING="4K")
        check_following(folder, "flight", GPUMEM_MODE="flight", GPUMEM_FLIGHT_SIZE="1M")
        check_container(folder)
        check_owners(folder)
        check_text()
        check_usage(folder)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
