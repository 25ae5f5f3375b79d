# exam: 7 sick churn
"""torch.cuda.empty_cache() at the end of each step, "to be safe"."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1024, 4096))

    def forward(self, batch):
        return torch.relu(batch * self.weight).mean()  # cause


def train(model, optimizer, steps):
    for _ in range(steps):
        batch = torch.rand(1024, 4096, device="cuda")  # cause
        loss = model(batch)
        optimizer.zero_grad()
        loss.backward()  # cause
        optimizer.step()
        del batch, loss
        torch.cuda.empty_cache()  # cause


if __name__ == "__main__":
    net = Net().cuda()
    train(net, torch.optim.SGD(net.parameters(), lr=0.1), 60)
