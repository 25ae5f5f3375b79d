#!/usr/bin/env python3
"""Compares api.table with the CUDA headers.

    coverage.py headers API_TABLE CUDA_INCLUDE [CUDA_INCLUDE...]   every function of the headers is in the table
    coverage.py stale GENERATE API_TABLE COVERAGE_PAGE             docs/coverage.md is up to date
    coverage.py exports MAP LIBRARY                                the library exports what the map says
    coverage.py layout PROGRAM PROGRAM                             what the first prints of layouts the second does, too

Every function that a header declares must be traced or left out by name, with a reason, because no pattern can tell
from a name what a function does to memory. All ABIs of a traced one (_v2, _ptds, _ptsz) must be in the table, with the
CUDA version they came with and the prototype that the header has: a row is exactly one ABI.

Environment: CC; GENERATED, the folder of gm_api.h, whose prototypes must not contradict the headers; CUDA_INCLUDE,
headers that supply what a package of headers lacks.
"""
import os
import re
import subprocess
import sys

HEADERS = ("cuda.h", "cuda_runtime_api.h")


class WrongHeader(Exception):
    """The compiler did not read the intended header."""


def compiler(include):
    """The C compiler, reading the headers of `include` first. They are named by their paths, because gcc drops a folder
    of -I that it also searches later. Packages lack a few headers, which the installed ones supply."""
    lender = os.environ.get("CUDA_INCLUDE", include)
    command = [os.environ.get("CC", "cc"), "-x", "c", "-w", "-I", include]
    if os.path.realpath(lender) != os.path.realpath(include):
        command += ["-idirafter", lender]
    for header in HEADERS:
        command += ["-include", os.path.join(os.path.realpath(include), header)]
    return command


def preprocess(include, *definitions):
    """The compiler's output for the headers of that folder; raises if it read others."""
    text = subprocess.run([*compiler(include), "-E", "-dD", *definitions, "-"], input="", capture_output=True, text=True,
                          check=True).stdout
    meant = os.path.realpath(include)
    for path in sorted(set(re.findall(r'^# \d+ "([^"]+/(?:cuda|cuda_runtime_api)\.h)"', text, re.M))):
        if os.path.dirname(os.path.realpath(path)) != meant:
            raise WrongHeader(f"{include}: {path} was read")
    with open(os.path.join(meant, "cuda.h"), encoding="utf-8", errors="replace") as file:
        wanted = re.findall(r"^#define CUDA_VERSION (\d+)", file.read(), re.M)
    read = re.findall(r"^#define CUDA_VERSION (\d+)", text, re.M)
    if len(wanted) != 1 or read != wanted:
        raise WrongHeader(f"{include}: CUDA_VERSION is {wanted} there, {read} was read")
    return re.sub(r"^#.*", "", text, flags=re.M)


def functions(include):
    """All function names that the headers in `include` declare: hidden ABIs and, of the runtime, the per-thread forms
    too."""
    found = set()
    for macro in ("__CUDA_API_VERSION_INTERNAL", "CUDA_API_PER_THREAD_DEFAULT_STREAM"):
        text = preprocess(include, f"-D{macro}")
        found.update(re.findall(r"(?<!static inline )\b(?:CUresult|cudaError_t|const char\s*\*|struct cudaChannelFormatDesc)\s+"
                                r"(?:\w+\s+)*?(cu(?:da)?[A-Z]\w*)\s*\(", text))
    return found


def versions(include):
    """{(name, form): the versions in which it got an ABI, ascending}, from the types of function pointers. `form` is
    "", "_ptds" or "_ptsz"."""
    path = os.path.join(include, "cudaTypedefs.h")
    found = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for name, version, form in re.findall(r"\bPFN_(cu\w+?)_v(\d{4,5})(_ptsz|_ptds)?\)", file.read()):
                found.setdefault((name, form), set()).add(int(version))
    return {name: sorted(numbers) for name, numbers in found.items()}


class Table:
    """The contents of api.table."""

    def __init__(self, path):
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        import generate
        entries, left_out = generate.parse(path)
        symbols = [symbol for entry in entries for symbol in entry.symbols]
        self.since = {symbol.name: symbol.since for symbol in symbols}
        self.traced = {symbol.base for symbol in symbols}
        self.left_out = [name for _, names in left_out for name in names]
        self.names = [symbol.name for symbol in symbols] + self.left_out


def base(name):
    return re.sub(r"(_v\d+)?(_pt[sd][sz])?$", "", name)


def check_names(table, include):
    found = functions(include)
    if len(found) < 500:
        yield f"{include}: only {len(found)} functions found"
    for name in sorted(found):
        known = base(name)
        if known in table.traced:
            if name not in table.since:
                yield f"{include}: {name}: an ABI of a traced function that is not in the table"
        elif known not in table.left_out:
            yield f"{include}: {known}: neither traced nor left out with a reason"


def came_with(table, name, form):
    """{version: symbol} of the table's rows of one name in one form."""
    rows = {symbol: since for symbol, since in table.since.items()
            if base(symbol) == name and (re.search(r"_pt[sd][sz]$", symbol) or [""])[0] == form}
    return {since: symbol for symbol, since in rows.items()}


def check_versions(table, include):
    """cuGetProcAddress selects by version: the version of each row is the one that introduced its ABI. Headers reveal
    all versions up to their own."""
    for (name, form), numbers in versions(include).items():
        if name not in table.traced:
            continue
        ours = sorted(version for version in came_with(table, name, form) if version <= max(numbers))
        if ours != numbers:
            yield f"{include}: {name}{form} came with {numbers}, the table says {ours}"


def check_rows(table):
    """One row is one ABI, and cuGetProcAddress can tell them apart."""
    for name in table.traced:
        for form in ("", "_ptds", "_ptsz"):
            symbols = [symbol for symbol in table.since if table.since[symbol] and base(symbol) == name and
                       (re.search(r"_pt[sd][sz]$", symbol) or [""])[0] == form]
            if len({table.since[symbol] for symbol in symbols}) != len(symbols):
                yield f"{sorted(symbols)}: two ABIs of one version"


def check_prototypes(include):
    """Headers older than a function lack some of its types; a conflict is still a conflict."""
    if "GENERATED" not in os.environ:
        return
    folder = os.path.dirname(os.path.abspath(__file__))
    out = subprocess.run([*compiler(include), "-D__CUDA_API_VERSION_INTERNAL", "-fsyntax-only", "-I",
                          os.environ["GENERATED"], os.path.join(folder, "prototypes.c")],
                         capture_output=True, text=True, check=False).stderr
    yield from re.findall(r".*conflicting types.*", out)
    if any(number >= 13000 for numbers in versions(include).values() for number in numbers):
        yield from re.findall(r".*error:.*", out)


def check_headers(path, *includes):
    table = Table(path)
    problems = [f"{name} is named twice" for name in sorted(set(table.names)) if table.names.count(name) > 1]
    problems += [f"{name} is traced and left out" for name in table.left_out if name in table.traced]
    problems += check_rows(table)
    for include in includes:
        try:
            problems += [*check_names(table, include), *check_versions(table, include), *check_prototypes(include)]
            print(f"{include}: {len(functions(include))} functions, {len(table.since)} hooks of "
                  f"{len(table.traced)} names, {len(table.left_out)} left out with a reason")
        except WrongHeader as wrong:
            problems.append(str(wrong))
    return problems


def check_stale(generate, path, page):
    made = subprocess.run([sys.executable, generate, path, "--coverage"], capture_output=True, text=True, check=True)
    with open(page, encoding="utf-8") as file:
        if file.read() != made.stdout:
            return [f"{page} is stale: {generate} {path} --coverage > {page}"]
    return []


def check_exports(map_file, library):
    with open(map_file, encoding="utf-8") as file:
        wanted = set(re.findall(r"^\s+(\w+);$", file.read(), re.M))
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in out.splitlines()}
    return [f"not exported: {name}" for name in sorted(wanted - exported)] + \
           [f"exported but not in the map: {name}" for name in sorted(exported - wanted)]


def check_layout(headers, own):
    """Older headers lack the last ones."""
    theirs, ours = [subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
                    for program in (headers, own)]
    return [f"{a!r} and {b!r}" for a, b in zip(theirs, ours) if a != b] + \
           (["nothing to compare"] if len(theirs) < 100 or len(theirs) > len(ours) else [])


def main():
    what, arguments = sys.argv[1], sys.argv[2:]
    problems = {"headers": check_headers, "stale": check_stale, "exports": check_exports,
                "layout": check_layout}[what](*arguments)
    for problem in problems:
        print("FAIL:", problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
