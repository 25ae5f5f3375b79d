# exam: 7 sick churn
# exam-env: GPUMEM_SIM_MEMORY=1G
"""Batches of every size in a device that is nearly full: each new size empties the cache first."""
import random

import torch


def encode(batch, gain):
    return torch.tanh(batch * gain)  # cause


def main():
    random.seed(4)
    gain = torch.ones(1024, device="cuda")
    weights = [torch.zeros(32 << 18, device="cuda") for _ in range(12)]
    for _ in range(80):
        rows = random.randint(20, 50) * 1024
        batch = torch.rand(rows, 1024, device="cuda")  # cause
        encode(batch, gain).sum().item()
        del batch
    return weights


main()
