# exam: 8 sick duplicate-load second-copy
"""Keeps the best weights so far as a copy on the device, beside the model and last epoch's."""
import copy

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ParameterList(torch.ones(1024, 1024) for _ in range(12))

    def forward(self, batch):
        for block in self.blocks:
            batch = batch + (batch * block).tanh() * 0.01
        return batch.mean()


if __name__ == "__main__":
    model = Model().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = None
    for epoch in range(4):
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.rand(1024, 1024, device="cuda")).backward()
            optimizer.step()
        best = copy.deepcopy(model.state_dict())  # cause
    model.load_state_dict(best)
