# exam: 3 sound
"""The probe's features, taken off the device."""
import torch


class Tower:
    def __init__(self, depth, width):
        self.gains = [torch.ones(width, device="cuda") for _ in range(depth)]
        self.first_rows = []

    def run(self, hidden):
        for gain in self.gains:
            hidden = torch.sigmoid(hidden * gain)
        self.first_rows.append(hidden[:1].cpu())
        return hidden.mean().item()


def main():
    tower = Tower(8, 2048)
    for _ in range(60):
        tower.run(torch.rand(200, 2048, device="cuda"))
    print(torch.cat(tower.first_rows).shape)


main()
