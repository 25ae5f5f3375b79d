# exam: 7 sound
"""One empty_cache between training and evaluation, whose shapes are others."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2048))

    def forward(self, batch):
        return torch.relu(batch * self.weight)


if __name__ == "__main__":
    net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for _ in range(30):
            net(torch.rand(1024, 2048, device="cuda")).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        torch.cuda.empty_cache()
        with torch.no_grad():
            for _ in range(20):
                net(torch.rand(3000, 2048, device="cuda")).mean().item()
        torch.cuda.empty_cache()
