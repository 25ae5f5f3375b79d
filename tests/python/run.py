"""Runs stacks.py with every interpreter that is here, loaded in every way.

    python run.py PROBE

Looks for interpreters in GPUMEM_PYTHONS (paths, separated by colons), among pyenv's versions and in
/usr/bin and /usr/local/bin. Prints one line for each; exits with 77 (skipped) when there is none.
"""

import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
WAYS = ("cdll", "pydll", "preload")
KNOWN = range(8, 14)  # minor versions that must be read; others must be refused


def interpreters():
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found = [path for path in os.environ.get("GPUMEM_PYTHONS", "").split(":") if path]
    found += sorted(glob.glob(os.path.join(pyenv, "versions/3.*/bin/python")))
    for folder in ("/usr/bin", "/usr/local/bin"):
        found += sorted(glob.glob(folder + "/python3.[0-9]*"))
    real = {}
    for path in found:
        if os.access(path, os.X_OK) and not path.endswith("-config"):
            real.setdefault(os.path.realpath(path), path)
    return list(real.values())


def run(python, arguments, environment, limit=600):
    done = subprocess.run([python] + arguments, env=dict(os.environ, **environment), timeout=limit,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def describe(python):
    """Minor version and whether its structures are those of a release build; None if not usable."""
    code = ("import ctypes, sys; from sysconfig import get_config_var as var; print(sys.version_info[1],"
            " int(bool(var('Py_DEBUG') or var('Py_GIL_DISABLED'))), sys.version.split()[0])")
    status, output = run(python, ["-c", code], {}, 60)
    if status != 0:
        return None
    minor, unusual, version = output.split()
    return int(minor), unusual == "1", version


def compare(python, probe):
    """Stacks compared, how many were wrong, and the texts about it."""
    total, mistakes, wrong = 0, 0, []
    for way in WAYS:
        environment = {"PROBE_TELL_THE_END": "1"}
        if way == "preload":
            environment["LD_PRELOAD"] = probe
        status, output = run(python, [os.path.join(HERE, "stacks.py"), probe, way], environment)
        counts = re.search(r"^(\d+) stacks, (\d+) wrong$", output, re.M)
        if status != 0 or not counts or "after finalisation: 0\n" not in output:
            wrong.append("%s, exit %d:\n%s" % (way, status, output[-4000:]))
        if counts:
            total += int(counts[1])
            mistakes += int(counts[2])
    return total, mistakes, wrong


def end_with_daemons(python, probe):
    """Threads that are in native code while the interpreter goes away must not be hurt by it."""
    code = ("import ctypes, threading, time\n"
            "probe = ctypes.CDLL(%r)\n"
            "def work(n):\n"
            "    return work(n - 1) if n else probe.probe_walk_for_ever()\n"
            "for _ in range(4):\n"
            "    threading.Thread(target=work, args=(10,), daemon=True).start()\n"
            "class Slow:\n"
            "    def __del__(self, sleep=time.sleep):\n"
            "        sleep(0.02)\n"
            "slow = Slow()\n"
            "time.sleep(0.02)\n" % probe)
    for _ in range(5):
        # glibc overwrites what is freed: a freed thread state that is read leads astray for sure.
        status, output = run(python, ["-c", code], {"MALLOC_PERTURB_": "85"}, 60)
        if status != 0:
            return ["daemon threads at the end, exit %d: %s" % (status, output[-2000:])]
    return []


def refused(python, probe):
    code = ("import ctypes; probe = ctypes.CDLL(%r); probe.probe_state.restype = ctypes.c_char_p\n"
            "frames = ctypes.create_string_buffer(1 << 16)\n"
            "print(probe.probe_walk(frames, 256, 0), probe.probe_state().decode())" % probe)
    status, output = run(python, ["-c", code], {}, 60)
    state = output.strip()[2:]
    if status == 0 and output.startswith("0 ") and not state.startswith("CPython 3.") or (
            state.endswith("is not known")):
        return state, []
    return state, ["exit %d: %s" % (status, output)]


def main():
    probe = os.path.abspath(sys.argv[1])
    failed = ran = 0
    for python in interpreters():
        about = describe(python)
        if about is None:
            print("SKIP %s: does not run, or has no ctypes" % python)
            continue
        minor, unusual, version = about
        ran += 1
        if unusual or minor not in KNOWN:
            state, wrong = refused(python, probe)
            print("CPython %s: refused (%s)" % (version, state), flush=True)
        else:
            total, mistakes, wrong = compare(python, probe)
            wrong += end_with_daemons(python, probe)
            print("CPython %s: %d stacks, %d wrong (%s)" % (version, total, mistakes, python),
                  flush=True)
        for text in wrong:
            print(text)
        failed += bool(wrong)
    if not ran:
        print("SKIP: no interpreter")
        return 77
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
