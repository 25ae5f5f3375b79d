# exam: 11 sound
"""Three models, one after the other, each moved to the device as it is."""
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(256, 1024))

    def forward(self, hidden):
        return torch.relu(hidden * self.gain)


def evaluate(model):
    with torch.no_grad():
        for _ in range(15):
            model(torch.rand(256, 1024, device="cuda")).mean().item()


if __name__ == "__main__":
    for depth in (12, 16, 20):
        network = nn.Sequential(*[Layer() for _ in range(depth)]).half().float()
        network = network.to("cuda")
        evaluate(network)
        del network
