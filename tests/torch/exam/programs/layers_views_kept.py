# exam: 3 sick retained growing
"""Only the first row of each layer's output is looked at - but a row is a view, and holds it all."""
import torch


class Tower:
    def __init__(self, depth, width):
        self.gains = [torch.ones(width, device="cuda") for _ in range(depth)]
        self.first_rows = []

    def run(self, hidden):
        for gain in self.gains:
            hidden = torch.sigmoid(hidden * gain)  # cause
        self.first_rows.append(hidden[:1])
        return hidden.mean().item()


def main():
    tower = Tower(8, 2048)
    for _ in range(60):
        tower.run(torch.rand(200, 2048, device="cuda"))
    print(len(tower.first_rows))


main()
