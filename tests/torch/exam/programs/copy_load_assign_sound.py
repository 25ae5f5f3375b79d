# exam: 8 sound
"""A model without memory takes the checkpoint's tensors for its own."""
import os
import tempfile

import torch
from torch import nn


def build():
    return nn.Sequential(*[nn.Embedding(4096, 512) for _ in range(8)])


def restore(path):
    with torch.device("meta"):
        model = build()
    model.load_state_dict(torch.load(path, map_location="cuda"), assign=True)
    return model


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "model.pt")
        torch.save(build().state_dict(), name)
        model = restore(name)
    with torch.no_grad():
        for _ in range(20):
            sum(layer.weight.mean() for layer in model).item()
