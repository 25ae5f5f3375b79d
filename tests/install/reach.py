#!/usr/bin/env python3
"""`gpumem run` says why it cannot record a program, before it starts it: reach.py BUILD

A program of musl, by its own compiler where that is installed, else by the name of its loader; a script for one; a
static program; and programs that can be recorded.
"""
import os
import shutil
import subprocess
import sys
import tempfile

PROGRAM = '#include <stdio.h>\nint main(void) { puts("ran"); return 0; }\n'
failed = []


def expect(condition, text):
    if not condition:
        failed.append(text)
        print("FAIL:", text)


def main():
    gpumem = os.path.abspath(sys.argv[1]) + "/report/gpumem"
    with tempfile.TemporaryDirectory() as folder:
        def compile_program(name, *options, compiler="cc"):
            with open(folder + "/x.c", "w", encoding="utf-8") as file:
                file.write(PROGRAM)
            return subprocess.run([compiler, folder + "/x.c", "-o", f"{folder}/{name}", *options], check=False,
                                  stderr=subprocess.DEVNULL).returncode == 0

        def script(name, interpreter):
            with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                file.write(f"#! {interpreter} -e\n")
            os.chmod(f"{folder}/{name}", 0o755)

        def run(*command, path=None):
            environment = dict(os.environ, PATH=path or os.environ["PATH"])
            return subprocess.run([gpumem, "run", "--", *command], cwd=folder, env=environment, capture_output=True,
                                  text=True, check=False)

        compile_program("musl", *(() if shutil.which("musl-gcc") else ("-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1",)),
                        compiler=shutil.which("musl-gcc") or "cc")
        compile_program("glibc")
        script("of_musl", folder + "/musl")
        script("of_script", folder + "/of_musl")
        script("of_glibc", "/bin/sh")
        for command in ("./musl", "./of_musl", "./of_script", "musl"):
            done = run(command, path=folder + ":/usr/bin:/bin")
            expect(done.returncode == 125 and "ran" not in done.stdout and "musl" in done.stderr and "glibc" in done.stderr
                   and len(done.stderr.splitlines()) == 1, f"{command}: {done}")
        for command in ("./glibc", "./of_glibc", "true"):
            done = run(command)
            expect(done.returncode == 0 and "musl" not in done.stderr and "static" not in done.stderr, f"{command}: {done}")
        done = run("./nothing")
        expect(done.returncode == 127 and "musl" not in done.stderr, f"a program that is not there: {done}")
        if compile_program("static", "-static"):
            done = run("./static")
            expect(done.returncode == 0 and done.stdout == "ran\n" and "linked statically" in done.stderr, f"static: {done}")
        else:
            print("SKIP of a static program: there is no static libc")
        with open(folder + "/cut", "wb") as file, open(folder + "/musl", "rb") as whole:
            file.write(whole.read(90))
        os.chmod(folder + "/cut", 0o755)
        done = run("./cut")
        expect(done.returncode != 0 and "musl" not in done.stderr, f"a program that was cut off: {done}")
    print("FAILED" if failed else "passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
