# exam: 12 sick pool-fragmentation
# exam-env: GPUMEM_SIM_MEMORY=768M
"""Beams of different widths are dropped in no order, then the survivors want one large table."""
import random

import torch


def beams(count):
    for _ in range(count):
        yield torch.zeros(random.randint(22, 38) << 16, device="cuda")  # cause


def main():
    random.seed(21)
    alive = list(beams(85))
    random.shuffle(alive)
    alive = alive[:42]
    try:
        return torch.empty(300 << 18, device="cuda"), alive  # cause
    except torch.cuda.OutOfMemoryError:
        return None, alive


main()
