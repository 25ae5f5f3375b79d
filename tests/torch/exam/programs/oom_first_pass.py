# exam: 1 sound allow=out-of-memory
# exam-env: GPUMEM_SIM_MEMORY=512M
# exam-exit: 1
"""The first training pass of a network too deep for the device."""
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, hidden):
        return torch.sigmoid(hidden * self.gain) * hidden


def main():
    model = nn.Sequential(*[Layer(1024) for _ in range(400)]).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(10):
        loss = model(torch.rand(512, 1024, device="cuda")).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
