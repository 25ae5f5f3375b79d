#!/usr/bin/env python3
"""Starts of vLLM that people published, run dry: test_published.py BUILD [--eager] [NAME]...

Prints what was published beside what `gpumem fit --serve` says, after a cold start and a warm one. Fails where weights are
off by more than 0.02 GiB, or where tokens that were published are more than 2 % from those of both starts. Starts without a configuration in
published.json are listed only. --eager leaves compiling out, which takes minutes: another start than the published one,
and nothing is held against its tokens.
"""
import json
import os
import subprocess
import sys
import tempfile

GIB = 1 << 30
HERE = os.path.dirname(os.path.abspath(__file__))
VLLM = os.path.join(os.path.dirname(sys.executable), "vllm")


def run(build, start, configuration, is_eager):
    with tempfile.TemporaryDirectory(prefix="gpumem-test-published.") as folder:
        os.mkdir(folder + "/model")
        with open(folder + "/model/config.json", "w", encoding="utf-8") as file:
            json.dump(configuration, file)
        done = subprocess.run(
            [os.path.abspath(build) + "/report/gpumem", "fit", "--serve", "--json", "--devices",
             f"{start['device']}x{start['cards']}", *(["--memory", start["memory"]] if "memory" in start else []), "--", VLLM, "serve",
             "model", "--load-format", "dummy", "--skip-tokenizer-init", *start["arguments"],
             *(["--enforce-eager"] if is_eager else [])], cwd=folder, stdout=subprocess.PIPE, text=True, check=False,
            env=dict(os.environ, VLLM_NO_USAGE_STATS="1", HF_HUB_OFFLINE="1", VLLM_USE_FLASHINFER_SAMPLER="0",
                     **start.get("environment", {})))
    return json.loads(done.stdout)["fit"]["serving"][0]


def compare(start, found, is_eager):
    """Prints one start; returns whether it is as published."""
    told = {kind: found[kind] for kind in ("cold", "warm") if found[kind] and "tokens" in found[kind]["engine"]}
    if not told:
        print(f"{start['name']}: {found['why_not']}")
        return False
    for kind, one in told.items():
        engine = one["engine"]
        shares = ", ".join(f"{engine['tokens'] / tokens - 1:+.1%} of {tokens:,}" for tokens in start["tokens"])
        print(f"{start['name']} {kind}: weights {engine['weights'] / GIB:.2f} GiB ({engine['weights'] / GIB - start['weights']:+.2f}), "
              f"cache {engine['cache'] / GIB:.2f} GiB, {engine['tokens']:,} tokens ({shares}), {one['seconds']:.0f} s", flush=True)
    engines = [one["engine"] for one in told.values()]
    return all(abs(engine["weights"] / GIB - start["weights"]) <= 0.02 for engine in engines) and (is_eager or all(
        any(abs(engine["tokens"] / tokens - 1) <= 0.02 for engine in engines) for tokens in start["tokens"]))


def main(build, *words):
    with open(HERE + "/published.json", encoding="utf-8") as file:
        published = json.load(file)
    names = [word for word in words if word != "--eager"]
    failed = []
    for start in published["starts"]:
        configuration = published["configurations"].get(start["model"])
        if names and start["name"] not in names:
            continue
        if not configuration or not start["weights"] or not start["tokens"]:
            print(f"{start['name']}: SKIP: published too little to be run")
        elif not compare(start, run(build, start, configuration, "--eager" in words), "--eager" in words):
            failed.append(start["name"])
    if failed:
        sys.exit("not as published: " + ", ".join(failed))


main(*sys.argv[1:])
