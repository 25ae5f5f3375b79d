# exam: 4 sick retained growing
"""Every tensor is made by one helper; what one of its users caches is never dropped."""
import torch

DEVICE = torch.device("cuda")


def fresh(*shape):
    return torch.rand(*shape, device=DEVICE)  # cause


class Encoder:
    def __init__(self, layers):
        self.weights = [fresh(2048, 1024) for _ in range(layers)]
        self.seen = {}

    def __call__(self, number):
        x = fresh(256, 1024)
        for weight in self.weights:
            x = torch.tanh(x * weight[:256])
        self.remember(number)
        return x.mean().item()

    def remember(self, number):
        self.seen[number] = fresh(64, 1024)


if __name__ == "__main__":
    encoder = Encoder(20)
    for step in range(150):
        encoder(step)
    print(len(encoder.seen))
