#!/usr/bin/env python3
"""The time of a training step: step_time.py [history]. Prints NOTE step {"milliseconds": ...}, a median.

Small layers, so that a step has many short kernels and allocations, which is the hard case for a recorder. `history`
has PyTorch record its own history of memory, with stacks of Python and C++, as its documentation does.
"""
import json
import statistics
import sys
import time

import torch

WARM, STEPS = 20, 100


def main():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.0, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 6).to("cuda")
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = torch.randn(16, 128, 256, device="cuda")
    if "history" in sys.argv[1:]:
        torch.cuda.memory._record_memory_history(max_entries=1000000)
    times = []
    for step in range(WARM + STEPS):
        begin = time.perf_counter()
        loss = (model(data) ** 2).mean()
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        torch.cuda.synchronize()
        if step >= WARM:
            times.append((time.perf_counter() - begin) * 1000)
    print("NOTE step", json.dumps({"milliseconds": statistics.median(times)}))


if __name__ == "__main__":
    main()
