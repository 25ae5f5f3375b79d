#!/usr/bin/env python3
"""vLLM, unpatched, with a model of two layers and no weights, run dry: test_vllm.py BUILD

Held against what a person can compute from the model's configuration: the bytes of its weights, and of the cache that
one token takes. The cache must be all that vLLM left itself of the device, and the dry run must have seen it. Nearly all
bytes at the peak have a stage and a line of vLLM's, and nothing is told as a leak, also of a server that sleeps, loads an
adapter, or guesses tokens.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

GIB = 1 << 30
HIDDEN, INNER, HEADS, KV_HEADS, HEAD, VOCABULARY, LAYERS = 4096, 12288, 32, 8, 128, 151936, 2
CONFIGURATION = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "torch_dtype": "bfloat16", "hidden_act": "silu",
    "hidden_size": HIDDEN, "intermediate_size": INNER, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
    "head_dim": HEAD, "vocab_size": VOCABULARY, "num_hidden_layers": LAYERS, "max_position_embeddings": 40960,
    "rms_norm_eps": 1e-6, "rope_theta": 1000000, "tie_word_embeddings": False, "attention_bias": False}
ATTENTION = 2 * HIDDEN * HEADS * HEAD + 2 * HIDDEN * KV_HEADS * HEAD
WEIGHTS = 2 * (2 * VOCABULARY * HIDDEN + LAYERS * (ATTENTION + 3 * HIDDEN * INNER))  # bytes; norms are some KiB
TOKEN = 2 * 2 * LAYERS * KV_HEADS * HEAD  # bytes of the cache: keys and values, two bytes each
PROGRAM = """
from vllm import LLM
if __name__ == "__main__":
    llm = LLM(model="model", load_format="dummy", skip_tokenizer_init=True, enforce_eager=True, max_model_len=2048,
              gpu_memory_utilization=0.9, max_num_batched_tokens=2048, max_num_seqs=64, **OPTIONS)
"""
SLEEPS = """
    for level in (1, 2):
        llm.sleep(level=level)
        llm.wake_up()
"""
ADAPTER = """
    import json
    import os
    import torch
    from safetensors.torch import save_file
    from vllm.lora.request import LoRARequest
    os.mkdir("adapter")
    with open("adapter/adapter_config.json", "w") as file:
        json.dump({"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": ["o_proj"], "bias": "none",
                   "task_type": "CAUSAL_LM"}, file)
    save_file({f"base_model.model.model.layers.{layer}.self_attn.o_proj.lora_{half}.weight": torch.zeros(*shape)
               for layer in range(2) for half, shape in (("A", (8, 4096)), ("B", (4096, 8)))},
              "adapter/adapter_model.safetensors")
    assert llm.llm_engine.add_lora(LoRARequest("one", 1, os.path.abspath("adapter")))
"""
GUESSES = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}
# What it is, options of LLM(...), what the program does then, processes, the category that it adds at the peak.
SCENARIOS = [
    ("one process", {}, "", 0, None),
    ("two processes", {}, "", 1, None),
    ("sleeps and wakes", {"enable_sleep_mode": True}, SLEEPS, 0, None),
    ("loads an adapter", {"enable_lora": True, "max_lora_rank": 16}, ADAPTER, 0, "lora"),
    ("guesses tokens", {"speculative_config": GUESSES}, "", 0, None),
    ("keeps no prefixes", {"enable_prefix_caching": False}, "", 0, None),
]
NAMED = 0.95  # of the bytes at the peak


def held(build, folder):
    """{category: bytes} of blocks at the peak, and how many of all have a line of vLLM's, of the run that was kept last."""
    done = subprocess.run([os.path.abspath(build) + "/report/gpumem", "report", "--json"], cwd=folder, capture_output=True,
                          text=True, timeout=120, check=True)
    document = json.loads(done.stdout)
    traces = [one for one in document.get("traces", [document]) if one.get("framework_blocks")]
    assert len(traces) == 1 and all(one["class"] != "leak" for one in traces[0]["leaks"]), traces
    peak = traces[0]["framework_blocks"][0]["at_peak"]
    lines = sum(line["bytes"] for line in peak["lines"] if line["file"] and "/vllm/" in line["file"])
    return {one["category"]: one["bytes"] for one in peak["categories"] if one["category"] != "cache"}, lines / peak["allocated"]


def run(build, folder, scenario):
    what, options, then, processes, adds = scenario
    with open(folder + "/program.py", "w", encoding="utf-8") as file:
        file.write(PROGRAM.replace("OPTIONS", repr(options)) + then)
    done = subprocess.run(
        [os.path.abspath(build) + "/report/gpumem", "dry-run", "--once", "--json", "--device", "rtx5090", "--",
         sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, timeout=580, check=False,
        env=dict(os.environ, VLLM_NO_USAGE_STATS="1", HF_HUB_OFFLINE="1",
                 VLLM_ENABLE_V1_MULTIPROCESSING=str(processes)))
    text = done.stdout + done.stderr
    assert done.returncode == 0, text[-4000:]
    weights = float(re.search(r"Model loading took ([\d.]+) GiB", text)[1]) * GIB
    cache = float(re.search(r"Available KV cache memory: ([\d.]+) GiB", text)[1]) * GIB
    tokens = int(re.search(r"GPU KV cache size: ([\d,]+) tokens", text)[1].replace(",", ""))
    document = re.search(r'^\{("|$)', done.stdout, re.M)  # after what vLLM printed
    dry = json.loads(done.stdout[document.start():])["dry_run"]
    categories, named = held(build, folder)
    stages = 1 - categories.get("other", 0) / sum(categories.values())
    added = categories.get(adds, 0)
    assert abs(weights - WEIGHTS) < 0.02 * GIB + added, (weights, added, WEIGHTS)
    assert abs(tokens * TOKEN - cache) < 0.01 * GIB, (tokens, TOKEN, cache)
    assert dry["verdict"] == "fits" and weights + cache < dry["peak"] < dry["capacity"], dry
    assert min(stages, named) >= NAMED and (added or not adds), (stages, named, categories)
    print(f"ok   {what}: weights {weights / GIB:.2f} GiB, cache {cache / GIB:.2f} GiB, {tokens:,} tokens; "
          f"{100 * stages:.1f} % has a stage, {100 * named:.1f} % a line", flush=True)
    return tokens


with tempfile.TemporaryDirectory(prefix="gpumem-test-serving.") as scratch:
    os.mkdir(scratch + "/model")
    with open(scratch + "/model/config.json", "w", encoding="utf-8") as file:
        json.dump(CONFIGURATION, file)
    found = {scenario[0]: run(sys.argv[1], scratch, scenario) for scenario in SCENARIOS}
    assert found["one process"] == found["two processes"] == found["keeps no prefixes"], found
