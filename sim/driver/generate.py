#!/usr/bin/env python3
"""Generates the parts of the simulated driver that follow from the CUDA headers.

stubs.c          a weak definition of every function that cuda.h declares under any ABI and of every
                 name of the GL, EGL, VDPAU and profiler typedef headers. A per-thread form (_ptsz,
                 _ptds) forwards to its base with the default stream made the per-thread one; all
                 others refuse (gpusim_refuse). Strong definitions elsewhere replace them.
proc_table.c     what cuGetProcAddress answers: for each base name the versions at which an ABI came.
error_names.inc  the names of the error codes.
"""
import argparse
import os
import re
import subprocess
import sys

TYPEDEF_HEADERS = ["cudaTypedefs.h", "cudaGLTypedefs.h", "cudaEGLTypedefs.h", "cudaVDPAUTypedefs.h",
                   "cudaProfilerTypedefs.h"]
PER_THREAD = re.compile(r"_pts[z]$|_ptds$")
# Names whose typedef versions and exported ABIs do not correspond one to one.
IRREGULAR = {"cuGLGetDevices": {4010: "cuGLGetDevices", 6050: "cuGLGetDevices_v2"},
             "cuEventCreateFromEGLSync": {}}  # of drivers for Tegra alone
# ABIs of later CUDA that the headers may not declare yet, and the versions that brought them.
LATER = {
    13000: ["cuDriverGetGpuCodeIsaVersion"],
    13010: ["cuDevSmResourceSplit", "cuGraphExecGetId", "cuGraphGetId", "cuGraphNodeGetContainingGraph",
            "cuGraphNodeGetLocalId", "cuGraphNodeGetToolsId", "cuLaunchHostFunc_v2",
            "cuLaunchHostFunc_v2_ptsz", "cuStreamGetDevResource", "cuStreamGetDevResource_ptsz"],
    13020: ["cuCoredumpDeregisterCompleteCallback", "cuCoredumpDeregisterStartCallback",
            "cuCoredumpRegisterCompleteCallback", "cuCoredumpRegisterStartCallback",
            "cuFuncGetParamCount", "cuGraphNodeGetParams", "cuKernelGetParamCount"],
    13030: ["cuLogicalEndpointExport", "cuLogicalEndpointGetLimits", "cuLogicalEndpointImport",
            "cuLogicalEndpointQuery", "cuSubgridCreate", "cuSubgridWorkerGridCreate",
            "cuSubgridWorksetCreate"],
    13040: ["cuCheckpointOperationComplete", "cuDeviceGetCliqueCount", "cuDeviceGetCliqueInfo",
            "cuDeviceGetFabricClusterUuid", "cuGraphNodeSetParams_v2", "cuMemGetLocationInfo"],
}
# Functions that came later than the version from which lookups find them, and the driver that brought them.
LATE = {"cuLaunchKernelEx": 11080, "cuDriverGetGpuCodeIsaVersion": 13010}
# Exported by NVIDIA's drivers, declared by no header, answered by no lookup.
UNDECLARED = ["cuEGLApiInit", "cuMemGetAttribute", "cuMemGetAttribute_v2"]


def preprocess(compiler, include):
    return subprocess.run(
        [compiler, "-E", "-P", "-D__CUDA_API_VERSION_INTERNAL", f"-I{include}", "-x", "c", "-"],
        input="#include <cuda.h>\n", text=True, check=True, stdout=subprocess.PIPE).stdout


def prototypes(text):
    """{name: [(type, parameter name), ...]} of every function returning CUresult."""
    text = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", text)
    text = re.sub(r"\s+", " ", text)
    found = {}
    for name, arguments in re.findall(r"\bCUresult (cu[A-Z]\w*) ?\(([^;{()]*)\) ?;", text):
        found.setdefault(name, parameters(arguments))
    return found


def parameters(arguments):
    if arguments.strip() in ("", "void"):
        return []
    result = []
    for argument in arguments.split(","):
        match = re.fullmatch(r"\s*(.*?[\s*])(\w+)\s*(\[\w*\])?\s*", argument)
        kind, name, array = match.groups()
        result.append((kind.strip() + ("*" if array else ""), name))
    return result


def typedef_versions(include):
    """{base name: sorted versions} and the set of all base names, from the typedef headers."""
    versions = {}
    for header in TYPEDEF_HEADERS:
        path = os.path.join(include, header)
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as file:
            for name, version, per_thread in re.findall(
                    r"\bPFN_(cu\w+?)_v(\d{4,5})(_ptsz|_ptds)?\)", file.read()):
                if not name.startswith("cuWGL") and "D3D" not in name and not per_thread:
                    versions.setdefault(name, set()).add(int(version))
    for version, symbols in LATER.items():
        for name in symbols:
            if not PER_THREAD.search(name):
                versions.setdefault(re.sub(r"_v\d+$", "", name), set()).add(version)
    return {name: sorted(found) for name, found in versions.items()}


def abi_symbols(name, versions):
    """[(version, symbol)]: the n-th version is the ABI plain, _v2, _v3, ..."""
    if name in IRREGULAR:
        return sorted(IRREGULAR[name].items())
    return [(version, name if index == 0 else f"{name}_v{index + 1}")
            for index, version in enumerate(versions)]


def stub(name, arguments, known):
    declared = ", ".join(f"{kind} {argument}" for kind, argument in arguments) or "void"
    base = PER_THREAD.sub("", name)
    lines = [f"GPUSIM_WEAK CUresult {name}({declared})", "{"]
    if base != name and base in known:
        passed = ", ".join(
            f"per_thread({argument})" if kind == "CUstream" else argument
            for kind, argument in arguments)
        lines.append(f"    return {base}({passed});")
    else:
        lines += [f"    (void)({argument});" for _, argument in arguments]
        lines.append("    return gpusim_refuse();")
    return "\n".join(lines + ["}", ""])


def write(path, lines):
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def write_stubs(path, known, other):
    lines = ["/* Generated by generate.py. */", '#include "driver.h"', "",
             "#define GPUSIM_WEAK __attribute__((weak, visibility(\"default\")))", "",
             "static inline CUstream per_thread(CUstream stream)", "{",
             "    return stream ? stream : CU_STREAM_PER_THREAD;", "}", ""]
    lines += [stub(name, arguments, known) for name, arguments in sorted(known.items())]
    for name in sorted(other):
        lines += [f"CUresult {name}(void);", stub(name, [], known)]
    write(path, lines)


def write_proc_table(path, versions, symbols, known):
    lines = ["/* Generated by generate.py. */", '#include "proc_table.h"', "", "#include <cuda.h>", ""]
    entries = []
    for name in sorted(versions):
        for version, symbol in abi_symbols(name, versions[name]):
            if symbol not in symbols:
                sys.exit(f"generate.py: {name} has version {version} but {symbol} is not declared")
            threaded = next((symbol + suffix for suffix in ("_ptsz", "_ptds")
                             if symbol + suffix in symbols), None)
            for used in filter(None, (symbol, threaded)):
                if used not in known:
                    lines.append(f"CUresult {used}(void);")
            second = f"(void *){threaded}" if threaded else "0"
            driver = LATE.get(symbol, version)
            entries.append(f'    {{"{name}", {version}, {driver}, (void *){symbol}, {second}}},')
    lines += ["", "const struct gpusim_proc gpusim_procs[] = {", *entries, "};",
              f"const unsigned int gpusim_proc_count = {len(entries)};"]
    write(path, lines)


def write_error_names(path, text):
    body = re.search(r"enum cudaError_enum\s*\{(.*?)\}", text, re.S).group(1)
    names = dict((int(code), name) for name, code in re.findall(r"(CUDA_\w+)\s*=\s*(\d+)", body))
    write(path, [f'    {{{code}, "{name}"}},' for code, name in sorted(names.items())])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cc", required=True, help="C compiler")
    parser.add_argument("--include", required=True, help="folder of cuda.h")
    parser.add_argument("--output", required=True, help="folder to write into")
    options = parser.parse_args()

    text = preprocess(options.cc, options.include)
    known = prototypes(text)
    versions = typedef_versions(options.include)
    symbols = set(known)
    for name in versions:
        if name not in known:
            symbols.update(symbol for _, symbol in abi_symbols(name, versions[name]))
    # Exported by a driver although no typedef header pairs them with a version of their own.
    symbols.update(["cuGLMapBufferObject_v2_ptds", "cuGLMapBufferObjectAsync_v2_ptsz"]
                   if "cuGLInit" in symbols else [])
    symbols.update(UNDECLARED, *LATER.values())

    write_stubs(os.path.join(options.output, "stubs.c"), known, symbols - set(known))
    write_proc_table(os.path.join(options.output, "proc_table.c"), versions, symbols, known)
    write_error_names(os.path.join(options.output, "error_names.inc"), text)


if __name__ == "__main__":
    main()
