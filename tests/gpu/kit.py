"""Machinery of the GPU check kit: finds files and tools, runs a program both ways, prints one line per check.

A check is a function of a Kit that returns its figures in a sentence, raises Skip if something that it needs is
missing, or raises Failed. The kit ends it when its seconds are over, whatever it waits for. Nothing here or in a check
changes a setting of the GPU.
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from report_json import with_stacks  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PROGRAMS = os.path.join(HERE, "programs")

# Prints what a process finds on this machine. It runs in a separate process, because the kit itself must not keep a
# context.
PROBE = """
import ctypes, json, sys
try:
    driver = ctypes.CDLL("libcuda.so.1")
except OSError:
    sys.exit("there is no CUDA driver (libcuda.so.1)")
result = driver.cuInit(0)
if result != 0:
    sys.exit(f"the driver finds no usable GPU (cuInit answered {result})")
count, version, device, memory = (ctypes.c_int() for _ in range(4))
memory = ctypes.c_size_t()
name = ctypes.create_string_buffer(256)
driver.cuDeviceGetCount(ctypes.byref(count))
if count.value == 0:
    sys.exit("the driver finds no GPU")
driver.cuDriverGetVersion(ctypes.byref(version))
driver.cuDeviceGet(ctypes.byref(device), 0)
driver.cuDeviceGetName(name, 256, device)
driver.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
print(json.dumps({"count": count.value, "cuda": version.value, "name": name.value.decode(), "memory": memory.value,
                  "simulated": hasattr(driver, "gpumem_simulated_driver"),
                  "path": next(line.split()[-1] for line in open("/proc/self/maps") if "libcuda.so" in line)}))
"""


class Skip(Exception):
    """Something that the check needs is missing."""


class Failed(Exception):
    """A promise that was broken."""


def expect(condition, text):
    if not condition:
        raise Failed(text)


class Run:
    """The results of one run of a program."""

    def __init__(self, done, folder):
        self.code = done.returncode
        self.output, self.errors = done.stdout, done.stderr
        self.traces = sorted(glob.glob(os.path.join(folder, "*.trace")))

    def compared(self):
        return [line for line in self.output.splitlines() if not line.startswith(("NOTE", "FIGURES"))]

    def notes(self, name):
        return [json.loads(text) for text in re.findall(rf"^NOTE {name} (.*)$", self.output, re.MULTILINE)]

    def note(self, name):
        found = self.notes(name)
        expect(found, f"the program did not say {name}: {self.output[-300:]} {self.errors[-300:]}")
        return found[-1]


class Kit:
    def __init__(self, gpumem, preload, include, simulator, python):
        self.gpumem, self.preload, self.include, self.python = gpumem, preload, include, python
        self.simulator = simulator  # the build folder, or None: a GPU
        self.folder = tempfile.mkdtemp(prefix="gpu-check-")
        self.environment = dict(os.environ, LC_ALL="C.UTF-8")
        if simulator:
            self.environment["LD_LIBRARY_PATH"] = simulator + "/sim"
        self.deadline = None  # of the running check
        self.gpu = None  # the output of PROBE
        self.no_gpu = "there is no GPU"
        self.packages = {}

    # ---- running ---------------------------------------------------------------------------------

    def run(self, command, preload=False, environment=None, answer=None):
        """One run in its own folder; the kit ends it with all its children when the check's time is over."""
        folder = tempfile.mkdtemp(dir=self.folder)
        full = dict(self.environment, **(environment or {}))
        if preload:
            full["LD_PRELOAD"] = ":".join(filter(None, [self.preload, full.get("LD_PRELOAD")]))
        process = subprocess.Popen(command, cwd=folder, env=full, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
        left = max(1, self.deadline - time.monotonic())
        try:
            if answer:  # the program may wait for a line that never comes
                watchdog = threading.Timer(left, os.killpg, (process.pid, signal.SIGKILL))
                watchdog.start()
                try:
                    return answer(process, folder)
                finally:
                    watchdog.cancel()
            output, errors = process.communicate(timeout=left)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"not done in time: {' '.join(command)[:120]}") from late
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        return Run(subprocess.CompletedProcess(command, process.returncode, output, errors), folder)

    def both(self, command, environment=None):
        """The recorded run, after one without the preload that must print the same."""
        bare = self.run(command, environment=environment)
        expect(bare.code == 0, f"without gpumem: exit code {bare.code}: {(bare.output + bare.errors)[-400:]}")
        recorded = self.run(command, preload=True, environment=environment)
        expect(recorded.code == 0, f"exit code {recorded.code}: {(recorded.output + recorded.errors)[-400:]}")
        differing = [pair for pair in zip(bare.compared(), recorded.compared()) if pair[0] != pair[1]]
        expect(bare.compared() == recorded.compared(), f"another output with gpumem: {differing[:2]}")
        expect(recorded.traces, "no trace")
        return recorded

    def report(self, trace):
        done = subprocess.run([self.gpumem, "report", "--json", trace], capture_output=True, text=True, timeout=300,
                              check=False)
        expect(done.returncode == 0, f"gpumem report: exit code {done.returncode}: {done.stderr[-300:]}")
        report = with_stacks(json.loads(done.stdout))
        expect(report["complete"], f"the trace is not complete: {report['ending']}, {report['lost']} lost")
        expect(report["simulated"] == bool(self.simulator), f"simulated: {report['simulated']}")
        expect(not report["bypassed"], "the driver was loaded and no call to it was seen")
        for odd in ("malformed", "lost_frees", "unknown_frees"):
            expect(report[odd] == 0, f"{odd}: {report[odd]}")
        return report

    # ---- what is installed -----------------------------------------------------------------------

    def probe(self):
        """Whether there is a GPU, and what the interpreter of the frameworks has installed."""
        done = subprocess.run([sys.executable, "-c", PROBE], env=self.environment, capture_output=True, text=True,
                              timeout=120, check=False)
        if done.returncode == 0:
            found = json.loads(done.stdout)
            if found["simulated"] == bool(self.simulator):
                self.gpu = found
            else:
                self.no_gpu = "the driver found is gpumem's simulated one"
        else:
            self.no_gpu = done.stderr.strip().splitlines()[-1]
        names = ["torch", "jax", "tensorflow", "cupy", "numba", "triton"]
        text = ("import importlib.metadata as m, importlib.util as u, json\n"
                "version = lambda n: next((d.version for d in m.distributions() if (d.metadata['Name'] or '').lower()"
                " .replace('_', '-') in (n, n + '-cuda11x', n + '-cuda12x', n + '-cuda13x')), '?')\n"
                f"print(json.dumps({{n: version(n) for n in {names!r} if u.find_spec(n)}}))")
        done = subprocess.run([self.python, "-c", text], capture_output=True, text=True, timeout=120, check=False)
        self.packages = json.loads(done.stdout) if done.returncode == 0 else {}

    def need_gpu(self):
        if not self.gpu:
            raise Skip(self.no_gpu)

    def need_hardware(self, why):
        """Skips what the simulated device cannot do."""
        self.need_gpu()
        if self.simulator:
            raise Skip(why)

    def need_package(self, name):
        if name not in self.packages:
            raise Skip(f"{name} is not installed for {self.python}")

    def tool(self, name):
        path = shutil.which(name) or next(iter(glob.glob(f"/usr/local/cuda*/bin/{name}")), None)
        if not path:
            raise Skip(f"{name} is not installed")
        return path

    def compile(self, name, libraries, include=None, folder=PROGRAMS, flags=()):
        """A program of `folder`, linked with the libraries by their paths."""
        compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
        if not compiler:
            raise Skip("no C compiler")
        include = include or self.include
        if not include:
            raise Skip("no CUDA headers (CUDA_HOME, or a build folder)")
        program = tempfile.mktemp(prefix=name + "-", dir=self.folder)
        source = os.path.join(folder, name + ".c")
        # -O0: the line of a call is the line of its return address.
        command = [compiler, "-g", "-O0", *flags, "-D_GNU_SOURCE", "-I", include, source, "-o", program, *libraries,
                   "-ldl", "-lpthread", "-lrt"]
        if self.simulator:
            command.append(f"-Wl,-rpath-link,{self.simulator}/sim")
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0:
            raise Skip(f"{name}.c does not compile against {include}: {done.stderr.strip().splitlines()[0][:200]}")
        return program

    def driver(self):
        return os.path.realpath(self.gpu["path"])

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


# ---- checks ----------------------------------------------------------------------------------------

CHECKS = []


def check(seconds):
    def add(function):
        CHECKS.append((function.__name__.replace("_", " "), seconds, function))
        return function
    return add


def run_checks(kit, wanted, budget):
    """Yields (name, verdict, figures) of each check, in the order of the source."""
    end = time.monotonic() + budget
    for name, seconds, function in CHECKS:
        if wanted and not any(name.startswith(start) for start in wanted):
            continue
        kit.deadline = min(end, time.monotonic() + seconds)
        try:
            kit.need_gpu()
            if time.monotonic() > end - 5:
                raise Skip(f"the {budget} seconds for all checks are over")
            yield name, "PASS", function(kit)
        except Skip as missing:
            yield name, "SKIP", str(missing)
        except Failed as broken:
            yield name, "FAIL", " ".join(str(broken).split())
        except Exception as error:  # an error of the check itself: the others go on
            yield name, "FAIL", f"{type(error).__name__}: {' '.join(str(error).split())}"
