# exam: 1 sick retained growing
# exam-env: GPUMEM_SIM_MEMORY=512M
# exam-exit: 1
"""Scores a data set; the scores stay on the device until they are joined."""
import torch
from torch import nn


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5000, 128)
        self.norm = nn.Parameter(torch.ones(128))

    def forward(self, tokens):
        hidden = self.table(tokens) * self.norm
        return torch.softmax(hidden, dim=-1)  # cause


def batches(count):
    for number in range(count):
        torch.manual_seed(number)
        yield torch.randint(0, 5000, (32, 64)).cuda()


@torch.no_grad()
def score(model):
    results = []
    for tokens in batches(4000):
        results.append(model(tokens))
    return torch.cat(results)


if __name__ == "__main__":
    print(score(Scorer().cuda().eval()).shape)
