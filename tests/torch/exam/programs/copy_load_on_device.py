# exam: 8 sick duplicate-load second-copy
"""Loads a checkpoint onto the device, and then copies it into the model that is there already."""
import os
import tempfile

import torch
from torch import nn


def build():
    return nn.Sequential(*[nn.Embedding(4096, 512) for _ in range(8)])


def restore(path):
    model = build().cuda()
    state = torch.load(path, map_location="cuda")  # cause
    model.load_state_dict(state)
    return model, state


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pt")
        torch.save(build().state_dict(), path)
        model, _ = restore(path)
    for _ in range(20):
        with torch.no_grad():
            sum(layer.weight.mean() for layer in model).item()


main()
