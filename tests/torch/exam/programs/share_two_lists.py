# exam: 4 sick retained growing
"""Predictions in one list, targets in another, for a score at the very end."""
import torch


def loader(count):
    for _ in range(count):
        yield torch.rand(128, 2048), torch.rand(128, 2048)


@torch.no_grad()
def evaluate(scale):
    predictions, targets = [], []
    for inputs, target in loader(60):
        inputs = inputs.pin_memory().cuda(non_blocking=True)
        predictions.append(torch.sigmoid(inputs * scale))  # cause
        targets.append(target.pin_memory().cuda(non_blocking=True))  # cause
    return torch.stack([(p - t).abs().mean() for p, t in zip(predictions, targets)]).mean().item()


if __name__ == "__main__":
    evaluate(torch.ones(2048, device="cuda"))
