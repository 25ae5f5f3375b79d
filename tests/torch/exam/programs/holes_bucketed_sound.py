# exam: 12 sound
# exam-env: GPUMEM_SIM_MEMORY=512M
"""Lengths are rounded up to buckets, and the results leave the device."""
import random

import torch


def bucket(length):
    return (length + 511) // 512 * 512


def encode(length):
    work = torch.rand(bucket(length), 1024, device="cuda")
    return torch.tanh(work).mean(0).cpu()


if __name__ == "__main__":
    random.seed(9)
    documents = [encode(random.randint(1000, 4000)) for _ in range(120)]
    print(len(documents))
