# exam: 6 sound
# exam-env: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
"""Attention maps of the batch at hand only, on expandable segments."""
import torch


class Head(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = torch.nn.Parameter(torch.ones(width))
        self.map = None

    def forward(self, hidden):
        self.map = torch.softmax(hidden * self.query, dim=-1)
        return hidden * self.map


if __name__ == "__main__":
    head = Head(1024).cuda()
    with torch.no_grad():
        for length in [400, 300, 500, 200] * 30:
            head(torch.rand(length, 1024, device="cuda"))
