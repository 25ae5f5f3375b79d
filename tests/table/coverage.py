#!/usr/bin/env python3
"""Holds api.table against the CUDA headers.

    coverage.py headers API_TABLE CUDA_INCLUDE [CUDA_INCLUDE...]   every memory function is in the table
    coverage.py stale GENERATE API_TABLE COVERAGE_PAGE             docs/coverage.md is up to date
    coverage.py exports MAP LIBRARY                                the library exports what the map says
    coverage.py layout PROGRAM PROGRAM                             both print the same layouts

A function touches memory if its name says so (below); such a function must be traced or left out by name,
and all ABIs of a traced one (_v2, _ptds, _ptsz) must be in the table, with the CUDA version they came with.

Environment: CC; GENERATED, the folder of gm_api.h, whose prototypes must not contradict the headers;
CUDA_INCLUDE, headers that lend what a package of headers lacks.
"""
import os
import re
import subprocess
import sys

# What names of functions that move, make, end or lend memory have in them.
TOUCHES_MEMORY = re.compile(
    r"Mem(?!cpyNode|setNode)|Malloc|Alloc|Free|Array|Ipc.*Mem|External(?!Semaphore)|Managed|Multicast|Prefetch|Discard"
    r"|Module(Load|Unload|GetGlobal)|Library(Load|Unload|GetGlobal|GetManaged|GetModule)|Link(Create|Destroy)"
    r"|Ctx(Create|Destroy|Detach|SetLimit)|PrimaryCtx(Retain|Release|Reset)|DeviceReset|HostRegister|HostUnregister"
    r"|Graph(Launch|Instantiate|Destroy$|ExecDestroy|AddMem|AddNode)|Stream(BeginCapture|EndCapture|AttachMem)"
    r"|Graphics(Map|Unmap|Resource|SubResource|Register|Unregister)|Checkpoint|Symbol(Address|Size)")

# Names the pattern catches that have nothing to do with the life or the moving of memory.
UNRELATED = re.compile(
    r"^(cuGetErrorString|cuGetErrorName)$|Occupancy|TexRef|TexObject|SurfObject|SurfRef|Texture|Surface|Tensor"
    r"|CacheConfig|SharedMem|GetAttribute|SetAttribute$|GetParams|SetParams|NodeGet|NodeSet|LaunchAttribute"
    r"|DeviceGetGraphMem|DeviceSetGraphMem|Semaphore|GetChannelDesc|DefaultMemPool|ExecMem|ExecUpdate|ExecKernel|ExecChild"
    r"|ExecHost|ExecEvent|ExecNode|GetLastError|MemoryType|Coredump|Logs|DevResource|ArrayGetInfo|AtomicCapabilities"
    r"|CheckpointProcess(Lock|Unlock|GetState|GetRestoreThreadId)|FuncGetParamInfo|FreeParams|LibraryGet(Kernel|Unified)"
    r"|LibraryEnumerate|LibraryKernel|ModuleGet(LoadingMode|Function|Tex|Surf)|EGLApi|MultiProcessor"
    r"|ResourceSetMapFlags|GraphicsResourceGet(Mapped)?Egl|GetTexture|GraphAddMemcpyNode|DeviceGetTexture")


def functions(include):
    """All function names that cuda.h and cuda_runtime_api.h in `include` declare: hidden ABIs and, of the
    runtime, the per-thread forms too."""
    found = set()
    for macro, headers in (("__CUDA_API_VERSION_INTERNAL", "#include <cuda.h>\n#include <cuda_runtime_api.h>\n"),
                           ("CUDA_API_PER_THREAD_DEFAULT_STREAM", "#include <cuda_runtime_api.h>\n")):
        out = subprocess.run([*compiler(include), "-E", "-P", f"-D{macro}", "-"], input=headers, capture_output=True,
                             text=True, check=True).stdout
        found.update(re.findall(r"\b(cu(?:da)?[A-Z]\w*)\s*\(", out))
    return found


def compiler(include):
    """The C compiler with these headers. Packages lack a few, which the headers at hand lend."""
    lender = os.environ.get("CUDA_INCLUDE", include)
    return [os.environ.get("CC", "cc"), "-x", "c", "-w", "-I", include, "-idirafter", lender]


def versions(include):
    """{name: the versions in which it got an ABI, ascending}, from the types of function pointers."""
    path = os.path.join(include, "cudaTypedefs.h")
    found = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for name, version in re.findall(r"\bPFN_(cu\w+?)_v(\d{4,5})(?:_ptsz|_ptds)?\)", file.read()):
                found.setdefault(name, set()).add(int(version))
    return {name: sorted(numbers) for name, numbers in found.items()}


class Table:
    """What api.table says."""

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
    for name in sorted(functions(include)):
        known = base(name)
        if known in table.traced:
            if name not in table.since:
                yield f"{include}: {name}: an ABI of a traced function that is not in the table"
        elif TOUCHES_MEMORY.search(known) and not UNRELATED.search(known) and known not in table.left_out:
            yield f"{include}: {known}: touches memory and is neither traced nor left out"


def check_versions(table, include):
    """The n-th version of a name is its ABI plain, _v2, _v3 ...: what cuGetProcAddress goes by."""
    for name, numbers in versions(include).items():
        for index, number in enumerate(numbers):
            stem = name if index == 0 else f"{name}_v{index + 1}"
            for symbol in (stem, stem + "_ptds", stem + "_ptsz"):
                if table.since.get(symbol, number) != number:
                    yield f"{include}: {symbol} came with {number}, the table says {table.since[symbol]}"


def check_prototypes(include):
    """Headers older than a function do not know all its types; a conflict is one all the same."""
    if "GENERATED" not in os.environ:
        return
    prototypes = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prototypes.c")
    out = subprocess.run([*compiler(include), "-fsyntax-only", "-I", os.environ["GENERATED"], prototypes],
                         capture_output=True, text=True, check=False).stderr
    yield from re.findall(r".*conflicting types.*", out)


def check_headers(path, *includes):
    table = Table(path)
    problems = [f"{name} is named twice" for name in sorted(set(table.names)) if table.names.count(name) > 1]
    problems += [f"{name} is traced and left out" for name in table.left_out if name in table.traced]
    for include in includes:
        problems += [*check_names(table, include), *check_versions(table, include), *check_prototypes(include)]
        print(f"{include}: {len(functions(include))} functions, {len(table.since)} hooks of {len(table.traced)} names, "
              f"{len(table.left_out)} left out with a reason")
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


def check_layout(one, other):
    outputs = [subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
               for program in (one, other)]
    return [f"{a!r} and {b!r}" for a, b in zip(*outputs) if a != b] + \
           (["different number of lines"] if len(outputs[0]) != len(outputs[1]) else [])


def main():
    what, arguments = sys.argv[1], sys.argv[2:]
    problems = {"headers": check_headers, "stale": check_stale, "exports": check_exports,
                "layout": check_layout}[what](*arguments)
    for problem in problems:
        print("FAIL:", problem, file=sys.stderr)
    return 1 if problems else 0


sys.exit(main())
