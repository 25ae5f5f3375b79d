# exam: 12 sick pool-fragmentation
# exam-env: GPUMEM_SIM_MEMORY=512M
# exam-exit: 1
"""Every second page of varying size is dropped; then a large batch finds only holes."""
import random

import torch


def encode(length):
    work = torch.rand(length, 1024, device="cuda")
    return torch.tanh(work[: length // 8])


def main():
    random.seed(9)
    documents = []
    for _ in range(24):
        documents.append(encode(random.randint(2600, 3900)))
        torch.cuda.synchronize()
    pages = [torch.empty(random.randint(5, 9) << 18, device="cuda") for _ in range(50)]  # cause
    del pages[::2]
    return torch.zeros(160 << 18, device="cuda"), documents  # cause


main()
