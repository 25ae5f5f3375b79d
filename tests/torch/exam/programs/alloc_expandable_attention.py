# exam: 6 sick retained growing
# exam-env: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True GPUMEM_SIM_MEMORY=512M
# exam-exit: 1
"""Attention maps are collected for a figure, on expandable segments, until nothing is left."""
import torch


class Head(torch.nn.Module):
    maps = []

    def __init__(self, width):
        super().__init__()
        self.query = torch.nn.Parameter(torch.ones(width))

    def forward(self, hidden):
        weights = torch.softmax(hidden * self.query, dim=-1)  # cause
        Head.maps.append(weights)
        return hidden * weights


if __name__ == "__main__":
    head = Head(1024).cuda()
    with torch.no_grad():
        while True:
            head(torch.rand(400, 1024, device="cuda"))
