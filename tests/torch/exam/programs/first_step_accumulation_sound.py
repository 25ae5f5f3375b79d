# exam: 9 sound
"""Gradients are summed over four batches; momentum appears with the first step."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ParameterList(torch.ones(1024, 1024) for _ in range(8))

    def forward(self, batch):
        for layer in self.layers:
            batch = torch.tanh(batch * layer)
        return batch


def main():
    net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for step in range(40):
        loss = net(torch.rand(1024, 1024, device="cuda")).square().mean() / 4
        loss.backward()
        if step % 4 == 3:
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)


main()
