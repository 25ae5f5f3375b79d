#!/usr/bin/env python3
"""Builds a stand-in for one of NVIDIA's math libraries, for the dry run: stub_library.py ORIGINAL OUTPUT

The stand-in exports every name that ORIGINAL exports, under the same version nodes and soname, and
computes nothing. Prototypes come from the headers that were installed with ORIGINAL: a function that
creates an object writes a handle into its out-parameter, one that asks for a size writes 0, one that
returns a text returns a text, and all others return 0, which every one of these libraries calls
success. What needs a real answer is written by hand in answers/*.c and replaces the generated form.
Neither ORIGINAL nor a header is copied: names and prototypes are all that is read.
"""
import argparse
import fcntl
import json
import mmap
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

# Family (name of the library without "lib" and what follows ".so", longest first): headers that
# declare its functions, and the file of answers.
FAMILIES = {
    "cublasLt": (["cublasLt.h"], "cublaslt.c"),
    "cublas": (["cublas_api.h", "cublas_v2.h", "cublas.h", "cublasXt.h"], "cublas.c"),
    "nvblas": (["nvblas.h"], None),
    "cudnn": (["cudnn*.h"], "cudnn.c"),
    "cusparseLt": (["cusparseLt.h"], "cusparselt.c"),
    "cusparse": (["cusparse.h"], "cusparse.c"),
    "cusolverMg": (["cusolverMg.h"], "cusolver.c"),
    "cusolver": (["cusolver_common.h", "cusolverDn.h", "cusolverSp.h", "cusolverRf.h",
                  "cusolverSp_LOWLEVEL_PREVIEW.h"], "cusolver.c"),
    "cufftw": (["cufftw.h"], None),
    "cufft": (["cufft.h", "cufftXt.h"], "cufft.c"),
    "curand": (["curand.h"], "curand.c"),
    "nccl": (["nccl.h"], "nccl.c"),
    "nvshmem_host": (["nvshmem_host.h", "nvshmem.h", "nvshmemx.h", "host/*.h"], None),
    "cupti": (["cupti*.h"], "cupti.c"),
    "cufile": (["cufile.h"], None),
    "nvJitLink": (["nvJitLink.h"], "nvjitlink.c"),
}
# Some export names of the C++ library that was linked into them, too.
OF_NVIDIA = re.compile(r"(?:cu|nv|p?nccl|fftw|NV|__nvJitLink)[A-Za-z_0-9]*")
# One function under the name of each version that had it.
OF_VERSION = re.compile(r"__(\w+)_\d+_\d+")
STREAMS = {"cudaStream_t", "CUstream"}
CREATES = re.compile(r"Create|Init|Plan|Open|Alloc|Subscribe|New|Split|Dup")
ASKS_FOR_SIZE = re.compile(r"[bB]ufferSize|WorkspaceSize|Workspace|Size|Version|Count|Info")
VERSION_MACRO = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+((?:CUBLAS|CUDNN|NCCL|CUSPARSE|CUSPARSELT|CUSOLVER|CUFFT|CURAND|CUPTI)"
    r"_\w*(?:VER|VERSION|MAJOR|MINOR|PATCH|PATCHLEVEL|BUILD)\w*)[ \t]+(\d+)\b", re.M)


# ---- the original: names and version nodes ----------------------------------------------------------

def text_at(data, offset):
    return data[offset:data.find(b"\0", offset)].decode("ascii", "replace")


def sections(data):
    offset, = struct.unpack_from("<Q", data, 0x28)
    size, count, _ = struct.unpack_from("<HHH", data, 0x3A)
    keys = ("name", "type", "flags", "addr", "offset", "size", "link", "info", "align", "entsize")
    return [dict(zip(keys, struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size)))
            for i in range(count)]


def version_nodes(data, table):
    """{index: name} of the version nodes that the library defines; 1 is that of the library."""
    nodes = {}
    for section in table:
        if section["type"] != 0x6FFFFFFD:  # SHT_GNU_verdef
            continue
        strings, at = table[section["link"]]["offset"], section["offset"]
        while True:
            _, flags, index, _, _, aux, following = struct.unpack_from("<HHHHIII", data, at)
            if not flags & 1:
                nodes[index] = text_at(data, strings + struct.unpack_from("<I", data, at + aux)[0])
            if not following:
                break
            at += following
    return nodes


def exports(path):
    """(soname, {name: version node or ""}, {names of objects: size})."""
    with open(path, "rb") as file, \
            mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
        if data[:6] != b"\x7fELF\x02\x01":
            sys.exit(f"{path}: not a 64-bit little-endian ELF file")
        table = sections(data)
        nodes = version_nodes(data, table)
        versions = next((s["offset"] for s in table if s["type"] == 0x6FFFFFFF), None)
        names, objects, soname = {}, {}, os.path.basename(path)
        for section in table:
            strings = table[section["link"]]["offset"] if section["link"] < len(table) else 0
            if section["type"] == 6:  # SHT_DYNAMIC
                for at in range(section["offset"], section["offset"] + section["size"], 16):
                    tag, value = struct.unpack_from("<qQ", data, at)
                    if tag == 14:
                        soname = text_at(data, strings + value)
            if section["type"] != 11:  # SHT_DYNSYM
                continue
            for i in range(1, section["size"] // 24):
                name, info, other, index, _, size = struct.unpack_from(
                    "<IBBHQQ", data, section["offset"] + 24 * i)
                symbol = text_at(data, strings + name)
                if index == 0 or index >= 0xFF00 or info >> 4 not in (1, 2) or other & 3 not in (0, 3) or \
                        not OF_NVIDIA.fullmatch(symbol):
                    continue
                if info & 15 == 1:
                    objects[symbol] = size
                elif info & 15 not in (0, 2):
                    continue
                version = struct.unpack_from("<H", data, versions + 2 * i)[0] & 0x7FFF \
                    if versions else 1
                names[symbol] = nodes.get(version, "")
    return soname, names, objects


# ---- the headers: prototypes ------------------------------------------------------------------------

def include_folders(original):
    """Where the headers of a library may lie: beside it, and those of its sister packages."""
    folder = pathlib.Path(original).resolve().parent
    candidates = [pathlib.Path(original).parent.parent / "include", folder.parent / "include",
                  folder / "include", folder.parent.parent / "include"]
    candidates += sorted((pathlib.Path(original).parent.parent.parent).glob("*/include"))
    candidates += [pathlib.Path("/usr/local/cuda/include"), pathlib.Path("/usr/include")]
    return [c for c in dict.fromkeys(candidates) if c.is_dir()]


def read_headers(folders, patterns):
    texts = []
    for pattern in patterns:
        for folder in folders:
            found = sorted(folder.glob(pattern))
            texts += [path.read_text(encoding="utf-8", errors="replace") for path in found]
            if found:
                break
    return "\n".join(texts)


def statements(text):
    """Declarations in one line each, without comments, directives and attributes."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    text = re.sub(r"\\\n", " ", text)
    text = re.sub(r"^[ \t]*#[^\n]*", " ", text, flags=re.M)
    text = re.sub(r"__attribute__\s*\(\(.*?\)\)", " ", text, flags=re.S)
    text = re.sub(r"extern\s+\"C\"\s*\{?", " ", text)
    return [re.sub(r"\s+", " ", part).strip() for part in re.split(r"[;{}]", text)]


def handle_types(parts):
    """Names of types that are pointers to something opaque."""
    found = set(STREAMS)
    for part in parts:
        match = re.fullmatch(r"typedef (?:const )?(?:struct \w+|void) ?\* ?(\w+)", part)
        if match:
            found.add(match.group(1))
    return found


def parameters(text):
    """[(type, name)] of a parameter list, by C's rules as far as these headers need them."""
    result = []
    for part in re.sub(r"\([^()]*\)", "()", text).split(","):
        part = part.strip()
        if part in ("", "void"):
            continue
        match = re.fullmatch(r"(.*?)(\w+)?\s*((?:\[[^\]]*\])*)", part)
        kind, name, array = match.group(1).strip(), match.group(2) or "", match.group(3)
        if not kind:  # only a type
            kind, name = name, ""
        if "()" in part:
            kind = "void *"
        result.append((kind + ("*" if array else ""), name))
    return result


def prototypes(parts, wanted):
    """{name: (return type, parameters)} of the wanted functions that the headers declare."""
    found = {}
    for part in parts:
        match = re.match(r"(.*?)\b(\w+) ?\((.*)\)[^()]*$", part)
        if match and match.group(2) in wanted and "typedef" not in match.group(1):
            found.setdefault(match.group(2), (match.group(1), parameters(match.group(3))))
    return found


# ---- the stand-in -----------------------------------------------------------------------------------

def passed_as(kind):
    """A type that travels in the registers that this one travels in."""
    if "*" in kind:
        return "void *"
    plain = kind.replace("const", "").strip()
    if plain in ("double", "float"):
        return plain
    if plain in ("cuComplex", "cuFloatComplex"):
        return "float _Complex"
    if plain in ("cuDoubleComplex",):
        return "double _Complex"
    return "long"


def writes(name, kind, parameter, handles):
    """The statement that fills an out-parameter, or ''."""
    if kind.startswith("const") or not kind.endswith("*"):
        return ""
    target = kind[:-1].strip()
    if target in handles or target in ("void*", "void *"):
        if CREATES.search(name) and target in handles:
            return "*(void **){0} = gpumem_stub_handle();"
        return "*(void **){0} = 0;" if target in handles and "Get" in name else ""
    if target == "size_t" and "Set" not in name:
        return "*(unsigned long *){0} = 0;"
    if target in ("int", "unsigned int", "unsigned", "int32_t", "uint32_t") and \
            (ASKS_FOR_SIZE.search(name) or parameter == "info") and "Set" not in name:
        return "*(int *){0} = 0;"
    if target in ("int64_t", "uint64_t") and ASKS_FOR_SIZE.search(name) and "Set" not in name:
        return "*(long *){0} = 0;"
    return ""


def stub(name, prototype, handles):
    returned, arguments = prototype
    declared = ", ".join(f"{passed_as(kind)} a{i}" for i, (kind, _) in enumerate(arguments)) or "void"
    body = []
    if "Destroy" in name and arguments and arguments[0][0] in handles - STREAMS:
        body.append("    free((void *)a0);")
    for i, (kind, parameter) in enumerate(arguments):
        statement = writes(name, kind, parameter, handles)
        if statement:
            body.append(f"    if (a{i})\n        " + statement.format(f"a{i}"))
        else:
            body.append(f"    (void)a{i};")
    if re.search(r"\bchar ?\*", returned):
        kind, value = "const char *", f'"{name}: simulated"'
    elif re.search(r"\b(double|float)\b", returned) and "*" not in returned:
        kind, value = re.search(r"double|float", returned).group(0), "0"
    else:
        kind, value = "long ", "0"
    return f"{kind} {name}({declared});\n{kind} {name}({declared})\n{{\n" + "\n".join(body) + \
        f"\n    return {value};\n}}\n"


def defined_by_hand(text):
    return set(re.findall(r"^ANSWER(?:_TEXT)?\s*\(\s*(\w+)", text, flags=re.M))


def generate(names, objects, known, handles, by_hand):
    lines = ['#include "common.h"', ""]
    for name in sorted(names):
        if name in by_hand:
            continue
        if name in objects:
            lines.append(f"char {name}[{max(objects[name], 1)}];")
        else:
            lines.append(stub(name, known.get(name, ("", [])), handles))
    return "\n".join(lines)


# What gcc 14 and later refuse in C, refused by every compiler.
STRICT = [f"-Werror={name}" for name in ("implicit-function-declaration", "implicit-int", "incompatible-pointer-types",
                                         "int-conversion")]


def version_script(names):
    if not names:
        return "{ local: *; };\n"
    nodes = {}
    for name, node in names.items():
        nodes.setdefault(node, []).append(name)
    text, unversioned = "", nodes.pop("", [])
    if not nodes:
        return "{ global: " + " ".join(f"{n};" for n in sorted(unversioned)) + " local: *; };\n"
    for i, (node, members) in enumerate(sorted(nodes.items())):
        if i == 0:
            members = members + unversioned
        text += f"{node} {{ global: " + " ".join(f"{n};" for n in sorted(members)) + \
            (" local: *;" if i == 0 else "") + " };\n"
    return text


def family_of(path):
    base = re.sub(r"^lib", "", os.path.basename(path)).split(".so")[0]
    base = re.split(r"[-.]", base)[0]
    return next((name for name in sorted(FAMILIES, key=len, reverse=True)
                 if base == name or base.startswith(name + "_")), None)


def build(original, output, compiler):
    family = family_of(original)
    if not family:
        sys.exit(f"{original}: not one of the libraries that the dry run stands in for")
    patterns, answers = FAMILIES[family]
    soname, names, objects = exports(original)
    headers = read_headers(include_folders(original), patterns)
    parts = statements(headers)
    here = pathlib.Path(__file__).resolve().parent / "answers"
    by_hand_text = (here / answers).read_text() if answers else ""
    by_hand = defined_by_hand(by_hand_text)
    definitions = dict(VERSION_MACRO.findall(headers))
    major = re.search(r"\.so\.(\d+)", soname)
    definitions["GPUMEM_SONAME_MAJOR"] = major.group(1) if major else "0"
    same = {name: match.group(1) for name, match in ((name, OF_VERSION.fullmatch(name)) for name in names) if match}
    output = pathlib.Path(output)
    if "GPUMEM_GENUINE" in by_hand_text:
        genuine = output.parent / "genuine.so"  # a name that nothing stands in for
        genuine.unlink(missing_ok=True)
        genuine.symlink_to(os.path.realpath(original))
        definitions["GPUMEM_GENUINE"] = json.dumps(str(genuine))
    with tempfile.TemporaryDirectory(dir=output.parent) as folder:
        generated, script = pathlib.Path(folder) / "stubs.c", pathlib.Path(folder) / "versions"
        generated.write_text(generate(names, objects, prototypes(parts, names), handle_types(parts),
                                      by_hand | set(same)))
        script.write_text(version_script(names))
        built = pathlib.Path(folder) / "library.so"
        sources = [str(generated)] + ([str(here / answers)] if answers else [])
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-O1", *STRICT, "-Wno-int-to-pointer-cast",
             "-Wno-pointer-to-int-cast", "-std=gnu11", "-fno-builtin", f"-I{here}",
             *(f"-D{name}={value}" for name, value in sorted(definitions.items())),
             *sources, "-o", str(built), f"-Wl,-soname,{soname}", f"-Wl,--version-script={script}",
             *(f"-Wl,--defsym={name}={answer}" for name, answer in same.items()),
             "-Wl,-Bsymbolic", "-ldl", "-lpthread"], check=True)
        os.replace(built, output)


def copy_runtime(original, output):
    """A wheel's own runtime, renamed: a copy of the simulated one of its version."""
    version = re.search(r"\.so\.(\d+)", os.path.basename(original)).group(1)
    shutil.copyfile(f"{os.environ['GPUMEM_DRY_LIBRARIES']}/libcudart.so.{version}", output + ".new")
    os.replace(output + ".new", output)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("original", help="the library to stand in for")
    parser.add_argument("output", help="file to write")
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"), help="C compiler (cc)")
    options = parser.parse_args()
    os.makedirs(os.path.dirname(options.output), mode=0o700, exist_ok=True)
    with open(options.output + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes may want it at once
        if os.path.exists(options.output):
            return
        if os.path.basename(options.original).startswith("libcudart"):
            copy_runtime(options.original, options.output)
        else:
            build(options.original, options.output, options.cc)


if __name__ == "__main__":
    main()
