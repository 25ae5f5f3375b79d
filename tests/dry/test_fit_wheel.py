#!/usr/bin/env python3
"""What gpumem fit says of remedies with the real PyTorch, held against programs that are edited by hand: each has the
lines that the remedy says to write, and must have the same peaks to the byte: test_fit_wheel.py BUILD PYTHON
[PROGRAM[:REMEDY,...]]...
"""
import json
import os
import subprocess
import sys
import tempfile

BUILD, PYTHON = os.path.abspath(sys.argv[1]), sys.argv[2]
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = HERE + "/fit_programs.py"
PROGRAMS = {"language": 8, "encoder": 16, "convolutions": 32, "perceptron": 16, "two_models": 64}
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
        return lines_with(text, program, "[zero]", []) if program == "encoder" else text
    if name == "loss in pieces":
        return lines_with(text, program, "[loss]", write)
    if name.startswith("zero_grad"):
        return lines_with(text, program, "[zero]", write)
    if name.startswith("accumulation"):
        text = lines_with(text, program, "[step]", write)
        return lines_with(text, program, "[zero]", []) if program == "encoder" else text
    return lines_with(text, program, "[model]", write)


def gpumem(*arguments):
    done = subprocess.run([BUILD + "/report/gpumem", *arguments], capture_output=True, text=True, timeout=3000, check=False,
                          env=dict(os.environ, TORCHINDUCTOR_CACHE_DIR=folder + "/inductor"))
    return json.loads(done.stdout), done


failures, compared = [], set()
with tempfile.TemporaryDirectory() as folder:
    for asked in sys.argv[3:] or PROGRAMS:
        program, _, remedies = asked.partition(":")
        batch = str(PROGRAMS[program])
        document, _ = gpumem("fit", "--json", "--device", "a100-40", "--over", "BATCH=" + batch, "--remedies=" + remedies, "--",
                             PYTHON, "-W", "ignore", SOURCE, program, "{BATCH}")
        for remedy in document["remedies"]:
            if remedy["verdict"] == "failed":
                failures.append(f"{program}: {remedy['name']}: {remedy['why_not']}")
            if remedy["peak"] is None or len(remedy["parts"]) > 1 or remedy["verdict"] == "failed":
                continue
            path = f"{folder}/{program}.py"
            with open(path, "w", encoding="utf-8") as file:
                file.write(edited(program, remedy))
            count = int(remedy["name"].split()[-1]) if remedy["name"].startswith("accumulation") else 1
            by_hand, done = gpumem("dry-run", "--json", "--device", "a100-40", "--memory", str(1 << 40), "--max-steps",
                                   "auto", "--", PYTHON, "-W", "ignore", path, program, str(int(batch) // count))
            dry = by_hand["dry_run"]
            tensors = [{part["name"]: part["bytes"] for part in parts}.get("PyTorch's tensors")
                       for parts in (dry["parts"], remedy["parts_of_need"])]
            is_equal = tensors[0] == tensors[1] and dry["peak"] == remedy["peak"]
            if dry["command_exit"] != 0:
                failures.append(f"{program}: {remedy['name']}: edited, it fails: {done.stderr[-600:]}")
            elif not is_equal and (remedy["kind"] == "exact" or tensors[0] != tensors[1]):
                failures.append(f"{program}: {remedy['name']}: {tensors} tensors, {dry['peak']} and {remedy['peak']} in all")
            compared.add(remedy["name"])
            print(f"     {program}: {remedy['name']}: {'equal' if is_equal else tensors}, saves {remedy['saves']}", flush=True)
print(f"{len(compared)} remedies compared")
print("FAIL:\n" + "\n".join(failures) if failures else "PASS")
sys.exit(bool(failures))
