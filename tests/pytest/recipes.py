#!/usr/bin/env python3
"""The recipes of docs/gate-in-tests.md, as they stand there: recipes.py BUILD CUDA_INCLUDE

The listener for GoogleTest with one test that frees and one that keeps, built by CMake against an installed gpumem, and
run by CTest and by the page's commands for machines without a GPU.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile

BUILD, CUDA_INCLUDE = sys.argv[1:3]
SOURCE = os.path.abspath(__file__).rsplit("/tests/", 1)[0]
TESTS = """
#include <cuda_runtime_api.h>
static void *grid(void) { void *memory = nullptr; cudaMalloc(&memory, 1 << 20); return memory; }
TEST(Solver, Frees) { cudaFree(grid()); }
TEST(Solver, Keeps) { grid(); }
"""
CMAKE = """cmake_minimum_required(VERSION 3.13)
project(solver LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 17)
enable_testing()
find_package(GTest REQUIRED)
find_package(gpumem REQUIRED)
add_executable(solver_test solver_test.cpp)
target_include_directories(solver_test PRIVATE {cuda})
target_compile_options(solver_test PRIVATE -Wall -Wextra -Werror)
target_link_libraries(solver_test PRIVATE gpumem::gpumem GTest::GTest -L{sim} -l:libcudart.so.13)
{page}
"""
failed = []


def expect(condition, text):
    if not condition:
        failed.append(text)
        print("FAIL:", text)


def block(page, language, containing):
    """Of the fenced blocks the one of the language that has the text."""
    fences = re.findall(r"^```([^\n]*)\n(.*?)^```$", page, re.M | re.S)
    found = [text for its_language, text in fences if its_language == language and containing in text]
    if len(found) != 1:
        sys.exit(f"{len(found)} blocks of {language!r} with {containing!r}")
    return found[0]


def main():
    with open(SOURCE + "/docs/gate-in-tests.md", encoding="utf-8") as file:
        page = file.read()
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim", CMAKE_PREFIX_PATH=folder + "/tree",
                           PATH=f"{folder}/tree/bin:{os.environ['PATH']}")

        def run(*command, **options):
            return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False,
                                  env=dict(environment, **options))

        with open(folder + "/solver_test.cpp", "w", encoding="utf-8") as file:
            listener = block(page, "cpp", "GpumemListener")
            file.write(listener.replace("int main", TESTS + "int main"))
        with open(folder + "/CMakeLists.txt", "w", encoding="utf-8") as file:
            tests = block(page, "cmake", "add_test").replace("find_package(gpumem REQUIRED)\n", "")
            file.write(CMAKE.format(cuda=CUDA_INCLUDE, sim=BUILD + "/sim", page=tests))
        for command in (["cmake", "--install", BUILD, "--prefix", folder + "/tree"], ["cmake", "-S", ".", "-B", "."],
                        ["cmake", "--build", "."]):
            done = run(*command)
            if done.returncode:
                sys.exit(f"{command}: {done.stdout}{done.stderr}")
        for chosen, ends in (("*.Frees", 0), ("*.Keeps", 8)):
            done = run("ctest", "--output-on-failure", GTEST_FILTER=chosen)
            expect(done.returncode == ends, f"ctest {chosen}: {done.returncode}\n{done.stdout}")
            passed = re.findall(r"(solver\w*) \.+ +(Passed)", done.stdout)
            expect(len(passed) == (2 if ends == 0 else 0), f"ctest {chosen}: {passed}\n{done.stdout}")
        expect("1048576 bytes of GPU memory are not freed" in done.stdout, f"the listener: {done.stdout}")
        done = run("./solver_test")
        expect(done.returncode == 0 and "NOT JUDGED" in done.stderr, f"alone: {done.stdout}{done.stderr}")
        without = block(page, "", "gpumem dry-run").splitlines()[0]
        for chosen, ends in (("*.Frees", 0), ("*.Keeps", 1)):
            done = run("sh", "-c", without, GTEST_FILTER=chosen, LD_LIBRARY_PATH="")
            expect(done.returncode == ends and "SIMULATED" in done.stdout,
                   f"{shlex.quote(without)} {chosen}: {done.returncode}\n{done.stdout}{done.stderr}")
    print(f"{len(failed)} failed")
    return 1 if failed else 0


sys.exit(main())
