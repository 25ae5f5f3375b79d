#!/usr/bin/env python3
"""vLLM, unpatched, with a model of two layers and no weights, run dry: test_vllm.py BUILD

Held against what a person can compute from the model's configuration: the bytes of its weights, and of the cache that
one token takes. The cache must be all that vLLM left itself of the device, and the dry run must have seen it.
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
    LLM(model="model", load_format="dummy", skip_tokenizer_init=True, enforce_eager=True, max_model_len=2048,
        gpu_memory_utilization=0.9, max_num_batched_tokens=2048, max_num_seqs=64)
"""


def run(build, folder, processes):
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
    assert abs(weights - WEIGHTS) < 0.02 * GIB, (weights, WEIGHTS)
    assert abs(tokens * TOKEN - cache) < 0.01 * GIB, (tokens, TOKEN, cache)
    assert dry["verdict"] == "fits" and weights + cache < dry["peak"] < dry["capacity"], dry
    print(f"ok   {'two processes' if processes else 'one process'}: weights {weights / GIB:.2f} GiB, "
          f"cache {cache / GIB:.2f} GiB, {tokens:,} tokens", flush=True)
    return tokens


with tempfile.TemporaryDirectory(prefix="gpumem-test-serving.") as scratch:
    os.mkdir(scratch + "/model")
    with open(scratch + "/model/config.json", "w", encoding="utf-8") as file:
        json.dump(CONFIGURATION, file)
    with open(scratch + "/program.py", "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    assert run(sys.argv[1], scratch, 0) == run(sys.argv[1], scratch, 1)
