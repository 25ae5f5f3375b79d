#!/usr/bin/env python3
"""Tries a page of the documentation as a reader would: run_page.py BUILD PAGE.md

Runs its blocks of commands in order in a fresh folder, with gpumem installed on PATH and the simulator below it, and
compares exit codes and what the page says that they print (page.py). Without the program that the page is about, it
says SKIP, and holds the blocks against their grammars only.
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import clients  # noqa: E402
import grammar  # noqa: E402
import page as pages  # noqa: E402

SECONDS = 300  # for one block: a hang, not slowness


class Sandbox:
    """A folder with nothing in it, and an environment that has gpumem as `make install` leaves it."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.bin, self.work = folder + "/bin", folder + "/work"
        tree = folder + "/opt/gpumem"
        for name in (self.bin, self.work, folder + "/home"):
            os.makedirs(name)
        subprocess.run(["cmake", "--install", build, "--prefix", tree], check=True, stdout=subprocess.DEVNULL)
        self.environment = {"PATH": f"{self.bin}:{tree}/bin:/usr/local/bin:/usr/bin:/bin", "HOME": folder + "/home",
                            "LD_LIBRARY_PATH": build + "/sim", "LANG": "C.UTF-8", "TMPDIR": folder,
                            "CMAKE_PREFIX_PATH": tree,
                            "PKG_CONFIG_PATH": f"{tree}/{self.setting('CMAKE_INSTALL_LIBDIR')}/pkgconfig", "GPUMEM_SIM_MEMORY": "2G", "PYTHONDONTWRITEBYTECODE": "1"}
        clients.link_python(self, sys.executable)

    def setting(self, name):
        with open(self.build + "/CMakeCache.txt", encoding="utf-8") as file:
            return next(line.split("=", 1)[1].strip() for line in file if line.startswith(name + ":"))

    def run(self, commands):
        """Exit code, and stdout with stderr."""
        done = subprocess.run(["bash", "-e", "-c", commands], cwd=self.work, env=self.environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=SECONDS, check=False, errors="replace")
        return done.returncode, done.stdout


def run_block(sandbox, block):
    """What is wrong, or None; and the output."""
    if block.reason:
        print(f"line {block.line}: not run: {block.reason}")
        return grammar.problem("sh", block.text), ""
    code, output = sandbox.run(block.text)
    if code != block.exit_code:
        return f"exit code {code}, not {block.exit_code}:\n{output}", output
    return None, output


def try_blocks(sandbox, page):
    """Returns the first problem, because those behind it may follow from it."""
    output = ""
    for block in page.blocks:
        problem = None
        if block.file:
            with open(os.path.join(sandbox.work, block.file), "w", encoding="utf-8") as file:
                file.write(block.text)
        if block.is_run:
            problem, output = run_block(sandbox, block)
        elif block.language == "text":
            missing = pages.missing_line(block.text, output)
            problem = missing and f"not printed: {missing}\nbut:\n{output}"
        else:
            problem = grammar.problem(block.language, block.text)
        if problem:
            return f"line {block.line}: {problem}"
    return None


def check_grammars(page):
    for block in page.blocks:
        problem = grammar.problem(block.language, block.text)
        if problem:
            return f"line {block.line}: {problem}"
    return None


def try_page(build, text):
    """(problem or None, what it was tried with, or the client that is not here)."""
    page = pages.parse(text)
    with tempfile.TemporaryDirectory() as folder:
        sandbox = Sandbox(build, folder)
        sandbox.environment.update(page.environment)
        for name, target in page.programs.items():
            os.symlink(f"{build}/tests/{target}", f"{sandbox.work}/{name}")
        how = []
        for client in page.needs:
            provided = clients.provide(sandbox, client)
            if not provided:
                return check_grammars(page), f"SKIP: {client} is not here; grammars checked, nothing run"
            how.append(provided)
        return try_blocks(sandbox, page), "tried with " + (", ".join(how) or "the simulator")


def main():
    build = os.path.abspath(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as file:
        try:
            problem, how = try_page(build, file.read())
        except pages.PageError as error:
            problem, how = str(error), "not tried"
    if problem:
        print(f"FAIL: {sys.argv[2]}, {problem}")
        return 1
    print(f"{os.path.basename(sys.argv[2])}: {how}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
