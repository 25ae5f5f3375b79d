"""A reader without a model: it asks `gpumem ask verdict`, then what each answer says is worth asking next, in order.

What it needs until an answer names a line of the cause is what an agent needs at most.
"""
import json
import os
import shlex
import subprocess

CALLS = 6
BYTES = 20 * 1000


def ask(gpumem, command, folder):
    """The answer to a command of `next`, and its bytes."""
    words = shlex.split(command)
    assert words[:2] == ["gpumem", "ask"], command
    done = subprocess.run([gpumem, *words[1:]], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return json.loads(done.stdout), len(done.stdout)


def places(answer):
    """(base name of the file, line) of all that the answer names."""
    if isinstance(answer, dict):
        if answer.get("file"):
            yield os.path.basename(answer["file"]), answer.get("line")
        answer = list(answer.values())
    if isinstance(answer, list):
        for part in answer:
            yield from places(part)


def walk(gpumem, folder, subject, causes):
    """(whether a cause was named, calls, bytes). `subject`: a trace or ""; `causes`: (base name, line)."""
    todo, asked, size = [f"gpumem ask {shlex.quote(subject)} verdict" if subject else "gpumem ask verdict"], [], 0
    while todo and len(asked) < CALLS and size < BYTES:
        command = todo.pop(0)
        asked.append(command)
        answer, more = ask(gpumem, command, folder)
        size += more
        if size <= BYTES and causes & set(places(answer)):
            return True, len(asked), size
        todo += [step["command"] for step in answer.get("next", []) if step["command"] not in asked + todo]
    return False, len(asked), size
