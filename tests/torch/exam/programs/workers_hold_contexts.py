# exam: 10 sick worker-context
"""Loader workers normalise on the device: each holds a context and a cache of its own."""
import multiprocessing

import torch


def normalise(chunk):
    batch = torch.rand(256, 1024).cuda()  # cause
    return float(((batch - 0.5) * 2).sum().item()) + chunk


if __name__ == "__main__":
    table = torch.rand(1024, 4096, device="cuda")
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for result in pool.imap(normalise, range(16)):
            table.add_(result)
    print(table.shape)
