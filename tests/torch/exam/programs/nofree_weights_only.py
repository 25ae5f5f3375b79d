# exam: 5 sound
"""Loads the weights of two models, says how large they are, and ends."""
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = nn.Parameter(torch.empty(width, width, device="cuda"))
        self.value = nn.Parameter(torch.empty(width, width, device="cuda"))
        self.bias = nn.Parameter(torch.zeros(width, device="cuda"))


def build(depth, width):
    return nn.ModuleList(Layer(width) for _ in range(depth))


if __name__ == "__main__":
    models = [build(24, 512), build(12, 768)]
    for model in models:
        print(sum(p.numel() * p.element_size() for p in model.parameters()))
