# exam: 2 sound
"""The same decoder with a window: the cache holds the last 64 tokens."""
import torch
from torch import nn

WINDOW = 64


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.key_scale = nn.Parameter(torch.ones(width))
        self.cache = None

    def forward(self, hidden):
        key = hidden * self.key_scale
        joined = key if self.cache is None else torch.cat([self.cache, key], dim=1)
        self.cache = joined[:, -WINDOW:].contiguous()
        return hidden + self.cache.mean(1, keepdim=True)


@torch.inference_mode()
def generate(layers, hidden, length):
    for _ in range(length):
        for layer in layers:
            hidden = layer(hidden)
    return hidden


if __name__ == "__main__":
    network = nn.ModuleList(Attention(1024) for _ in range(4)).cuda()
    for _ in range(12):
        generate(network, torch.rand(8, 1, 1024, device="cuda"), 20)
