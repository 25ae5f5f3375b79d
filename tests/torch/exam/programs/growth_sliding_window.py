# exam: 2 sound
"""A moving average over the last sixteen frames of a video."""
from collections import deque

import torch


def frames(count):
    for _ in range(count):
        yield torch.rand(3, 512, 512, device="cuda")


def smooth(source, window):
    recent = deque(maxlen=window)
    for frame in source:
        recent.append(frame * 2 - 1)
        yield torch.stack(list(recent)).mean(0)


if __name__ == "__main__":
    total = sum(result.shape[0] for result in smooth(frames(200), 16))
    print(total)
