# exam: 6 sound
# exam-env: PYTORCH_NO_CUDA_MEMORY_CACHING=1
"""The last eight masks of a video, without caching."""
from collections import deque

import torch


class Segmenter:
    def __init__(self):
        self.prototype = torch.ones(720, 1280, device="cuda")
        self.masks = deque(maxlen=8)

    def segment(self, frame):
        self.masks.append(torch.sigmoid(frame * self.prototype))
        return self.masks[-1].mean().item()


if __name__ == "__main__":
    segmenter = Segmenter()
    for _ in range(80):
        segmenter.segment(torch.rand(720, 1280, device="cuda"))
