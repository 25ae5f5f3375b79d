#!/usr/bin/env python3
"""Man pages and shell completion, from what the command says of itself.

    generate.py GPUMEM VERSION FOLDER MD2MAN SOURCE

Writes FOLDER/man1/gpumem.1, a page for each command of `gpumem --help`, and the completion for bash, zsh and fish. All
of it comes from the texts of --help, so that no option can be missing here or be only here. MD2MAN (go-md2man) turns
the environment's part of SOURCE/README.md and SOURCE/docs/trace-format.md into pages of sections 7 and 5.
"""
import os
import re
import subprocess
import sys

# "  -n, --top N        stacks shown", "      --flight[=SIZE]    a trace that": name, argument, text.
OPTION = re.compile(r"^ {2,8}(?:(-\w), )?(--[\w-]+)(\[=\w+\]|=\S+| [A-Z\[]\S*(?: [A-Z]+)?)?(?: +(\S.*))?$")
# "--all-frames, --no-symbols, --sysroot DIR,": several of one text, which may stand behind the last one's line.
SEVERAL = re.compile(r"^ {2,8}(--[\w-]+(?: [A-Z]+)?(?:, --[\w-]+(?: [A-Z]+)?)*)(,|  +(\S.*)|)$")
COMMAND = re.compile(r"^  (\w[\w-]*) +(\S.*)$")


def help_of(gpumem, *arguments):
    return subprocess.run([gpumem, *arguments, "--help"], check=True, capture_output=True, text=True).stdout.rstrip("\n")


def roff(text):
    """Text as troff takes it: hyphens of options must stay such, and no line may begin a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in ".'" else line for line in text.split("\n"))


class Help:
    """A --help text: its usage lines, options, and the paragraphs before and behind them."""

    def __init__(self, text):
        self.usage, self.options, self.before, self.behind = [], [], [], []
        continues, several = [], []  # options whose text goes on; names whose text is still to come
        for line in text.split("\n"):
            option, listed = OPTION.match(line), SEVERAL.match(line)
            if listed and (several or ", --" in line):
                several += [[None, name, " " + argument if argument else "", listed[3] or ""]
                            for name, _, argument in (one.partition(" ") for one in listed[1].split(", "))]
                if listed[2] != ",":
                    for one in several:
                        one[3] = listed[3] or ""
                    self.options += several
                    continues, several = several, []
            elif line.startswith("usage: ") or (self.usage and not self.options and line.startswith("       gpumem")):
                self.usage.append(line[7:])
            elif option:
                short, name, argument, words = option.groups()
                continues = [[short, name, argument or "", words or ""]]
                self.options += continues
            elif continues and line.startswith("         "):
                row = re.match(r"(\S+) {2,}(\S.*)$", line.strip())  # of a table: it keeps its line
                for one in continues:
                    one[3] = f"{one[3]}\n{row[1]}: {row[2]}" if row else f"{one[3]} {line.strip()}".strip()
            else:
                continues = []
                (self.behind if self.options else self.before).append(line)

    @staticmethod
    def paragraphs(lines):
        return [part.strip("\n") for part in re.split(r"\n\s*\n", "\n".join(lines)) if part.strip()]


def body(lines):
    """Paragraphs in troff; what is indented keeps its lines."""
    out = []
    for part in Help.paragraphs(lines):
        plain = not any(line.startswith("  ") for line in part.split("\n"))
        out += [".PP", roff(part)] if plain else [".PP", ".nf", roff(part), ".fi"]
    return out


def page(name, summary, text, version, more):
    text = Help(text)
    out = [f'.TH {name.upper()} 1 "" "gpumem {version}" "gpumem"', ".SH NAME", roff(f"{name} - {summary}"), ".SH SYNOPSIS"]
    for usage in text.usage:
        out += [".nf", ".B " + roff(usage), ".fi"]
    out += [".SH DESCRIPTION", *body(text.before), *body(text.behind)]
    if text.options:
        out.append(".SH OPTIONS")
    for short, option, argument, words in text.options:
        out += [".TP", ".B " + roff(", ".join(filter(None, (short, option))) + argument),
                roff(words.strip()).replace("\n", "\n.br\n")]
    return "\n".join([*out, ".SH SEE ALSO", roff(", ".join(more)), ""])


def bash(commands):
    cases = "\n".join(f'        {name}) words="{" ".join(option[1] for option in found.options)}" ;;'
                      for name, (_, found) in commands.items())
    return f"""# bash completion of gpumem; generated from its --help
_gpumem() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} words=""
    if [ "$COMP_CWORD" = 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "{' '.join(commands)} --help --version" -- "$word")
        return
    fi
    case ${{COMP_WORDS[1]}} in
{cases}
    esac
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}}
complete -o filenames -F _gpumem gpumem
"""


def zsh(commands):
    def quoted(text):
        return text.strip().replace("\n", "; ").replace("'", "'\\''").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")

    def option(short, name, argument, words):
        takes = ":value:_files" if argument and not argument.startswith("[") else ""
        names = f"'({short} {name})'{{{short},{name}}}" if short else f"'{name}"
        return f"{names}'[{quoted(words)}]{takes}'" if short else f"{names}[{quoted(words)}]{takes}'"

    described = "\n".join(f"        '{name}:{quoted(summary)}'" for name, (summary, _) in commands.items())
    cases = "\n".join(f"        {name}) _arguments {' '.join(option(*one) for one in found.options)} '*:file:_files' ;;"
                      for name, (_, found) in commands.items())
    return f"""#compdef gpumem
# zsh completion of gpumem; generated from its --help
_gpumem() {{
    local -a commands=(
{described}
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    shift words
    (( CURRENT-- ))
    case $words[1] in
{cases}
    esac
}}
_gpumem "$@"
"""


def fish(commands):
    def quoted(text):
        return text.strip().replace("\n", "; ").replace("\\", "\\\\").replace("'", "\\'")

    lines = ["# fish completion of gpumem; generated from its --help"]
    names = " ".join(commands)
    for name, (summary, found) in commands.items():
        lines.append(f"complete -c gpumem -n 'not __fish_seen_subcommand_from {names}' -a {name} -d '{quoted(summary)}'")
        for short, option, argument, words in found.options:
            flag = f" -s {short[1:]}" if short else ""
            takes = " -r" if argument and not argument.startswith("[") else ""
            lines.append(f"complete -c gpumem -n '__fish_seen_subcommand_from {name}' -l {option[2:]}{flag}{takes}"
                         f" -d '{quoted(words)}'")
    return "\n".join(lines) + "\n"


def write(folder, name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def without_tables(text):
    """Tables as lists: a table of sentences is wider than a terminal, and man does not break it."""
    def as_list(table):
        rows = [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))]
                for row in table[0].strip().split("\n")]
        return "".join(f"\n{row[0] or '-'}\n: {'; '.join(filter(None, row[1:])) or '-'}\n" for row in rows[2:]) + "\n"

    return re.sub(r"(?:^\|.*\n)+", as_list, text, flags=re.M)


def from_markdown(md2man, name, section, version, summary, text):
    """A page from a part of the documentation; links lose their targets, which are files of the source tree."""
    text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
    head = f'% "{name.upper()}" "{section}" "" "gpumem {version}" "gpumem"\n\n# NAME\n\n{name} - {summary}\n\n'
    return subprocess.run([md2man], input=head + without_tables(text), check=True, capture_output=True, text=True).stdout


def main():
    gpumem, version, folder, md2man, source = sys.argv[1:6]
    overview = help_of(gpumem)
    names = [COMMAND.match(line).groups() for line in overview.split("\n") if COMMAND.match(line)]
    commands = {name: (summary, Help(help_of(gpumem, name))) for name, summary in names}
    pages = [f"gpumem-{name}(1)" for name in commands]
    others = ["gpumem-environment(7)", "gpumem-trace(5)"]
    write(folder, "man1/gpumem.1",
          page("gpumem", overview.split("\n", maxsplit=1)[0].split(": ", 1)[1], overview, version, pages + others))
    for name, (summary, _) in commands.items():
        write(folder, f"man1/gpumem-{name}.1",
              page(f"gpumem-{name}", summary, help_of(gpumem, name), version, ["gpumem(1)", *others]))
    with open(os.path.join(source, "README.md"), encoding="utf-8") as file:
        environment = re.search(r"^### Environment\n(.*?)^##", file.read(), re.M | re.S)[1]
    write(folder, "man7/gpumem-environment.7",
          from_markdown(md2man, "gpumem-environment", 7, version, "variables that the recorder reads",
                        "# DESCRIPTION\n" + environment))
    with open(os.path.join(source, "docs/trace-format.md"), encoding="utf-8") as file:
        write(folder, "man5/gpumem-trace.5",
              from_markdown(md2man, "gpumem-trace", 5, version, "the format of gpumem's traces",
                            re.sub(r"^# .*$", "# DESCRIPTION", file.read(), count=1, flags=re.M)))
    write(folder, "completion/gpumem", bash(commands))
    write(folder, "completion/_gpumem", zsh(commands))
    write(folder, "completion/gpumem.fish", fish(commands))


if __name__ == "__main__":
    main()
