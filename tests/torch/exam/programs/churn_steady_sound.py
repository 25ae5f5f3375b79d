# exam: 7 sound
"""Batches of varying length through the pool, with room enough."""
import random

import torch


def encode(batch, gain):
    return torch.tanh(batch * gain)


def main():
    random.seed(4)
    gain = torch.ones(1024, device="cuda")
    for _ in range(200):
        rows = random.randint(100, 900)
        encode(torch.rand(rows, 1024, device="cuda"), gain).sum().item()


main()
