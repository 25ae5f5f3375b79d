#!/usr/bin/env python3
"""What gpumem fit says of remedies with the real PyTorch, held against programs that are edited by hand: each has the
lines that the remedy says to write, and must have the same peaks to the byte: test_fit_wheel.py BUILD PYTHON
[PROGRAM[:REMEDY,...]]...

It prints a line for each remedy: in which programs peaks were equal, and why it was not tried in the others.
"""
import json
import os
import subprocess
import sys
import tempfile

BUILD, PYTHON = os.path.abspath(sys.argv[1]), sys.argv[2]
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = HERE + "/fit_programs.py"
PROGRAMS = {"language": 8, "encoder": 16, "convolutions": 32, "perceptron": 16, "two_models": 64, "causal": 8, "recurrent": 16,
            "diffusion": 16, "adapters": 16, "vision": 16}
WORLD = 'import torch.distributed as d; d.init_process_group("nccl", store=d.HashStore(), rank=0, world_size={})'
INDENT = "    "


def lines_with(text, program, mark, write):
    """The source with lines at a mark of one program: below [model], in place of the line otherwise; None: take away."""
    lines, is_inside, changed = [], False, 0
    for line in text.splitlines():
        if line.startswith("def "):
            is_inside = line == f"def {program}():"
        if is_inside and mark in line:
            changed += 1
            depth = line[:len(line) - len(line.lstrip())]
            new = [depth + one for one in "\n".join(write).splitlines()]
            lines += ([line] if mark == "[model]" else []) + (new or [depth + "pass"])
        else:
            lines.append(line)
    assert changed, (program, mark)
    return "\n".join(lines) + "\n"


def edited(program, remedy):
    """The source with a remedy's lines; None: it has none that can be edited in by a rule."""
    with open(SOURCE, encoding="utf-8") as file:
        text = file.read()
    name, write = remedy["name"], remedy["write"]
    if name.startswith("FSDP2"):
        return lines_with(text, program, "[model]", [WORLD.format(name.split()[-1]), *write])
    if name.startswith(("foreach", "fused")):
        parameters = "[*first.parameters(), *second.parameters()]" if program == "two_models" else "model.parameters()"
        return lines_with(text, program, "[optimizer]", ["optimizer = " + write[0].replace("first.parameters()", parameters)])
    if name == "in backward":
        parameters = "[*first.parameters(), *second.parameters()]" if program == "two_models" else "model.parameters()"
        text = lines_with(text, program, "[optimizer]", [line.replace("first.parameters()", parameters) for line in write])
        text = lines_with(text, program, "[step]", [])
        return without_zero(text, program)
    if name == "loss in pieces":
        return lines_with(text, program, "[loss]", write)
    if name in ("8-bit state", "paged state"):
        parameters = "[*first.parameters(), *second.parameters()]" if program == "two_models" else "model.parameters()"
        return lines_with(text, program, "[optimizer]", [write[0], "optimizer = " + write[1].replace("first.parameters()", parameters)])
    if name.startswith("zero_grad"):
        return lines_with(text, program, "[zero]", write)
    if name.startswith("accumulation"):
        text = lines_with(text, program, "[step]", write)
        return without_zero(text, program)
    return lines_with(text, program, "[model]", write)


def without_zero(text, program):
    """The source without what sets gradients to zero in a line of its own."""
    body = text.partition(f"def {program}():")[2].partition("\ndef ")[0]
    return lines_with(text, program, "[zero]", []) if "[zero]" in body else text


def gpumem(*arguments, **environment):
    done = subprocess.run([BUILD + "/report/gpumem", *arguments], capture_output=True, text=True, timeout=3000, check=False,
                          env=dict(os.environ, **environment))
    return json.loads(done.stdout), done


def dry_run(path, program, batch, **environment):
    """Each run compiles anew, as those of fit do."""
    document, done = gpumem("dry-run", "--json", "--device", "a100-40", "--memory", str(1 << 40), "--max-steps", "auto", "--",
                            PYTHON, "-W", "ignore", path, program, str(batch), GPUMEM_DRY_COMPILED=folder, **environment)
    return document["dry_run"], done.stderr


def pool_of(parts):
    """(PyTorch's tensors, all that its allocator reserved)."""
    sizes = {part["name"]: part["bytes"] for part in parts}
    return sizes.get("PyTorch's tensors", 0), sizes.get("PyTorch's tensors", 0) + sizes.get("PyTorch's cache", 0)


def compare(program, batch, base, remedy):
    """What the table says of a remedy: what it saves by both ways; and what is wrong, or None."""
    name = remedy["name"]
    path = f"{folder}/{program}.py"
    if remedy["write"][0].startswith("PYTORCH_ALLOC_CONF="):
        setting, _, value = remedy["write"][0].partition("=")
        dry, _ = dry_run(SOURCE, program, batch, **{setting: value})
        saved = pool_of(base["parts"])[1] - pool_of(dry["parts"])[1]
        return f"{saved} and {remedy['saves']}" if max(0, saved) != remedy["saves"] else "equal", None
    with open(path, "w", encoding="utf-8") as file:
        file.write(edited(program, remedy))
    count = int(name.split()[-1]) if name.startswith("accumulation") else 1
    dry, errors = dry_run(path, program, int(batch) // count)
    if dry["command_exit"] != 0:
        return "fails", f"edited, it fails: {errors[-600:]}"
    tensors = [pool_of(parts)[0] for parts in (dry["parts"], remedy["parts_of_need"])]
    if tensors[0] == tensors[1] and dry["peak"] == remedy["peak"]:
        return "equal", None
    said = f"{tensors} tensors, {dry['peak']} and {remedy['peak']} in all"
    is_wrong = remedy["kind"] == "exact" or (tensors[0] != tensors[1] and name != "paged state")
    return said, said if is_wrong else None


failures, rows = [], {}
with tempfile.TemporaryDirectory() as folder:
    asked_for = sys.argv[3:] or list(PROGRAMS)
    for asked in asked_for:
        program, _, remedies = asked.partition(":")
        batch = str(PROGRAMS[program])
        document, _ = gpumem("fit", "--json", "--device", "a100-40", "--over", "BATCH=" + batch, "--remedies=" + remedies, "--",
                             PYTHON, "-W", "ignore", SOURCE, program, "{BATCH}")
        for remedy in document["remedies"]:
            if len(remedy["parts"]) > 1:
                continue
            if remedy["verdict"] == "failed":
                said, wrong = "fails", remedy["why_not"]
            elif not remedy["write"] or (remedy["peak"] is None and remedy["saves"] is None):
                said, wrong = remedy["why_not"], None if remedy["why_not"] else "not tried, and nothing says why"
            elif remedy["why_not"] and remedy["peak"] is None:
                said, wrong = remedy["why_not"], None # a bound
            else:
                said, wrong = compare(program, batch, document["fit"]["base"], remedy)
            rows.setdefault(remedy["name"], {})[program] = said
            failures += [f"{program}: {remedy['name']}: {wrong}"] if wrong else []
            print(f"     {program}: {remedy['name']}, {remedy['kind']}: {said}; saves {remedy['saves']}", flush=True)
for name, said in rows.items():
    equal = [program for program, one in said.items() if one == "equal"]
    others = [f"{program}: {one}" for program, one in said.items() if one != "equal"]
    print(f"{name}: {'; '.join(['equal in ' + ', '.join(equal)] * bool(equal) + others)}")
print(f"{sum('equal' in said.values() for said in rows.values())} remedies were equal to the byte in a program or more")
print("FAIL:\n" + "\n".join(failures) if failures else "PASS")
sys.exit(bool(failures))
