#!/usr/bin/env python3
"""Holds api.table against the CUDA headers.

    coverage.py headers API_TABLE CUDA_INCLUDE [CUDA_INCLUDE...]   every memory function is in the table
    coverage.py stale GENERATE API_TABLE COVERAGE_PAGE             docs/coverage.md is up to date
    coverage.py exports MAP LIBRARY                                the library exports what the map says
    coverage.py layout PROGRAM PROGRAM                             both print the same layouts

A function touches memory if its name says so (below); such a function must be traced or left out by name,
and all ABIs of a traced one (_v2, _ptds, _ptsz) must be in the table.
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
    """All function names that cuda.h and cuda_runtime_api.h in `include` declare, hidden ABIs too."""
    text = "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n#include <cuda_runtime_api.h>\n"
    out = subprocess.run([os.environ.get("CC", "cc"), "-E", "-P", "-x", "c", "-I", include, "-"], input=text,
                         capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\b(cu(?:da)?[A-Z]\w*)\s*\(", out))


def table(path):
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    import generate
    entries, left_out = generate.parse(path)
    symbols = {symbol.name for entry in entries for symbol in entry.symbols}
    traced = {symbol.base for entry in entries for symbol in entry.symbols}
    return symbols, traced, {name for _, names in left_out for name in names}


def base(name):
    return re.sub(r"(_v\d+)?(_pt[sd][sz])?$", "", name)


def check_headers(path, includes):
    symbols, traced, left_out = table(path)
    missing = []
    for include in includes:
        declared = functions(include)
        for name in sorted(declared):
            known = base(name)
            if known in traced:
                # Older headers declare ABIs that never were exported under that name; only the driver's count.
                if name not in symbols and name.startswith("cu") and not name.startswith("cuda"):
                    missing.append(f"{include}: {name}: an ABI of a traced function that is not in the table")
            elif TOUCHES_MEMORY.search(known) and not UNRELATED.search(known) and known not in left_out:
                missing.append(f"{include}: {known}: touches memory and is neither traced nor left out")
        print(f"{include}: {len(declared)} functions, {len(traced)} traced, {len(left_out)} left out with a reason")
    return missing


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
    if what == "headers":
        problems = check_headers(arguments[0], arguments[1:])
    else:
        problems = {"stale": check_stale, "exports": check_exports, "layout": check_layout}[what](*arguments)
    for problem in problems:
        print("FAIL:", problem, file=sys.stderr)
    return 1 if problems else 0


sys.exit(main())
