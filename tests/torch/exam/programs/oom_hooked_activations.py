# exam: 1 sick retained growing
# exam-env: GPUMEM_SIM_MEMORY=640M
# exam-exit: 1
"""Forward hooks remember what each block made; somebody forgot to clear them between batches."""
from collections import defaultdict

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, hidden):
        return hidden + torch.relu(hidden * self.scale)  # cause


class Recorder:
    def __init__(self, model):
        self.activations = defaultdict(list)
        for name, module in model.named_children():
            module.register_forward_hook(self.hook(name))

    def hook(self, name):
        def remember(module, inputs, output):
            self.activations[name].append(output.detach())
        return remember


def evaluate(model, recorder):
    for _ in range(1000):
        with torch.no_grad():
            model(torch.rand(128, 2048, device="cuda"))
    return {name: len(kept) for name, kept in recorder.activations.items()}


if __name__ == "__main__":
    network = nn.Sequential(*[Block(2048) for _ in range(3)]).cuda()
    print(evaluate(network, Recorder(network)))
