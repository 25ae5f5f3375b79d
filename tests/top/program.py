"""tests/top/steps.c under gpumem run: a program that does what a test says, and lives until it says so."""
import os
import subprocess


class Program:
    def __init__(self, build, trace, before=(), **settings):
        """`before`: a command that starts another."""
        environment = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", **settings)
        self.process = subprocess.Popen([*before, build + "/report/gpumem", "run", "-q", "--output", trace, "--", build + "/tests/top_steps"],
                                        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.stdout.readline().strip()

    def do(self, *lines):
        for line in lines:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
            if answer != "done\n":
                raise AssertionError(f"the program did not do {line}: {answer!r}")

    def end(self):
        self.process.stdin.close()
        if self.process.wait(60) != 0:
            raise AssertionError("the program failed")
