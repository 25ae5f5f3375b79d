# exam: 1 sound allow=out-of-memory
# exam-env: GPUMEM_SIM_MEMORY=512M
# exam-exit: 1
"""A model whose weights do not fit."""
import torch
from torch import nn


class Expert(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Parameter(torch.empty(width, 4 * width, device="cuda"))
        self.down = nn.Parameter(torch.empty(4 * width, width, device="cuda"))


class Mixture(nn.Module):
    def __init__(self, experts, width):
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(8000, width, device="cuda"))
        self.experts = nn.ModuleList(Expert(width) for _ in range(experts))


if __name__ == "__main__":
    model = Mixture(64, 1024)
    print(sum(p.numel() for p in model.parameters()))
