# exam: 11 sound
"""A small model on rows of a table, as most people write it: the batches are small, and nothing pins them."""
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
table = TensorDataset(torch.randn(4000, 512), torch.randn(4000))
weight = torch.zeros(512, device=device, requires_grad=True)
optimizer = torch.optim.Adam([weight])

for epoch in range(3):
    for rows, targets in DataLoader(table, batch_size=100, shuffle=True):
        rows, targets = rows.to(device), targets.to(device)
        optimizer.zero_grad()
        ((rows * weight).sum(1) - targets).square().mean().backward()
        optimizer.step()
