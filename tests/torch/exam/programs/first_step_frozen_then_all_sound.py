# exam: 9 sound
"""The head is trained first; then the body is thawed, and its gradients and state come in."""
import torch
from torch import nn


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.gains = nn.ParameterList(torch.ones(512, 2048) for _ in range(6))

    def forward(self, hidden):
        for gain in self.gains:
            hidden = torch.sigmoid(hidden * gain)
        return hidden


def train(model, parameters, steps):
    optimizer = torch.optim.Adam(parameters)
    for _ in range(steps):
        loss = model(torch.rand(512, 2048, device="cuda")).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    body, head = Body().cuda(), nn.LayerNorm(2048).cuda()
    body.requires_grad_(False)
    network = nn.Sequential(body, head)
    train(network, head.parameters(), 30)
    body.requires_grad_(True)
    train(network, network.parameters(), 30)
