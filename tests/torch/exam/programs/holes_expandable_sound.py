# exam: 12 sound
# exam-env: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True GPUMEM_SIM_MEMORY=1G
"""The pairs on expandable segments: the index finds room."""
import torch


class Store:
    def __init__(self):
        self.keys = {}

    def add(self, name):
        value = torch.rand(9 << 18, device="cuda")
        self.keys[name] = torch.rand(9 << 18, device="cuda")
        return value


if __name__ == "__main__":
    store = Store()
    values = [store.add(number) for number in range(45)]
    del values
    index = torch.empty(180 << 18, device="cuda")
    for _ in range(20):
        index.fill_(0.0)
    print(index.shape)
