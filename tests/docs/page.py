"""A page of docs/howto as the runner sees it: blocks of code, and what comments in it ask for.

A fenced block's first word says what it is: `sh` is run, `text` is what the block before it printed, any other language
with `file=NAME` is written to that file, and without one it is only held against its grammar. A comment
`<!-- test: WORD ... -->` is for the runner, and readers do not see it:

    needs CLIENT            of the page: the program that it is about (clients.py)
    env NAME=VALUE          of the page: more environment
    program NAME TARGET     of the page: ./NAME is the test program TARGET of the build
    exit N                  of the next sh block: it ends with N, not 0
    not-run REASON          of the next sh block: it cannot run here, so its grammar alone is checked
"""
import dataclasses
import re

FENCE = re.compile(r"^```\s*(\S*)\s*(?:file=(\S+))?\s*$")
DIRECTIVE = re.compile(r"^<!-- test: (\S+)(?: (.*?))? -->$")
GRAMMARS = {"yaml", "dockerfile", "cmake", "python", "cpp", "c", "json"}
# What differs from run to run: times, dates, process numbers, hosts. Sizes and counts do not.
VARIES = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC|\d\d:\d\d:\d\d UTC|\d+(?:\.\d+)? (?:ns|us|ms|s|min|h)\b"
                    r"|(?<=process )\d+ on \S+|(?<=\.)\d+(?=\.trace)")


class PageError(Exception):
    """The page is not one that can be tried."""


@dataclasses.dataclass
class Block:
    language: str
    line: int
    text: str
    file: str = ""
    exit_code: int = 0
    reason: str = ""  # why it is not run

    @property
    def is_run(self):
        return self.language == "sh" and not self.file


@dataclasses.dataclass
class Page:
    blocks: list = dataclasses.field(default_factory=list)
    needs: list = dataclasses.field(default_factory=list)
    environment: dict = dataclasses.field(default_factory=dict)
    programs: dict = dataclasses.field(default_factory=dict)


def take_directive(page, pending, word, rest, number):
    if word == "needs":
        page.needs.append(rest)
    elif word == "env":
        name, value = rest.split("=", 1)
        page.environment[name] = value
    elif word == "program":
        name, target = rest.split()
        page.programs[name] = target
    elif word == "exit":
        pending["exit_code"] = int(rest)
    elif word == "not-run" and rest:
        pending["reason"] = rest
    else:
        raise PageError(f"line {number}: the runner does not know '{word} {rest or ''}'")


def close_block(page, block, pending):
    if block.is_run:
        block.exit_code, block.reason = pending.pop("exit_code", 0), pending.pop("reason", "")
    elif pending:
        raise PageError(f"line {block.line}: {pending} is for a sh block")
    elif block.language == "text":
        before = next((other for other in reversed(page.blocks) if other.is_run), None)
        if not before or before.reason:
            raise PageError(f"line {block.line}: the output of no command that is run")
    elif not block.file and block.language not in GRAMMARS:
        raise PageError(f"line {block.line}: a block of '{block.language}' without file=NAME")
    page.blocks.append(block)


def parse(text):
    page, pending, block = Page(), {}, None
    for number, line in enumerate(text.split("\n"), 1):
        if block:
            if line == "```":
                close_block(page, block, pending)
                block = None
            else:
                block.text += line + "\n"
        elif fence := FENCE.match(line):
            block = Block(fence[1], number, "", fence[2] or "")
        elif found := DIRECTIVE.match(line):
            take_directive(page, pending, found[1], found[2], number)
        elif line.startswith(("```", "<!-- test")):
            raise PageError(f"line {number}: neither a fence nor a comment for the runner: {line}")
    if block or pending:
        raise PageError(f"a block without an end, or {pending} without a sh block")
    if not any(entry.is_run and not entry.reason for entry in page.blocks):
        raise PageError("no block that can be run")
    return page


def pattern_of(line):
    """What a line of output must look like: any blanks between words, anything for `...`, any time for a time."""
    pattern, at = "", 0
    for found in VARIES.finditer(line):
        pattern += re.escape(line[at:found.start()])
        pattern += r"[\d:.,\-]+(?: [\w:]+(?: UTC)?| on \S+)?"
        at = found.end()
    pattern += re.escape(line[at:])
    return re.compile(re.sub(r"(?:\\ )+", r"\\s+", pattern.strip()).replace(re.escape("..."), ".*"))


def missing_line(expected, output):
    """The first line of `expected` that `output` does not have behind those before it; None if it has all."""
    lines, at = output.split("\n"), 0
    for line in expected.split("\n"):
        if line.strip() in ("", "..."):
            continue
        pattern = pattern_of(line.strip())
        while at < len(lines) and not pattern.search(lines[at]):
            at += 1
        if at == len(lines):
            return line
        at += 1
    return None
