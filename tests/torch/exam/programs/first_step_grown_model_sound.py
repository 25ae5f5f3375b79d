# exam: 9 sound
"""A model that gets another block at each of five stages, as it is meant to."""
import torch
from torch import nn


class Growing(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList()

    def grow(self, width):
        self.blocks.append(nn.LayerNorm([64, width]))

    def forward(self, x):
        for block in self.blocks:
            x = torch.relu(block(x))
        return x


model = Growing()
for stage in range(5):
    model.grow(2048)
    model.cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(25):
        optimizer.zero_grad()
        model(torch.rand(8, 64, 2048, device="cuda")).mean().backward()
        optimizer.step()
