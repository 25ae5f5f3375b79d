# exam: 11 sound
"""Batches go through four pinned buffers in turn."""
import itertools

import torch


def feed(batches):
    ring = itertools.cycle([torch.empty(64, 4096, pin_memory=True) for _ in range(4)])
    for batch in batches:
        staged = next(ring)
        staged.copy_(batch)
        yield staged.to("cuda", non_blocking=True)


if __name__ == "__main__":
    host = [torch.rand(64, 4096) for _ in range(10)]
    for _ in range(8):
        for moved in feed(host):
            moved.mean().item()
