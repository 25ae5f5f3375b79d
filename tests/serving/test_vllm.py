#!/usr/bin/env python3
"""vLLM, unpatched, with a model of two layers and no weights, run dry: test_vllm.py BUILD

Held against what a person can compute from the model's configuration: the bytes of its weights, and of the cache that
one token takes. The cache must be all that vLLM left itself of the device, and the dry run must have seen it. Nearly all
bytes at the peak have a stage and a line of vLLM's, and nothing is told as a leak, also of a server that sleeps, loads an
adapter, answers or guesses tokens.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

GIB = 1 << 30
CONFIGURATION = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "torch_dtype": "bfloat16", "hidden_act": "silu",
    "hidden_size": 4096, "intermediate_size": 12288, "num_attention_heads": 32, "num_key_value_heads": 8,
    "head_dim": 128, "vocab_size": 151936, "num_hidden_layers": 2, "max_position_embeddings": 40960,
    "rms_norm_eps": 1e-6, "rope_theta": 1000000, "tie_word_embeddings": False, "attention_bias": False}
DRAFT = dict(CONFIGURATION, hidden_size=1024, intermediate_size=3072, num_attention_heads=16, num_hidden_layers=1)


def weights_of(model):
    """Bytes, two each; norms are some KiB."""
    hidden, layers = model["hidden_size"], model["num_hidden_layers"]
    attention = 2 * hidden * model["head_dim"] * (model["num_attention_heads"] + model["num_key_value_heads"])
    return 2 * (2 * model["vocab_size"] * hidden + layers * (attention + 3 * hidden * model["intermediate_size"]))


def bytes_of_token(model):
    """In the cache: keys and values, two bytes each."""
    return 2 * 2 * model["num_hidden_layers"] * model["num_key_value_heads"] * model["head_dim"]


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
ANSWERS = """
    from vllm import SamplingParams
    prompts = [{"prompt_token_ids": list(range(1500))}] * 3  # more than one step reads
    found = llm.generate(prompts, SamplingParams(max_tokens=40, detokenize=False))
    assert [len(one.outputs[0].token_ids) for one in found] == [40] * 3, found
"""
GUESSES = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}
DRAFTS = {"method": "draft_model", "model": "draft", "num_speculative_tokens": 3}
# What it is, options of LLM(...), what the program does then, processes, the category that it adds at the peak.
SCENARIOS = [
    ("one process", {}, "", 0, None),
    ("two processes, answers", {}, ANSWERS, 1, None),
    ("sleeps and wakes", {"enable_sleep_mode": True}, SLEEPS, 0, None),
    ("loads an adapter", {"enable_lora": True, "max_lora_rank": 16}, ADAPTER, 0, "lora"),
    ("guesses tokens, answers", {"speculative_config": GUESSES}, ANSWERS, 0, None),
    ("has a model that guesses", {"speculative_config": DRAFTS}, ANSWERS, 0, None),
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
    models = [CONFIGURATION] + [DRAFT] * (options.get("speculative_config") == DRAFTS)
    expected, token = sum(map(weights_of, models)), sum(map(bytes_of_token, models))
    stages = 1 - categories.get("other", 0) / sum(categories.values())
    added = categories.get(adds, 0)
    assert abs(weights - expected) < 0.02 * GIB + added, (weights, added, expected)
    assert abs(tokens * token - cache) < 0.01 * GIB, (tokens, token, cache)
    assert dry["verdict"] == "fits" and weights + cache < dry["peak"] < dry["capacity"], dry
    assert min(stages, named) >= NAMED and (added or not adds), (stages, named, categories)
    print(f"ok   {what}: weights {weights / GIB:.2f} GiB, cache {cache / GIB:.2f} GiB, {tokens:,} tokens; "
          f"{100 * stages:.1f} % has a stage, {100 * named:.1f} % a line", flush=True)
    return tokens


with tempfile.TemporaryDirectory(prefix="gpumem-test-serving.") as scratch:
    for name, configuration in ("model", CONFIGURATION), ("draft", DRAFT):
        os.mkdir(f"{scratch}/{name}")
        with open(f"{scratch}/{name}/config.json", "w", encoding="utf-8") as file:
            json.dump(configuration, file)
    found = {scenario[0]: run(sys.argv[1], scratch, scenario) for scenario in SCENARIOS}
    assert found["one process"] == found["two processes, answers"] == found["keeps no prefixes"], found
