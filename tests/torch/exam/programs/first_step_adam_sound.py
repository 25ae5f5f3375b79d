# exam: 9 sound
"""Adam makes its state in the first step: two more of each weight."""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gain = nn.Parameter(torch.ones(width, width))

    def forward(self, hidden):
        return hidden + torch.relu(self.norm(hidden) * self.gain)


if __name__ == "__main__":
    model = nn.Sequential(*[Block(768) for _ in range(10)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(15):
        loss = model(torch.rand(768, 768, device="cuda")).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
