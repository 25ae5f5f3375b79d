# exam: 4 sick retained growing
"""Requests that time out, one in ten, are put aside for a retry that never comes."""
import random

import torch


class Worker:
    def __init__(self):
        self.weight = torch.ones(2048, device="cuda")
        self.retry_later = []

    def handle(self, request):
        hidden = torch.relu(request * self.weight)  # cause
        if random.random() < 0.1:
            self.retry_later.append(hidden)
            return None
        return hidden.sum().item()


if __name__ == "__main__":
    random.seed(7)
    worker = Worker()
    for _ in range(400):
        worker.handle(torch.rand(256, 2048, device="cuda"))
    print(len(worker.retry_later), "to be retried")
