# exam: 12 sick pool-fragmentation
# exam-env: GPUMEM_SIM_MEMORY=1G
"""Pairs of key and value share a segment; only the keys stay."""
import torch


class Store:
    def __init__(self):
        self.keys = {}

    def add(self, name):
        value = torch.rand(9 << 18, device="cuda")
        self.keys[name] = torch.rand(9 << 18, device="cuda")  # cause
        return value


if __name__ == "__main__":
    store = Store()
    values = [store.add(number) for number in range(45)]
    del values
    try:
        torch.empty(400 << 18, device="cuda")  # cause
    except torch.cuda.OutOfMemoryError:
        print("no room for the index")
