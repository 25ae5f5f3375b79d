# exam: 3 sick retained growing
"""Features for a probe: the last layer's output of each batch is kept on the device."""
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.Parameter(torch.ones(width))

    def forward(self, hidden):
        return torch.nn.functional.gelu(hidden * self.norm)  # cause


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
    features = []
    with torch.no_grad():
        for _ in range(80):
            features.append(encoder(torch.rand(256, 1024, device="cuda")))
    print(len(features))
