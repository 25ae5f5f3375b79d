#!/usr/bin/env python3
"""Starts of vLLM and SGLang that people published, run dry: test_published.py BUILD [--eager] [NAME]...

Prints what was published beside what `gpumem fit --serve` says, after a cold start and a warm one. Fails where weights are
off by more than 0.02 GiB, or where tokens that were published (the cache, where no tokens were; below 0 it was refused) are
more than 2 % from those of both starts, unless published.json says why (`missed`), or the engine that is installed beside
this interpreter is not of the version that was published (`taken_for`: of one that is not named, by its year and its
figures). Starts without a configuration there are listed only, and those of an engine that is not installed. --eager leaves
compiling out, which takes minutes: another start than the published one, and nothing is held against its tokens.
"""
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile

GIB = 1 << 30
HERE = os.path.dirname(os.path.abspath(__file__))

LOADS = ["--load-format", "dummy", "--skip-tokenizer-init"]
ENGINES = {  # package, what starts it, what starts it eagerly
    "vLLM": ("vllm", [os.path.join(os.path.dirname(sys.executable), "vllm"), "serve", "model", *LOADS], "--enforce-eager"),
    "SGLang": ("sglang", [sys.executable, "-m", "sglang.launch_server", "--model-path", "model", *LOADS], "--disable-cuda-graph"),
}


def engine_of(start):
    return ENGINES[start.get("engine", "vLLM")]


def version_of(start):
    try:
        return importlib.metadata.version(engine_of(start)[0])
    except importlib.metadata.PackageNotFoundError:
        return None


def run(build, start, configuration, is_eager):
    _, command, eagerly = engine_of(start)
    with tempfile.TemporaryDirectory(prefix="gpumem-test-published.") as folder:
        os.mkdir(folder + "/model")
        with open(folder + "/model/config.json", "w", encoding="utf-8") as file:
            json.dump(configuration, file)
        done = subprocess.run(
            [os.path.abspath(build) + "/report/gpumem", "fit", "--serve", "--json", "--devices",
             f"{start['device']}x{start['cards']}", *(["--memory", start["memory"]] if "memory" in start else []), "--",
             *command, *start["arguments"], *([eagerly] if is_eager else [])],
            cwd=folder, stdout=subprocess.PIPE, text=True, check=False, env=dict(
                os.environ, VLLM_NO_USAGE_STATS="1", HF_HUB_OFFLINE="1", VLLM_USE_FLASHINFER_SAMPLER="0", **start.get("environment", {})))
    return json.loads(done.stdout)["fit"]["serving"][0]


def is_near(share):
    return abs(share - 1) <= 0.02


def compare(start, found, is_eager):
    """Prints one start; returns whether it is as published."""
    told = {kind: found[kind] for kind in ("cold", "warm") if found[kind] and "tokens" in found[kind]["engine"]}
    if not told:
        print(f"{start['name']}: {found['why_not']}")
        return (start["cache"] or 0) < 0 and "No available memory for the cache" in found["why_not"]
    kept, shares = True, {}  # of what was published, by its figure: shares of it in the starts
    for kind, one in told.items():
        engine = one["engine"]
        for tokens in start["tokens"]:
            shares.setdefault(tokens, []).append(engine["tokens"] / tokens)
        if not start["tokens"]:
            shares.setdefault(start["cache"], []).append(engine["cache"] / GIB / start["cache"])
        off = engine["weights"] / GIB - start["weights"] if start["weights"] else 0
        kept = kept and abs(off) <= 0.02
        print(f"{start['name']} {kind}: weights {engine['weights'] / GIB:.2f} GiB ({off:+.2f}), cache {engine['cache'] / GIB:.2f} GiB, "
              f"{engine['tokens']:,} tokens ("
              + ", ".join(f"{share[-1] - 1:+.1%} of {figure:,}" for figure, share in shares.items())
              + f"), {one['seconds']:.0f} s, {engine['name']} {version_of(start)}", flush=True)
    return kept and (is_eager or all(any(map(is_near, share)) for share in shares.values()))


def main(build, *words):
    with open(HERE + "/published.json", encoding="utf-8") as file:
        published = json.load(file)
    names = [word for word in words if word != "--eager"]
    failed = []
    for start in published["starts"]:
        configuration = published["configurations"].get(start["model"])
        if names and start["name"] not in names:
            continue
        if not version_of(start):
            print(f"{start['name']}: SKIP: its engine is not installed")
        elif not configuration or not (start["tokens"] or start["cache"]):
            print(f"{start['name']}: SKIP: published too little to be run")
        elif "left_out" in start and not names:
            print(f"{start['name']}: SKIP, unless named: {start['left_out']}")
        elif not compare(start, run(build, start, configuration, "--eager" in words), "--eager" in words):
            why = start.get("missed")
            version = start["version"] or start.get("taken_for")
            if version not in (None, version_of(start)):
                why = f"published of {version}"
            print(f"{start['name']}: {why or 'MISSED, and nothing is known that would explain it'}")
            failed += [] if why else [start["name"]]
    if failed:
        sys.exit("not as published: " + ", ".join(failed))


main(*sys.argv[1:])
