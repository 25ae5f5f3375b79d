"""The functions of gpumem.h by which a program asks the recorder, in each mode: inside.py BUILD CASE..."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(sys.argv[1])
PROGRAM = BUILD / "tests" / "inside"
GPUMEM = BUILD / "report" / "gpumem"
LIBRARY = BUILD / "preload" / "libgpumem.so"
SIMULATOR = BUILD / "sim"

MODES = {"full": {}, "flight": {"GPUMEM_MODE": "flight"}, "small_ring": {"GPUMEM_RING": "4K"}}


def fail(text):
    sys.exit(f"FAILED: {text}")


def run(case, folder, preload=True, program=PROGRAM, **settings):
    environment = {**os.environ, "LD_LIBRARY_PATH": str(SIMULATOR),
                   "GPUMEM_OUTPUT": str(folder / "%p.trace"), **settings}
    if preload:
        environment["LD_PRELOAD"] = str(LIBRARY)
    done = subprocess.run([program, case], env=environment, capture_output=True, text=True, check=False)
    if done.returncode or done.stderr:
        fail(f"{case} {settings}: {done.returncode}\n{done.stderr}")


def report(folder):
    traces = sorted(folder.glob("*.trace"))
    if len(traces) != 1:
        fail(f"{len(traces)} traces")
    text = subprocess.run([GPUMEM, "report", "--json", traces[0]], capture_output=True, text=True, check=True).stdout
    return traces[0], json.loads(text)


def each_mode(case, look=None):
    for name, settings in MODES.items():
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            run(case, folder, **settings)
            if look:
                look(name, folder)


def leaked(model, leak_class):
    return sum(each["bytes"] for each in model["leaks"] if each["class"] == leak_class)


def look_ignored(leak, ignored):
    """The trace says the same as the process was told, and the gate agrees."""
    def look(mode, folder):
        trace, model = report(folder)
        found = leaked(model, "leak"), leaked(model, "ignored")
        if found != (leak, ignored):
            fail(f"{mode}: leaked and ignored {found}, not {(leak, ignored)}")
        for limit, code in ((leak, 0), (leak - 1, 1)):
            done = subprocess.run([GPUMEM, "check", "--max-leak", str(limit), trace], capture_output=True, text=True,
                                  check=False)
            if done.returncode != code:
                fail(f"{mode}: check --max-leak {limit}: {done.returncode}\n{done.stdout}{done.stderr}")
    return look


def absent():
    with tempfile.TemporaryDirectory() as scratch:
        run("absent", pathlib.Path(scratch), preload=False)


def no_pie():
    """Code of fixed addresses asks the dynamic linker."""
    with tempfile.TemporaryDirectory() as scratch:
        run("absent", pathlib.Path(scratch), preload=False, program=BUILD / "tests" / "inside_no_pie")
        run("leaks", pathlib.Path(scratch), program=BUILD / "tests" / "inside_no_pie")


def off():
    with tempfile.TemporaryDirectory() as scratch:
        run("off", pathlib.Path(scratch) / "no such folder")


def lost():
    with tempfile.TemporaryDirectory() as scratch:
        run("lost", pathlib.Path(scratch), GPUMEM_ON_FULL="drop", GPUMEM_RING="4K")


def secure():
    """With the set-group-ID bit of another group the process is in secure mode."""
    groups = [group for group in ([65534] if os.geteuid() == 0 else os.getgroups()) if group != os.getegid()]
    with tempfile.TemporaryDirectory() as scratch:
        program = pathlib.Path(scratch) / "inside"
        shutil.copy(PROGRAM, program)
        os.chmod(scratch, 0o755)
        if not groups or os.statvfs(scratch).f_flag & os.ST_NOSUID:
            print("inside: SKIP: no other group, or a file system without set-group-ID")
            return
        os.chown(program, -1, groups[0])
        program.chmod(0o2755)
        run("secure", pathlib.Path(scratch), program=program)
        if list(pathlib.Path(scratch).glob("*.trace")):
            fail("a trace of a process in secure mode")


SPECIAL = {"secure": secure, "absent": absent, "off": off, "no_pie": no_pie, "lost": lost}
LOOKS = {"ignored": look_ignored(65536, 1 << 20), "ignored_ring": look_ignored(20 * 8192, 4096)}

for chosen in sys.argv[2:]:
    if chosen in SPECIAL:
        SPECIAL[chosen]()
    else:
        each_mode(chosen, LOOKS.get(chosen))
