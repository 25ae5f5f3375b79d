"""Dry runs as child processes: several at a time, each kept for the next time it is asked for, none left behind.

A run is kept in the user's cache folder by all that decides it, as far as that can be told: the command with the
content of each file that it names, the Python files beside it, the packages of its interpreter, the environment, the
device, and gpumem itself.
"""
import concurrent.futures
import glob
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import zlib

from forecast import largest, unpacked

MARK = "GPUMEM_FIT_RUN"
# They differ from shell to shell and decide nothing about memory.
PASSING = {MARK, "_", "SHLVL", "PWD", "OLDPWD", "TERM", "COLUMNS", "LINES", "LS_COLORS", "WINDOWID", "DISPLAY",
           "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "SSH_AUTH_SOCK", "TMUX", "TMUX_PANE", "STY", "INVOCATION_ID",
           "JOURNAL_STREAM", "XDG_SESSION_ID", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "TERM_SESSION_ID",
           "GPUMEM_DRY_REMEDY_TOLD", "GPUMEM_DRY_COMPILED"}
FILE_MOST = 16 << 20   # bytes of a file whose content counts; of a larger one size and time do
FILES_MOST = 5000      # Python files looked at beside a program
KEPT_MOST = 4096       # answers that are kept
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
UNLIMITED = 1 << 40    # memory of a device on which a run tells its whole need: GM_DRY_MEMORY_MOST of gpumem dry-run


class Result:
    """What one dry run said. `failed`: neither fits nor does not, by no fault of the memory."""

    def __init__(self, dry, seconds, is_kept=False, told=None):
        self.dry, self.seconds, self.is_kept, self.told = dry, seconds, is_kept, told or []
        self.verdict, self.peak, self.most = dry["verdict"], dry["peak"], dry["most"]
        self.capacity, self.parts = dry["capacity"], dry["parts"]
        self.trace = None
        self.recordings = []
        self.of = None # the card that was run, where it is another

    @property
    def has_failed(self):
        return self.verdict == "undecided" and (self.dry["reason"] is not None or self.dry["command_exit"] != 0)

    def bytes_of(self, *names):
        return sum(part["bytes"] for part in self.parts if part["name"] in names)

    @property
    def without_cache(self):
        """What no allocator can give back."""
        return self.peak - self.bytes_of("PyTorch's cache")

    def beside_pytorch(self):
        """What is not in the pool of PyTorch's allocator, at most."""
        return sum(part["most"] for part in self.parts if part["name"] not in
                   ("PyTorch's tensors", "PyTorch's cache", "cuDNN's workspaces"))

    def why(self):
        """The reason of a run that failed, in one line."""
        raised = self.dry["raised"]
        if self.dry["reason"]:
            return self.dry["reason"]
        if raised:
            return f"{os.path.basename(raised['file'])}:{raised['line']}: {raised['exception']}"
        if self.dry["command_exit"]:
            return f"the command ended with exit code {self.dry['command_exit']}"
        if self.dry["endless"] and self.dry["endless"]["grows"]:
            return "a loop takes more and more"
        return "cuDNN, or addresses, decide"


# ---- processes ------------------------------------------------------------------------------------------

def marked(mark):
    """(pid, dry run's scratch folder or None) of all living processes of a search."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                variables = file.read().split(b"\0")
        except OSError:
            continue
        if f"{MARK}={mark}".encode() in variables:
            status = [one.partition(b"=")[2] for one in variables if one.startswith(b"GPUMEM_DRY_STATUS=")]
            found.append((int(entry), os.path.dirname(os.fsdecode(status[0])) if status else None))
    return found


def stop_all(mark):
    """Ends all processes that inherited the mark, gently first, and removes what dry runs left of their own."""
    scratch = set()
    begin = time.monotonic()
    while time.monotonic() < begin + 10:
        living = marked(mark)
        scratch |= {folder for _, folder in living if folder}
        if not living:
            break
        is_patient = time.monotonic() < begin + 2
        for pid, _ in living:
            try:
                os.kill(pid, signal.SIGTERM if is_patient else signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.1)
    for folder in scratch:
        if os.path.basename(folder).startswith("gpumem-dry-run."):
            shutil.rmtree(folder, ignore_errors=True)


def keep_watch(mark, scratch):
    """A process that waits for the end of this one, however it ends, and then ends what it has started."""
    reading, writing = os.pipe()
    os.set_inheritable(writing, False)
    if os.fork():
        os.close(reading)
        return writing
    os.setsid()
    os.close(writing)
    for name in ENDS:
        signal.signal(name, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    try:
        os.read(reading, 1)
        stop_all(mark)
        shutil.rmtree(scratch, ignore_errors=True)
    finally:
        os._exit(0)


# ---- what decides a run ---------------------------------------------------------------------------------

def stamp(path):
    try:
        status = os.stat(path)
        return [path, status.st_size, status.st_mtime_ns]
    except OSError:
        return [path]


def content(path):
    try:
        if os.path.isfile(path) and os.path.getsize(path) <= FILE_MOST:
            with open(path, "rb") as file:
                return [path, hashlib.sha256(file.read()).hexdigest()]
    except OSError:
        pass
    return stamp(path)


def python_files(folder):
    """Those below a folder, as they are imported from there."""
    count = 0
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[0] != "." and name not in
                            ("__pycache__", "site-packages", "node_modules"))
        for name in sorted(names):
            if name.endswith(".py"):
                count += 1
                if count > FILES_MOST:
                    return
                yield os.path.join(root, name)


def files_of(command):
    """What a command is made of, beyond its words."""
    facts = []
    program = shutil.which(command[0]) or command[0]
    facts.append(stamp(os.path.realpath(program)))
    for place in {os.path.dirname(program), os.path.dirname(os.path.realpath(program))}:
        for packages in sorted(glob.glob(os.path.join(place, "../lib/python3*/site-packages"))):
            facts.append(stamp(packages))
    folders = set()
    for part in command[1:]:
        path = part.partition("=")[2] if part.startswith("-") and "=" in part else part
        if os.path.isfile(path):
            facts.append(content(path))
            if path.endswith(".py"):
                folders.add(os.path.dirname(os.path.abspath(path)))
    if "-m" in command:
        folders.add(os.getcwd())
    for folder in sorted(folders):
        facts.extend(stamp(path) for path in python_files(folder))
    return facts


class Runner:
    """Runs dry. `say`: called with a line of progress."""

    def __init__(self, gpumem, libraries, options, say):
        self.gpumem, self.options, self.say = gpumem, options, say
        self.mark = f"{os.getpid()}.{time.time_ns()}"
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDS) # none ends us between: nobody would remove the folder
        self.scratch = tempfile.mkdtemp(prefix="gpumem-fit.")
        self.watch = keep_watch(self.mark, self.scratch)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.runs = self.kept = 0
        self.seconds = 0.0
        self.begin = time.monotonic()
        self.is_stopped = False
        self.records = False # whether results have recordings
        self.of_gpumem = [stamp(gpumem)] + [stamp(path) for path in sorted(
            glob.glob(libraries + "/*") + glob.glob(libraries + "/python/*.py"))]
        cache = os.environ.get("XDG_CACHE_HOME", "")
        home = cache if cache.startswith("/") else os.path.join(os.environ.get("HOME", ""), ".cache")
        self.folder = os.path.join(home, "gpumem", "fit") if home.startswith("/") and not options.fresh else None
        self.threads = concurrent.futures.ThreadPoolExecutor(options.jobs or os.cpu_count() or 1)

    # ---- answers that are kept ----

    def key(self, arguments, command, environment, device):
        facts = {"arguments": arguments, "command": command, "files": files_of(command), "folder": os.getcwd(),
                 "environment": sorted((name, value) for name, value in environment.items() if name not in PASSING),
                 "device": content(device), "gpumem": self.of_gpumem}
        return hashlib.sha256(json.dumps(facts).encode("utf-8", "surrogateescape")).hexdigest()

    def look_up(self, key):
        try:
            with open(os.path.join(self.folder, key + ".json"), encoding="utf-8") as file:
                found = json.load(file)
            result = Result(found["dry_run"], found["seconds"], True, found["told"])
            result.recordings = [unpacked(one) for one in found["recordings"]]
            return result
        except (OSError, ValueError, KeyError, TypeError, zlib.error):
            return None

    def put_away(self, key, result):
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            path = os.path.join(self.folder, key + ".json")
            with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
                json.dump({"dry_run": result.dry, "seconds": result.seconds, "told": result.told,
                           "recordings": [one.packed() for one in result.recordings]}, file)
            os.rename(f"{path}.{os.getpid()}", path)
            kept = sorted(glob.glob(self.folder + "/*.json"), key=lambda name: stamp(name)[-1:])
            for old in kept[:max(0, len(kept) - KEPT_MOST)]:
                os.unlink(old)
        except OSError:
            pass

    # ---- runs ----

    def jobs(self):
        """How many at a time: by cores, and by memory as far as the first runs have shown what one takes."""
        if self.options.jobs:
            return self.options.jobs
        most = max(1, (os.cpu_count() or 1) // 2)
        each = max(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10, 1 << 30)
        try:
            with open("/proc/meminfo", encoding="ascii") as file:
                free = next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable"))
            most = min(most, max(1, free // each))
        except (OSError, StopIteration, ValueError):
            pass
        return most

    def arguments(self, card, memory, trace):
        arguments = ["dry-run", "--json", "--no-keep", "--no-whole", "--device", card.path, "--devices", str(card.count)]
        if memory:
            arguments += ["--memory", str(memory)]
        if self.options.max_steps != "0":
            arguments += ["--max-steps", self.options.max_steps]
        arguments += [option for name, option in (("once", "--once"), ("values", "--values")) if self.options[name]]
        return arguments + (["-o", trace] if trace else [])

    def run(self, command, environment, card, memory=None, keeps_trace=False):
        """One dry run, from the cache where it is there; a trace is kept until the end of this process."""
        command = [part.replace("{N}", str(card.count)) for part in command]
        key = self.key(self.arguments(card, memory, None), command, environment, card.path) if self.folder else None
        result = self.look_up(key) if key and not keeps_trace else None
        if result:
            self.kept += 1
            return result
        folder = tempfile.mkdtemp(dir=self.scratch)
        told, again = os.path.join(folder, "told"), os.path.join(folder, "again")
        compiled = os.path.join(folder, "compiled")
        os.mkdir(again)
        os.mkdir(compiled)
        arguments = self.arguments(card, memory, folder + "/%e.%p.trace" if keeps_trace or self.records else None)
        environment = dict(environment, **{MARK: self.mark, "GPUMEM_DRY_REMEDY_TOLD": told, "GPUMEM_DRY_AGAIN": again,
                                           "GPUMEM_DRY_COMPILED": compiled})
        begin = time.monotonic()
        with open(os.path.join(folder, "errors"), "w+b") as errors:
            done = subprocess.run([self.gpumem, *arguments, "--", *command], env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=errors, check=False, start_new_session=True)
            errors.seek(max(0, errors.tell() - 4096))
            last = errors.read().decode("utf-8", "replace").strip().splitlines()
        seconds = time.monotonic() - begin
        try:
            dry = json.loads(done.stdout)["dry_run"]
        except (ValueError, KeyError):
            dry = nothing(done.returncode, last[-1] if last else "", card, memory)
        result = Result(dry, seconds, False, read_told(told))
        if self.is_stopped:
            return None
        self.runs += 1
        self.seconds += seconds
        traces = sorted(glob.glob(folder + "/*.trace"))
        if self.records and result.bytes_of("PyTorch's tensors") and not result.has_failed and not dry["failed_at"]:
            found = [largest(self.gpumem, some) for some in (traces, glob.glob(again + "/*.trace")) if some]
            # The second ended by a refusal where it has fewer requests: it says nothing of the rest.
            is_whole = all(found) and len(found[-1].sizes) >= len(found[0].sizes)
            result.recordings = found if is_whole else []
        if key and dry["reason"] is None:
            self.put_away(key, result)
        if keeps_trace:
            result.trace = traces
        else:
            shutil.rmtree(folder, ignore_errors=True)
        return result

    def run_all(self, requests, take):
        """Runs [(label, arguments of run)], as many at a time as there is room for. `take`: called with the number of a
        request and its result as soon as there is one."""
        waiting, running = list(enumerate(requests)), {}
        while waiting or running:
            while waiting and len(running) < self.jobs():
                number, (label, arguments) = waiting.pop(0)
                self.say(f"run {self.runs + self.kept + len(running) + 1}: {label}")
                running[self.threads.submit(self.run, *arguments)] = number
            done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                take(running.pop(future), future.result())

    def stop(self):
        self.is_stopped = True
        stop_all(self.mark)

    def end(self):
        self.stop()
        self.threads.shutdown(wait=True)
        shutil.rmtree(self.scratch, ignore_errors=True)
        os.close(self.watch)


def read_told(path):
    """What the remedies said of themselves: one JSON object a line."""
    told = []
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                told.append(json.loads(line))
    except (OSError, ValueError):
        pass
    return told


def nothing(code, error, card, memory):
    """The answer of a dry run that gave none."""
    return {"verdict": "undecided", "reason": error.replace("gpumem: ", "") or f"gpumem ended with {code}", "peak": 0,
            "most": 0, "capacity": memory or card.memory, "device": card.name, "command_exit": code, "raised": None,
            "values": False, "ended_after_steps": None, "endless": None, "parts": [], "uncertain": [],
            "failed_at": None}
