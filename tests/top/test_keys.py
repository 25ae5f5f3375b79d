#!/usr/bin/env python3
"""The keys of `gpumem top` on a terminal: test_keys.py BUILD

On a pseudo-terminal, beside a program that runs. What must hold (each broken promise is one line on stderr, and exit code 1):
  - each key does what the help says, at once;
  - whatever ends it, the terminal is as it was before: q, the end of the program, signals, a terminal that hangs up;
  - while it is stopped, the terminal is as it was; when it goes on, keys work again.
"""
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time

from program import Program

build = os.path.abspath(sys.argv[1])
gpumem = build + "/report/gpumem"
MIB = 1 << 20
LONGEST = 60 # seconds, of a machine that does not answer
problems = 0


def expect(good, text):
    global problems
    if not good:
        problems += 1
        print("FAIL: " + text, file=sys.stderr)


class Terminal:
    """`gpumem top` in a session of its own, with a terminal."""

    def __init__(self, *arguments):
        self.master, self.slave = pty.openpty()
        self.before = termios.tcgetattr(self.slave)
        self.shown = ""
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            os.close(self.master)
            os.login_tty(self.slave) if hasattr(os, "login_tty") else self.take_terminal()
            os.execv(gpumem, [gpumem, "top", *arguments])

    def take_terminal(self):
        import fcntl # pylint: disable=import-outside-toplevel
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
        for number in range(3):
            os.dup2(self.slave, number)

    def press(self, keys):
        os.write(self.master, keys.encode())

    def wait_for(self, is_there, what):
        """The page that was drawn last, as soon as it has what is wanted."""
        end = time.monotonic() + LONGEST
        while time.monotonic() < end:
            page = self.shown.rsplit("\x1b[H\x1b[J", 1)[-1]
            if is_there(page):
                return page
            if select.select([self.master], [], [], 1)[0]:
                try:
                    self.shown += os.read(self.master, 65536).decode()
                except OSError:
                    break
        expect(False, f"never saw {what}: {self.shown[-600:]!r}")
        return ""

    def wait_for_mode(self, is_raw):
        end = time.monotonic() + LONGEST
        while time.monotonic() < end and self.is_raw() != is_raw:
            time.sleep(0.01) # the other side is another process
        return self.is_raw() == is_raw

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def end(self, what, code):
        while True: # what it still prints must not fill the terminal
            if select.select([self.master], [], [], 0.05)[0]:
                self.shown += os.read(self.master, 65536).decode(errors="replace")
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                break
        expect(os.waitstatus_to_exitcode(status) == code, f"{what}: ended with {os.waitstatus_to_exitcode(status)}, not {code}: "
               f"{self.shown[-300:]!r}")
        expect(termios.tcgetattr(self.slave) == self.before, f"{what}: the terminal is not as before: {termios.tcgetattr(self.slave)}")
        os.close(self.master)
        os.close(self.slave)


def check_keys(program, trace):
    terminal = Terminal(trace)
    terminal.wait_for(lambda page: "q quit" in page and "place\r\n" in page, "the first page")
    expect(terminal.is_raw(), "keys wait for a line")
    terminal.press("s")
    terminal.wait_for(lambda page: "most growth first" in page, "the order by growth")
    terminal.press("s")
    page = terminal.wait_for(lambda page: re.search(r"highest count first\r\n.+\r\n", page), "the order by count")
    rows = [line.split() for line in page.split("highest count first")[1].strip().splitlines()]
    expect([row[2] for row in rows][:1] == ["2"], f"by count: {rows}")
    terminal.press("s")
    terminal.wait_for(lambda page: "place\r\n" in page, "the order by bytes")
    terminal.press("d")
    terminal.wait_for(lambda page: "device 0 alone" in page, "device 0 alone")
    terminal.press("d")
    terminal.wait_for(lambda page: "alone" not in page and "q quit" in page, "all devices")
    terminal.press("h")
    terminal.wait_for(lambda page: "this help" in page, "the help")
    terminal.press("h")
    terminal.wait_for(lambda page: "bytes" in page and "this help" not in page, "the page again")
    terminal.press("p")
    terminal.wait_for(lambda page: "PAUSED" in page, "that it is paused")
    program.do(f"a 9 {64 * MIB}")
    time.sleep(1.2) # two looks would be due
    terminal.press("?")
    page = terminal.wait_for(lambda page: "this help" in page, "the help while it is paused")
    terminal.press("?")
    page = terminal.wait_for(lambda page: "bytes" in page and "this help" not in page, "the page")
    expect("76.0 MiB" not in page, f"paused, but shows what came: {page}")
    terminal.press(" ")
    terminal.wait_for(lambda page: "76.0 MiB" in page and "PAUSED" not in page, "what came while it was paused")
    terminal.wait_for(lambda page: "| 0 to " in page, "the scale of the curve")
    terminal.press("q")
    terminal.end("q", 0)


def check_ends(trace):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGSEGV, signal.SIGABRT):
        terminal = Terminal(trace)
        terminal.wait_for(lambda page: "q quit" in page, "a page")
        os.kill(terminal.pid, number)
        terminal.end(number.name, -number)
    terminal = Terminal(trace)
    terminal.wait_for(lambda page: "q quit" in page, "a page")
    os.kill(terminal.pid, signal.SIGBUS) # a file that became shorter: main.c
    terminal.end("SIGBUS", 3)
    terminal = Terminal(trace)
    terminal.wait_for(lambda page: "q quit" in page, "a page")
    terminal.press("\x03")
    terminal.end("Ctrl-C", -signal.SIGINT)


def check_stop(trace):
    terminal = Terminal(trace)
    terminal.wait_for(lambda page: "q quit" in page, "a page")
    os.kill(terminal.pid, signal.SIGTSTP)
    expect(terminal.wait_for_mode(False), "stopped: the terminal is not as before")
    os.kill(terminal.pid, signal.SIGCONT)
    expect(terminal.wait_for_mode(True), "goes on: keys wait for a line")
    terminal.press("q")
    terminal.end("q after a stop", 0)


def check_pipes(trace):
    """No terminal: no keys, and nothing is read."""
    done = subprocess.run([gpumem, "top", "--once", trace], input="q", capture_output=True, text=True, timeout=LONGEST, check=False)
    expect(done.returncode == 0 and "quit" not in done.stdout, f"without a terminal: {done}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "keys.trace")
        program = Program(build, trace)
        program.do(f"a 1 {8 * MIB}", f"a 2 {4 * MIB}")
        check_keys(program, trace)
        check_ends(trace)
        check_stop(trace)
        check_pipes(trace)
        terminal = Terminal(trace)
        terminal.wait_for(lambda page: "q quit" in page, "a page")
        program.end()
        terminal.end("the end of the program", 0)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
