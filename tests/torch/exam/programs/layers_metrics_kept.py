# exam: 3 sick retained growing
"""Every layer reports a statistic; the metric object sums it up only at the end of all."""
import torch
from torch import nn


class LayerStatistic:
    def __init__(self):
        self.values = []

    def update(self, hidden):
        self.values.append(hidden.abs().cumsum(0))  # cause

    def compute(self):
        return torch.stack(self.values).mean().item()


class Mixer(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.gains = nn.ParameterList(torch.ones(width) for _ in range(depth))

    def forward(self, hidden, statistics):
        for gain, statistic in zip(self.gains, statistics):
            hidden = torch.tanh(hidden * gain)
            statistic.update(hidden)
        return hidden


if __name__ == "__main__":
    model = Mixer(1024, 4).cuda()
    metrics = [LayerStatistic() for _ in model.gains]
    with torch.inference_mode():
        for _ in range(50):
            model(torch.rand(256, 1024, device="cuda"), metrics)
    print([len(metric.values) for metric in metrics])
