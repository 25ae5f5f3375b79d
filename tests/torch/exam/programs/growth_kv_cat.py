# exam: 2 sick retained growing
"""A decoder whose cache is joined anew for each token and never reset between prompts."""
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.key_scale = nn.Parameter(torch.ones(width))
        self.value_scale = nn.Parameter(torch.ones(width))
        self.keys = self.values = None

    def forward(self, hidden):
        key, value = hidden * self.key_scale, hidden * self.value_scale
        if self.keys is None:
            self.keys, self.values = key, value
        else:
            self.keys = torch.cat([self.keys, key], dim=1)  # cause
            self.values = torch.cat([self.values, value], dim=1)  # cause
        return hidden + (self.keys.sum(1, keepdim=True) * self.values.mean(1, keepdim=True))


@torch.inference_mode()
def generate(layers, prompt, length):
    hidden = prompt
    for _ in range(length):
        for layer in layers:
            hidden = layer(hidden)
    return hidden


if __name__ == "__main__":
    network = nn.ModuleList(Attention(1024) for _ in range(4)).cuda()
    for _ in range(12):
        generate(network, torch.rand(8, 1, 1024, device="cuda"), 20)
