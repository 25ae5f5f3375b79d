# exam: 11 sick pageable-copies
"""The usual loop: batches come in ordinary memory."""
import torch


class Data:
    def __init__(self, count):
        self.rows = torch.rand(count, 64, 1024)

    def __iter__(self):
        return iter(self.rows)


def epoch(data, weight):
    total = 0.0
    for batch in data:
        batch = batch.to("cuda", non_blocking=True)  # cause
        total += (batch * weight).mean().item()
    return total


if __name__ == "__main__":
    source = Data(24)
    gain = torch.ones(1024, device="cuda")
    for _ in range(5):
        epoch(source, gain)
