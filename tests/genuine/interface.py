"""What NVIDIA's drivers export and answer, as `make test-genuine` has seen it, and the answers that follow.

interface.txt has a line for each exported symbol: SYMBOL DRIVER SINCE

DRIVER is the version of CUDA of the oldest driver examined that exports it. SINCE is the version from which
cuGetProcAddress answers with it, "-" if never.
"""
import os
import re

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "interface.txt")
PER_THREAD = re.compile(r"_pt[sd][sz]$")
# Questions beside the names of functions.
ODD_NAMES = ["", "cu", "cuNoSuchFunction", "CUMEMALLOC", "cuMemAlloc_v9", "cuMemAlloc ", "CUdevice", "cudaNoSuchFunction", "cu" + "A" * 250]
# Versions and flags that probe.c asks with.
VERSIONS = [major * 1000 + minor * 10 for major in range(15) for minor in range(10)] + \
           [11999, 15000, 99000, 2**31 - 1, -2**31, -1]
FLAGS = [0, 1, 2, 3, 4, 77, 2**32, 2**64 - 1]
STRICT_SINCE = 13000  # drivers from 13.0 on, or from a version after 12.5, refuse a version above their own


def base(symbol):
    """The name that cuGetProcAddress knows a symbol by."""
    return re.sub(r"_v\d+$", "", PER_THREAD.sub("", symbol))


class Interface:
    """symbols: {symbol: (driver, since)}; since is None where no question leads to it."""

    def __init__(self, symbols):
        self.symbols = symbols

    @classmethod
    def read(cls):
        with open(FILE, encoding="utf-8") as lines:
            rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
        return cls({symbol: (int(driver), None if since == "-" else int(since)) for symbol, driver, since in rows})

    def write(self, drivers):
        with open(FILE, "w", encoding="utf-8") as file:
            file.write("# Written by `make test-genuine` (tests/genuine/interface.py explains it). Drivers examined, by their "
                       f"CUDA:\n# {' '.join(map(str, drivers))}\n")
            for symbol, (driver, since) in sorted(self.symbols.items()):
                file.write(f"{symbol} {driver} {since or '-'}\n")

    @staticmethod
    def drivers():
        """The versions of CUDA whose drivers were examined."""
        with open(FILE, encoding="utf-8") as file:
            return [int(number) for number in file.readlines()[1].strip("# \n").split()]

    def names(self):
        """What to ask for: symbols, the names without their suffixes, and some that no driver knows."""
        return sorted({*self.symbols, *map(base, self.symbols)}) + ODD_NAMES

    def exports(self, version):
        return {symbol for symbol, (driver, _) in self.symbols.items() if driver <= version}

    def chains(self, version):
        """{name: ([(since, symbol)] of the usual form, [...] of the per-thread one)} in a driver of that version."""
        found = {}
        for symbol, (driver, since) in self.symbols.items():
            if since and max(driver, since) <= version:
                found.setdefault(base(symbol), ([], []))[bool(PER_THREAD.search(symbol))].append((since, symbol))
        return {name: (sorted(usual), sorted(threaded)) for name, (usual, threaded) in found.items()}

    def answers(self, version, abi, names):
        """The lines that probe.c prints about a driver of that version, asked by that ABI."""
        chains = self.chains(version)
        for name in names:
            for flags in FLAGS:
                usual, threaded = chains.get(name, ((), ()))
                chain = threaded if flags & 2 and threaded else usual
                line, last = f"{name or '(empty)'} v{abi} flags {flags}:", None
                for asked in VERSIONS:
                    answer = answer_to(version, abi, bool(usual), chain, asked, flags)
                    if answer != last:
                        line += f" {asked}={answer}"
                    last = answer
                yield line


def answer_to(version, abi, known, chain, asked, flags):
    """RESULT/STATUS/FUNCTION of one question."""
    if flags > 3 or (asked > version >= STRICT_SINCE):
        return "1/kept/kept"
    wanted = asked if 0 <= asked <= version else version
    found = [symbol for since, symbol in chain if since <= wanted]
    if found:
        return f"0/{'kept' if abi == 1 else 0}/{found[-1]}"
    return "500/kept/kept" if abi == 1 else f"0/{2 if known else 1}/-"
