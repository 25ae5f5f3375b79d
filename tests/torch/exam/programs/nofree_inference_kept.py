# exam: 5 sick retained growing
"""A static input, one operation, and all results kept: nothing is ever freed."""
import torch


class Projector:
    def __init__(self):
        self.buffer = torch.zeros(512, 1024, device="cuda")

    def __call__(self, batch):
        self.buffer.copy_(batch)
        return torch.exp(self.buffer)  # cause


if __name__ == "__main__":
    project = Projector()
    host = torch.rand(512, 1024).pin_memory()
    results = {}
    for number in range(100):
        results[number] = project(host)
    print(len(results))
