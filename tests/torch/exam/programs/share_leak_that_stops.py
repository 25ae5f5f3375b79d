# exam: 4 sick retained growing
"""For the first epochs the gradients are collected for a histogram; the list is never cleared."""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(512, 1024))

    def forward(self, batch):
        return (batch * self.weight).tanh()


def train(epochs, steps):
    model = Model().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    histogram = []
    for epoch in range(epochs):
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.rand(512, 1024, device="cuda")).mean().backward()
            if epoch < 2:
                histogram.append(model.weight.grad.clone())  # cause
            optimizer.step()
    return len(histogram)


if __name__ == "__main__":
    print(train(5, 40))
