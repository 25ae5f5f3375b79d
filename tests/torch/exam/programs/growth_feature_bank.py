# exam: 2 sick retained growing
"""A memory bank for a nearest neighbour: it is joined with each step's features, and nobody trims it."""
import torch


def make_step(dimension):
    bank = torch.empty(0, dimension, device="cuda")
    weight = torch.ones(dimension, device="cuda", requires_grad=True)

    def step(batch):
        nonlocal bank
        features = torch.tanh(batch * weight)
        loss = (features.mean() - bank.mean() if len(bank) else features.mean()) ** 2
        loss.backward()
        with torch.no_grad():
            weight.sub_(0.1 * weight.grad)
            bank = torch.cat([bank, features.detach()])  # cause
        weight.grad = None
        return len(bank)

    return step


if __name__ == "__main__":
    train_step = make_step(512)
    for epoch in range(3):
        for _ in range(60):
            rows = train_step(torch.rand(128, 512, device="cuda"))
        print(epoch, rows)
