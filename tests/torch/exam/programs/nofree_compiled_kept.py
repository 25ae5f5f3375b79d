# exam: 5 sick retained growing
"""A compiled function, warm, and a dictionary that remembers all it made."""
import torch


@torch.compile(backend="aot_eager")  # cause
def normalise(batch, scale):
    return batch * scale  # cause


@torch.no_grad()
def main():
    scale = torch.ones(1024, device="cuda")
    batch = torch.zeros(512, 1024, device="cuda")
    normalise(batch, scale)
    remembered = {}
    for number in range(80):
        remembered[f"doc {number}"] = normalise(batch, scale)  # cause
    print(len(remembered))


main()
