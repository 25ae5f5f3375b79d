# exam: 4 sick retained growing
"""Each phase makes a new Adam; the old ones stay in the list of schedulers, with their state."""
import torch
from torch import nn

model = nn.Sequential(*[nn.LayerNorm([64, 1024]) for _ in range(6)]).cuda()
schedulers = []


def phase(number):
    optimizer = torch.optim.Adam(model.parameters(), lr=10 ** -number)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    schedulers.append(scheduler)
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.rand(4, 64, 1024, device="cuda")).mean().backward()
        optimizer.step()  # cause
        scheduler.step()


for number in range(20):
    phase(number)
print(len(schedulers))
