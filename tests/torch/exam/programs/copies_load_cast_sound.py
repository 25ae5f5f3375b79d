# exam: 11 sound
"""Loads weights layer by layer, each cast on its way."""
import torch


def checkpoint(layers):
    for number in range(layers):
        yield f"layer.{number}.weight", torch.rand(256, 1024, dtype=torch.float64)


def load(layers):
    model = {}
    for name, tensor in checkpoint(layers):
        model[name] = tensor.to("cuda").to(torch.float16)
    return model


if __name__ == "__main__":
    weights = load(48)
    for _ in range(30):
        hidden = torch.zeros(256, 1024, device="cuda", dtype=torch.float16)
        for weight in weights.values():
            hidden = hidden + weight
        hidden.sum().item()
