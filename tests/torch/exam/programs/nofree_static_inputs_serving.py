# exam: 5 sound
"""Static buffers for each batch size at start, then serving out of them."""
import time

import torch

SIZES = [1, 2, 4, 8, 16, 32, 64, 128]


class Server:
    def __init__(self, width):
        self.weight = torch.ones(width, device="cuda")
        self.inputs = {}
        self.outputs = {}
        for size in SIZES:
            self.inputs[size] = torch.zeros(size, width, device="cuda")
            self.outputs[size] = torch.empty(size, width, device="cuda")

    def serve(self, batch):
        size = next(size for size in SIZES if size >= len(batch))
        self.inputs[size][: len(batch)].copy_(batch)
        torch.mul(self.inputs[size], self.weight, out=self.outputs[size])
        return self.outputs[size]


if __name__ == "__main__":
    server = Server(4096)
    queue = [torch.rand(1 + n % 100, 4096).pin_memory() for n in range(10)]
    until = time.monotonic() + 2.5
    while time.monotonic() < until:
        for request in queue:
            server.serve(request)
        time.sleep(0.05)
