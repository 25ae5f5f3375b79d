# exam: 3 sound
"""The encoder whose outputs are pooled to one number per batch."""
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.Parameter(torch.ones(width))

    def forward(self, hidden):
        return torch.nn.functional.gelu(hidden * self.norm)


class Encoder(nn.Module):
    def __init__(self, depth, width):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width) for _ in range(depth))

    def forward(self, hidden):
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden


if __name__ == "__main__":
    encoder = Encoder(12, 1024).cuda()
    means = []
    with torch.no_grad():
        for _ in range(80):
            means.append(encoder(torch.rand(256, 1024, device="cuda")).mean().item())
    print(len(means))
