# exam: 8 sick dense-gradient second-copy
"""An embedding of which each batch touches a few rows; its gradient is as large as the table."""
import torch
from torch import nn


class Recommender(nn.Module):
    def __init__(self, items, width):
        super().__init__()
        self.items = nn.Embedding(items, width)

    def forward(self, seen, target):
        return (self.items(seen).mean(1) * self.items(target)).sum(-1)  # cause


if __name__ == "__main__":
    model = Recommender(200000, 64).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(30):
        seen = torch.randint(0, 200000, (32, 10)).cuda()
        target = torch.randint(0, 200000, (32,)).cuda()
        loss = -model(seen, target).mean()
        optimizer.zero_grad()
        loss.backward()  # cause
        optimizer.step()
