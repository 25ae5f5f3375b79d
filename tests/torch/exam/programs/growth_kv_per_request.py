# exam: 2 sound
"""A cache by torch.cat that lives as long as its request."""
import random

import torch


class Cache:
    def __init__(self, layers):
        self.entries = [None] * layers

    def append(self, layer, key):
        old = self.entries[layer]
        self.entries[layer] = key if old is None else torch.cat([old, key])
        return self.entries[layer]


def answer(weights, length):
    cache = Cache(len(weights))
    hidden = torch.rand(1, 8192, device="cuda")
    for _ in range(length):
        for layer, weight in enumerate(weights):
            hidden = torch.tanh(hidden * weight + cache.append(layer, hidden).mean(0))
    return hidden.sum().item()


if __name__ == "__main__":
    random.seed(3)
    parameters = [torch.ones(8192, device="cuda") for _ in range(3)]
    with torch.no_grad():
        for _ in range(40):
            answer(parameters, random.randint(10, 40))
