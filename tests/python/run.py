"""Runs stacks.py with every installed interpreter, loaded in every way.

    python run.py PROBE

Looks for interpreters in GPUMEM_PYTHONS (paths, separated by colons), among pyenv's versions, in /usr/bin and
/usr/local/bin, and in the folder of scripts/get-pythons, which it first asks for the newest. Prints one line for each;
exits with 77 (skipped) if there is none.
"""

import concurrent.futures
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
WAYS = ("cdll", "pydll", "preload")
KNOWN = range(8, 16)  # minor versions that must be read; others must be refused
CACHE = os.path.expanduser("~/.cache/gpumem")
PYTHONS = os.environ.get("GPUMEM_PYTHON_FOLDER", os.path.join(CACHE, "pythons"))
PACKAGES = os.path.join(CACHE, "python-packages")


def interpreters():
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found = [path for path in os.environ.get("GPUMEM_PYTHONS", "").split(":") if path]
    found += sorted(glob.glob(os.path.join(pyenv, "versions/3.*/bin/python")))
    for folder in ("/usr/bin", "/usr/local/bin", os.path.join(PYTHONS, "*/bin")):
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
    """Minor version, whether its structures are those of a release build, and its name; None if it is unusable."""
    code = ("import ctypes, sys; from sysconfig import get_config_var as var; print(sys.version_info[1],"
            " int(bool(var('Py_DEBUG') or sys.version_info[3] in ('alpha', 'beta'))),"
            " sys.version.split()[0] + 't' * bool(var('Py_GIL_DISABLED')))")
    status, output = run(python, ["-c", code], {}, 60)
    if status != 0:
        return None
    minor, unusual, version = output.split()
    return int(minor), unusual == "1", version


def packages(version):
    """Folder with greenlet for that version, fetched if missing; None if it is not available."""
    name = "3.%s%s" % (version.split(".")[1], "t" * version.endswith("t"))
    folder = os.path.join(PACKAGES, name)
    if not os.path.exists(os.path.join(folder, "tried")):
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", folder, "--no-deps",
                        "--only-binary", ":all:", "--implementation", "cp", "--python-version",
                        name.rstrip("t"), "--abi", "cp" + name.replace(".", ""), "greenlet"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.makedirs(folder, exist_ok=True)
        open(os.path.join(folder, "tried"), "w").close()
    return folder


PLACE_OF_LOOP = """
import ctypes
address = ctypes.cast(ctypes.pythonapi._PyEval_EvalFrameDefault, ctypes.c_void_p).value
for line in open("/proc/self/maps"):
    start, end = (int(number, 16) for number in line.split()[0].split("-"))
    if start <= address < end:
        print(line.split(None, 5)[5].strip())
"""


def output_of(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode("ascii", "replace")


def parts_of_loop(python):
    """The evaluation loop's code in the probe's form, from the machine code itself: the function by its symbol, and
    each part that the compiler moved away. Such a part is the target of a jump into another entry of the unwind table,
    but not to its start (that would be a tail call)."""
    file = run(python, ["-c", PLACE_OF_LOOP], {}, 60)[1].strip()
    symbol = re.search(r"^.*?: ([0-9a-f]+) +(\d+) .* _PyEval_EvalFrameDefault$",
                       output_of("readelf", "-W", "--dyn-syms", file), re.M)
    start = int(symbol[1], 16)
    end = start + int(symbol[2])
    code = output_of("objdump", "-d", "--no-show-raw-insn", "--start-address=%d" % start,
                     "--stop-address=%d" % end, file)
    jumps = {int(target, 16) for target in
             re.findall(r"\t(?:j\w+|b|b\.\w+|[ct]bn?z) +(?:\S+, *)*([0-9a-f]+) <", code)}
    table = output_of("readelf", "-W", "--debug-dump=frames", file)
    parts = {(start, end)}
    for first, last in re.findall(r"pc=([0-9a-f]+)\.\.([0-9a-f]+)", table):
        first, last = int(first, 16), int(last, 16)
        if any(first < target < last and not start <= target < end for target in jumps):
            parts.add((first, last))
    return " ".join("%d-%d" % (first - start, last - start) for first, last in sorted(parts))


def compare(python, probe, version, ways):
    """Stacks compared, how many were wrong, what was left out, and the messages."""
    total, mistakes, skipped, wrong = 0, 0, set(), []
    environment = {"PROBE_TELL_THE_END": "1", "PROBE_LOOP": parts_of_loop(python),
                   "PROBE_PACKAGES": packages(version), "PYTHON_GIL": "0" if version[-1] == "t" else ""}
    for way in ways:
        environment["LD_PRELOAD"] = probe if way == "preload" else ""
        status, output = run(python, [os.path.join(HERE, "stacks.py"), probe, way], environment)
        counts = re.search(r"^(\d+) stacks, (\d+) wrong$", output, re.M)
        skipped.update(re.findall("^SKIP (.*)$", output, re.M))
        if status != 0 or not counts or "after finalisation: 0\n" not in output:
            wrong.append("%s, exit %d:\n%s" % (way, status, output[-4000:]))
        if counts:
            total += int(counts[1])
            mistakes += int(counts[2])
    return total, mistakes, skipped, wrong


def end_with_daemons(python, probe):
    """The end of the interpreter must not hurt threads that are in native code."""
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
        # glibc overwrites freed memory, so reading a freed thread state surely gives wrong results.
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


def examine(python, about, probe, ways):
    """A line about that interpreter, and its problems."""
    minor, unusual, version = about
    if unusual or minor not in KNOWN:
        state, wrong = refused(python, probe)
        return "CPython %s: refused (%s)" % (version, state), wrong
    total, mistakes, skipped, wrong = compare(python, probe, version, ways)
    wrong += end_with_daemons(python, probe)
    left_out = "".join("; SKIP " + text for text in sorted(skipped))
    return "CPython %s: %d stacks, %d wrong (%s%s)" % (version, total, mistakes, python, left_out), wrong


def main():
    probe = os.path.abspath(sys.argv[1])
    subprocess.run([os.path.join(HERE, "../../scripts/get-pythons")])
    abouts = [(python, describe(python)) for python in interpreters()]
    for python, about in abouts:
        if about is None:
            print("SKIP %s: does not run, or has no ctypes" % python)
    found = {(about[2], os.path.dirname(os.path.realpath(python))): (python, about)
             for python, about in abouts if about}.values()
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = []
        for python, about in found:
            # Each minor version and build once in every way; its other releases have the same layout.
            first = about[0], about[2][-1] == "t"
            ways = WAYS if first not in [done for done, _ in runs] else WAYS[:1]
            runs.append((first, pool.submit(examine, python, about, probe, ways)))
        for _, one in runs:
            line, wrong = one.result()
            print("\n".join([line] + wrong), flush=True)
            failed += bool(wrong)
    if not found:
        print("SKIP: no interpreter")
        return 77
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
