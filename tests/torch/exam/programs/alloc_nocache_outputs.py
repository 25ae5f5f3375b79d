# exam: 6 sick retained growing leak
# exam-env: PYTORCH_NO_CUDA_MEMORY_CACHING=1
"""All masks of a video are kept for the last frame; caching is off, for a debugger's sake."""
import torch


class Segmenter:
    def __init__(self):
        self.prototype = torch.ones(720, 1280, device="cuda")
        self.masks = []

    def segment(self, frame):
        self.masks.append(torch.sigmoid(frame * self.prototype))  # cause
        return self.masks[-1].mean().item()


if __name__ == "__main__":
    segmenter = Segmenter()
    for _ in range(80):
        segmenter.segment(torch.rand(720, 1280, device="cuda"))
    print(len(segmenter.masks))
