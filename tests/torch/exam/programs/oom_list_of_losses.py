# exam: 1 sick retained growing
# exam-env: GPUMEM_SIM_MEMORY=768M
# exam-exit: 1
"""Trains a small gate on synthetic batches and keeps the losses for a plot."""
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, batch):
        return torch.tanh(batch * self.weight + self.bias)  # cause


def train(model, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = []
    for _ in range(steps):
        batch = torch.rand(256, 1024, device="cuda")
        loss = model(batch).square().mean()  # cause
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        history.append(loss)
    return history


if __name__ == "__main__":
    losses = train(Gate(1024).cuda(), 5000)
    print(f"{len(losses)} steps")
