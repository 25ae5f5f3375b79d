#!/usr/bin/env python3
"""`make install` gives a tree that works wherever it is moved: installed.py BUILD

Recorder, report, header, pkg-config, CMake package, man pages and shell completion, each as its user would use it.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

PROGRAM = """
#include <cuda_runtime_api.h>
#include <gpumem/gpumem.h>
int main(void)
{
    void *memory;
    gpumem_range_push("load");
    cudaMalloc(&memory, 3 << 20);
    gpumem_range_pop();
    return 0;
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.18)
project(user C)
find_package(gpumem 0.1 REQUIRED)
file(WRITE ${CMAKE_BINARY_DIR}/paths "${GPUMEM_COMMAND}\\n${GPUMEM_PRELOAD}\\n")
add_library(user STATIC user.c)
target_link_libraries(user PRIVATE gpumem::gpumem)
target_include_directories(user PRIVATE ${CUDA_INCLUDE})
"""
failed = []


def expect(condition, text):
    if not condition:
        failed.append(text)
        print("FAIL:", text)


def output(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def setting(build, name):
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
        return next(line.split("=", 1)[1].strip() for line in file if line.startswith(name + ":"))


def install(build, folder):
    """Installs below a DESTDIR for one prefix, and moves the tree to another place."""
    subprocess.run(["cmake", "--install", build, "--prefix", "/opt/first"], check=True, stdout=subprocess.DEVNULL,
                   env=dict(os.environ, DESTDIR=folder))
    moved = os.path.join(folder, "moved here")
    shutil.move(os.path.join(folder, "opt/first"), moved)
    expect(not os.path.exists("/opt/first"), "installed outside of DESTDIR")
    return moved


def try_command(build, tree, folder):
    """LD_PRELOAD takes no path with a blank, so a copy without one records."""
    gpumem = os.path.join(shutil.copytree(tree, os.path.join(folder, "plain")), "bin/gpumem")
    trace = os.path.join(folder, "x.trace")
    environment = dict(os.environ, LD_LIBRARY_PATH=build + "/sim")
    output(gpumem, "run", "-q", "-o", trace, "--", build + "/tests/training_loop",
           env=dict(environment, GPUMEM_SIM_MEMORY="2G"))
    report = json.loads(output(gpumem, "report", "--json", trace))
    expect(report["leaks"], "the installed command saw no leak of the demo")
    done = subprocess.run([tree + "/bin/gpumem", "run", "--", "/bin/true"], stderr=subprocess.PIPE, text=True,
                          check=False)
    expect(done.returncode == 125 and "blank" in done.stderr, f"a path with a blank: {done.returncode} {done.stderr}")


def try_pkg_config(build, tree, folder):
    libdir = setting(build, "CMAKE_INSTALL_LIBDIR")
    environment = dict(os.environ, PKG_CONFIG_PATH=os.path.join(folder, "plain", libdir, "pkgconfig"))
    flags = output("pkg-config", "--cflags", "gpumem", env=environment).split()
    preload = output("pkg-config", "--variable=preload", "gpumem", env=environment).strip()
    expect(os.path.exists(preload), f"pkg-config --variable=preload: {preload}")
    source, program = os.path.join(folder, "user.c"), os.path.join(folder, "user")
    with open(source, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    include, sim = setting(build, "GPUMEM_CUDA_INCLUDE"), build + "/sim"
    subprocess.run(["cc", *flags, "-I", include, source, "-o", program, f"{sim}/libcudart.so.13", "-ldl"], check=True)
    trace = program + ".trace"
    subprocess.run([program], check=True,
                   env=dict(os.environ, LD_LIBRARY_PATH=sim, LD_PRELOAD=preload, GPUMEM_OUTPUT=trace))
    report = json.loads(output(tree + "/bin/gpumem", "report", "--json", trace))
    expect([phase["path"] for phase in report["phases"]] == [["load"]], "the header's range is no phase of the report")


def try_cmake(build, folder):
    tree = os.path.join(folder, "plain")
    with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write(PROJECT)
    subprocess.run(["cmake", "-S", folder, "-B", folder + "/b", f"-DCMAKE_PREFIX_PATH={tree}",
                    f"-DCUDA_INCLUDE={setting(build, 'GPUMEM_CUDA_INCLUDE')}"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", folder + "/b"], check=True, stdout=subprocess.DEVNULL)
    with open(folder + "/b/paths", encoding="utf-8") as file:
        expect(all(os.path.exists(line.strip()) and line.startswith(tree) for line in file), "paths of find_package")


def try_manuals(build, tree):
    """A page for each command, each option once; completion that offers them."""
    if setting(build, "GPUMEM_MANUALS") != "ON":
        print("SKIP: built without man pages")
        return
    gpumem, share = tree + "/bin/gpumem", tree + "/share"
    commands = [line.split()[0] for line in output(gpumem, "--help").split("\n") if line.startswith("  ") and line[2] != "-"]
    expect({"run", "report", "check"} <= set(commands), f"commands: {commands}")
    for name in commands:
        with open(f"{share}/man/man1/gpumem-{name}.1", encoding="utf-8") as file:
            page = file.read().replace("\\-", "-")
        options = {option for line in output(gpumem, name, "--help").split("\n") if re.match(r" {2,8}--?\w", line)
                   for option in re.findall(r"(?:^ *|, )(--[a-z][\w-]*)", line)}
        for option in options:
            expect(f".B {option}" in page or f", {option}" in page, f"gpumem-{name}.1 lacks {option}")
        offered = output("bash", "-c", f". '{share}/bash-completion/completions/gpumem'; COMP_WORDS=(gpumem {name} --)"
                         "; COMP_CWORD=2; _gpumem; printf '%s\\n' \"${COMPREPLY[@]}\"").split()
        expect(set(offered) == options, f"completion of {name}: {sorted(options ^ set(offered))}")
    for name, word in (("man7/gpumem-environment.7", "GPUMEM_OUTPUT"), ("man5/gpumem-trace.5", "gm_trace_header")):
        with open(f"{share}/man/{name}", encoding="utf-8") as file:
            expect(word in file.read().replace("\\_", "_"), f"{name} lacks {word}")


def main():
    build = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        tree = install(build, folder)
        try_command(build, tree, folder)
        try_pkg_config(build, tree, folder)
        try_cmake(build, folder)
        try_manuals(build, tree)
    print("FAILED" if failed else "passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
