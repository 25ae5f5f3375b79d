# exam: 8 sound
"""The recommender with a gradient of the rows that were touched."""
import torch
from torch import nn


class Recommender(nn.Module):
    def __init__(self, items, width):
        super().__init__()
        self.items = nn.Embedding(items, width, sparse=True)

    def forward(self, seen, target):
        return (self.items(seen).mean(1) * self.items(target)).sum(-1)


if __name__ == "__main__":
    model = Recommender(200000, 64).cuda()
    for _ in range(30):
        seen = torch.randint(0, 200000, (32, 10)).cuda()
        target = torch.randint(0, 200000, (32,)).cuda()
        model(seen, target).mean().backward()
        model.items.weight.grad = None
