"""Runs probe.c on a library and compares what it prints. Counts what was compared, and every difference."""
import os
import subprocess
import tempfile

LIMIT = 120  # seconds of one probe
SHOWN = 5  # differences of one comparison that are printed


class Tally:
    """What was compared and what differed."""

    def __init__(self):
        self.differences = 0

    def differ(self, what, lines):
        """Reports differences, if there are any."""
        lines = list(lines)
        self.differences += len(lines)
        for line in lines[:SHOWN]:
            print(f"FAIL  {what}: {line}", flush=True)
        if len(lines) > SHOWN:
            print(f"FAIL  {what}: and {len(lines) - SHOWN} more", flush=True)

    def same(self, what, wanted, found):
        """Compares two lists of lines, each of which names what it is about."""
        there = set(wanted), set(found)
        self.differ(what, [f"wanted {line[:300]}" for line in wanted if line not in there[1]] +
                    [f"found {line[:300]}" for line in found if line not in there[0]])


class Prober:
    """Runs a probe with a list of names, where nothing but the library is loaded."""

    def __init__(self, probe, names):
        self.probe = probe
        self.list = list(names)
        self.names = tempfile.NamedTemporaryFile("w", suffix=".names", encoding="utf-8")
        self.names.write("".join(f"{name}\n" for name in self.list))
        self.names.flush()

    def run(self, what, library, *init, preload=None, paths=(), **environment):
        """The lines that `probe what library` prints; libraries that it needs are in `paths`."""
        with tempfile.TemporaryDirectory() as traces:
            clean = {name: value for name, value in os.environ.items()
                     if not name.startswith(("GPUMEM_", "CUDA_", "LD_"))}
            clean.update(environment, LC_ALL="C", LD_LIBRARY_PATH=":".join([*paths, os.path.dirname(library)]))
            if preload:
                clean.update(LD_PRELOAD=preload, GPUMEM_OUTPUT=traces + "/%p.trace")
            done = subprocess.run(["timeout", str(LIMIT), self.probe, what, library, self.names.name, *init], env=clean,
                                  cwd=traces, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            lines = done.stdout.splitlines()
            if done.returncode:
                lines.append(f"exit code {done.returncode}: {done.stderr.strip()[-300:]}")
            return lines


def exported(lines):
    return {line.split()[1] for line in lines if line.startswith("exported ")}


def answered(lines, abi):
    """The answers of one ABI of cuGetProcAddress."""
    return [line for line in lines if f" v{abi} flags " in line]


def questions(lines):
    """How many questions these answers are of."""
    return sum(" flags " in line for line in lines)
