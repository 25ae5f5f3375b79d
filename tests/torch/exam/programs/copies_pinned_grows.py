# exam: 11 sick pinned-growth
"""Swapped-out blocks go to pinned memory, a new buffer for each."""
import torch


class Swap:
    def __init__(self):
        self.host = {}

    def out(self, name, tensor):
        buffer = torch.empty(tensor.shape, pin_memory=True)  # cause
        buffer.copy_(tensor, non_blocking=True)
        self.host[name] = buffer

    def back(self, name):
        return self.host[name].cuda(non_blocking=True)


if __name__ == "__main__":
    swap = Swap()
    for sequence in range(60):
        block = torch.rand(512, 512, device="cuda")
        swap.out(sequence, block)
        del block
        if sequence % 3 == 2:
            swap.back(sequence - 2).mean().item()
