#!/usr/bin/env python3
"""Programs of popular libraries, run dry: test_libraries.py BUILD PYTHON [--write FILE] [PROGRAM]...

Each must come to its end, be told to fit, and need what it must hold by its sizes. Those of SMALL must be told not to
fit a device with less memory than that. With the versions that the table of docs/dry-run-libraries.md names, needs
must be those of the table. --write puts the table there. What is not installed is skipped by name.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

BUILD, PYTHON = os.path.abspath(sys.argv[1]), sys.argv[2]
HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "../../../docs/dry-run-libraries.md")
BEGIN, END = "<!-- libraries -->\n", "<!-- end of libraries -->"
# Program: its packages, what it does, and what it comes to but its end.
PROGRAMS = {
    "trainer_gpt2": ("transformers", "Trainer, GPT-2", None),
    "trainer_llama": ("transformers", "Trainer, Llama, bf16, checkpointing, accumulation", None),
    "generate_greedy": ("transformers", "`generate()`, greedy", "(2, 48)"),
    "generate_sampling": ("transformers", "`generate()`, sampling by top-k and top-p", "(2, 48)"),
    "generate_beams": ("transformers", "`generate()`, three beams", "(2, 48)"),
    "whisper": ("transformers", "Whisper, `generate()`", "(2, 40)"),
    "peft_lora": ("peft", "LoRA, Trainer", None),
    "trl_sft": ("trl", "SFT, prompts masked", None),
    "trl_dpo": ("trl", "DPO", None),
    "trl_grpo": ("trl", "GRPO, generates its completions", None),
    "accelerate_loop": ("accelerate", "a loop of one's own, bf16, accumulation", None),
    "lightning": ("lightning", "Trainer, bf16, validation", None),
    "sentence_transformers": ("sentence-transformers", "Trainer, ranking loss; `encode()`", None),
    "diffusers_unet": ("diffusers", "U-Net, training", None),
    "detection": ("torchvision", "Faster R-CNN, training", None),
    "yolo": ("ultralytics", "YOLO, training and validation", None),
    "bitsandbytes_adam": ("bitsandbytes", "AdamW of 8 bits, GPT-2", None),
    "qlora": ("bitsandbytes peft", "QLoRA of 4 bits, paged AdamW of 8 bits", None),
    "deepspeed_2": ("deepspeed", "ZeRO-2, bf16", None),
    "deepspeed_3": ("deepspeed", "ZeRO-3, bf16", None),
    "torchao_quantized": ("torchao", "weights of int8, inference", None),
    "xformers_attention": ("xformers", "attention, forward and backward", None),
    "keras_fit": ("keras", "`fit()` on PyTorch, convolution", None),
    "jax_training": ("jax", "jit, value_and_grad", None),
}
SMALL = ("trainer_gpt2", "trl_sft", "accelerate_loop")


def versions():
    """{package: version} of those that are installed."""
    code = ("import importlib.metadata as m, json; print(json.dumps({d.metadata['Name'].lower(): d.version.split('+')[0] "
            "for d in m.distributions() if d.metadata['Name']}))")
    return json.loads(subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True).stdout)


def dry_run(program, *options):
    """(what the answer says, [what the program told in its runs], seconds, the exit code, stderr)."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        done = subprocess.run([BUILD + "/report/gpumem", "dry-run", "--json", "--no-keep", "--device", "h100", *options, "--",
                               PYTHON, "-W", "ignore", HERE + "/programs.py", program], capture_output=True, text=True,
                              check=False, timeout=900, cwd=folder, env=dict(os.environ, LIBRARIES_TOLD=folder + "/told"))
        seconds = time.monotonic() - began
        told = []
        if os.path.exists(folder + "/told"):
            with open(folder + "/told", encoding="utf-8") as file:
                told = file.read().splitlines()
    try:
        dry = json.loads(done.stdout)["dry_run"]
    except ValueError:
        dry = None
    return dry, told, seconds, done.returncode, done.stderr


def of_allocators(dry):
    return sum(part["bytes"] for part in dry["parts"] if part["name"] != "context and modules")


def mebibytes(dry):
    least, most = (round(dry[end] / (1 << 20)) for end in ("peak", "most"))
    return f"{least}" if least == most else f"{least} to {most}"


def how_sure(dry):
    if dry["values"]:
        return "of a run with values"
    return "at least" if dry["uncertain"] else "all known"


def wrongs(program, dry, told, code, errors):
    """What is wrong with an answer, each as a text."""
    if not dry:
        return [f"no JSON: {errors[-1500:]}"]
    holds = max((int(line.split()[1]) for line in told if line.startswith("holds ")), default=None)
    found = [] if (dry["verdict"], code) == ("fits", 0) else [f"{dry['verdict']}, exit {code}: {dry['reason']} {errors[-1500:]}"]
    end = PROGRAMS[program][2]
    if "came to the end" not in told or (end and f"came to {end}" not in told):
        found.append(f"it came to {[line for line in told if line.startswith('came')]}")
    if "Traceback (most recent call last)" in errors and not dry["values"]:
        found.append(f"it fails, and the answer does not say so: {errors[-1500:]}")
    if not holds or of_allocators(dry) < holds:
        found.append(f"it holds {holds} bytes, and is told to need {of_allocators(dry)}")
    return found


def check_small(program, holds):
    """A device that has a tenth less than what the program holds."""
    dry, _, _, code, errors = dry_run(program, "--memory", str((520 << 20) + holds * 9 // 10))
    if dry and (dry["verdict"], code) == ("does-not-fit", 1) and dry["peak"] > dry["capacity"]:
        return []
    return [f"with less than it holds: {dry and dry['verdict']}, exit {code} {errors[-1000:]}"]


def rows_of(text):
    """{program: cells of its row} of the page's table."""
    table = text.partition(BEGIN)[2].partition(END)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| `")]
    return {row[0].strip("`"): row for row in rows}


def main():
    arguments = sys.argv[3:]
    path = arguments.pop(arguments.index("--write") + 1) if "--write" in arguments else None
    asked = [one for one in arguments if one != "--write"] or list(PROGRAMS)
    installed, failures, skipped = versions(), [], []
    with open(PAGE, encoding="utf-8") as file:
        kept = rows_of(file.read())
    rows = {} if len(asked) == len(PROGRAMS) else dict(kept)
    for program in asked:
        packages, does, _ = PROGRAMS[program]
        missing = [name for name in packages.split() if name not in installed]
        if missing:
            skipped.append(f"{program}: {', '.join(missing)} not installed")
            continue
        dry, told, seconds, code, errors = dry_run(program)
        found = wrongs(program, dry, told, code, errors)
        if dry and not found:
            named = ", ".join(f"{name} {installed[name]}" for name in packages.split())
            row = [f"`{program}`", does, named, f"{seconds:.0f}", dry["verdict"], mebibytes(dry), how_sure(dry)]
            before = kept.get(program)
            if before and not path and before[2] == named and before[5:] != row[5:]:
                found.append(f"the table says {before[5:]}, and now it is {row[5:]}")
            rows[program] = row
            if program in SMALL:
                found += check_small(program, max(int(line.split()[1]) for line in told if line.startswith("holds ")))
            print("     " + " | ".join(row), flush=True)
        failures += [f"{program}: {wrong}" for wrong in found]
        for wrong in found:
            print(f"FAIL {program}: {wrong}", flush=True)
    for line in skipped:
        print("SKIP", line)
    if path:
        write(path, [rows[program] for program in PROGRAMS if program in rows], installed["torch"])
    print(f"{len(failures)} FAIL" if failures else "PASS")
    return bool(failures)


def write(path, rows, torch):
    with open(path, encoding="utf-8") as file:
        head, _, rest = file.read().partition(BEGIN)
    table = [f"PyTorch {torch}, device `h100`, two busy cores.\n",
             "| program | what it does | version | seconds | verdict | needs, MiB | how sure |", "|---|---|---|---|---|---|---|",
             *("| " + " | ".join(row) + " |" for row in rows)]
    with open(path, "w", encoding="utf-8") as file:
        file.write(re.sub(r"\n{3,}", "\n\n", head) + BEGIN + "\n".join(table) + "\n" + END + rest.partition(END)[2])


sys.exit(main())
