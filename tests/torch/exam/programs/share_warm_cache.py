# exam: 4 sound
"""Position tables for each length are made when first needed; there are twenty lengths."""
import functools
import random

import torch


@functools.lru_cache(maxsize=None)
def positions(length):
    steps = torch.arange(length, device="cuda", dtype=torch.float32)
    return torch.sin(steps[:, None] * torch.ones(1, 2048, device="cuda"))


def handle(length):
    hidden = torch.rand(length, 2048, device="cuda")
    return (hidden + positions(length)).mean().item()


if __name__ == "__main__":
    random.seed(13)
    for _ in range(400):
        handle(random.randint(1, 20) * 32)
