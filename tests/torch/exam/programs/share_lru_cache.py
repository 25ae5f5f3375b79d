# exam: 4 sound
"""An LRU cache of prefixes: thirty-two at most."""
import random
from collections import OrderedDict

import torch


class PrefixCache:
    def __init__(self, capacity):
        self.entries = OrderedDict()
        self.capacity = capacity

    def get(self, key, make):
        if key in self.entries:
            self.entries.move_to_end(key)
            return self.entries[key]
        value = self.entries[key] = make(key)
        while len(self.entries) > self.capacity:
            self.entries.popitem(last=False)
        return value


def prefill(key):
    return torch.rand(256, 1024, device="cuda") * key


if __name__ == "__main__":
    random.seed(2)
    cache = PrefixCache(32)
    for _ in range(600):
        prefix = cache.get(int(random.expovariate(0.02)), prefill)
        (prefix + torch.rand(256, 1024, device="cuda")).mean().item()
