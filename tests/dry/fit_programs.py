#!/usr/bin/env python3
"""Programs whose remedies test_fit_wheel.py tries: fit_programs.py NAME BATCH

Where the remedies' lines go is marked: [model], where a model has been made; [optimizer], [loss], [step] and [zero] at the
ends of lines that they stand in place of.
"""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = int(sys.argv[2])


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Language(nn.Module):
    def __init__(self, width, words):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(8))
        self.head = nn.Linear(width, words)

    def forward(self, x):
        x = self.words(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def language():
    model = Language(256, 32000).cuda()
    # [model]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)  # [optimizer]
    for step in range(8):  # noqa: B007
        targets = torch.randint(0, 32000, (BATCH * 256,), device="cuda")
        logits = model(targets.view(BATCH, 256)).flatten(0, 1)
        loss = F.cross_entropy(logits, targets)  # [loss]
        loss.backward()
        optimizer.step(); optimizer.zero_grad()  # noqa: E702 [step]


def encoder():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True), 6).cuda()
    # [model]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)  # [optimizer]
    for step in range(8):  # noqa: B007
        model(torch.randn(BATCH, 128, 256, device="cuda")).float().pow(2).mean().backward()
        optimizer.step()  # [step]
        optimizer.zero_grad(set_to_none=False)  # [zero]


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x):
        return x + self.second(F.relu(self.norm(self.first(x))))


def convolutions():
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), *[Residual(32) for _ in range(5)], nn.AdaptiveAvgPool2d(1),
                          nn.Flatten(), nn.Linear(32, 10)).cuda()
    # [model]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)  # [optimizer]
    for step in range(8):  # noqa: B007
        images = torch.randn(BATCH, 3, 64, 64, device="cuda")
        F.cross_entropy(model(images), torch.randint(0, 10, (BATCH,), device="cuda")).backward()
        optimizer.step(); optimizer.zero_grad()  # noqa: E702 [step]


def perceptron():
    model = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024), nn.ReLU()) for _ in range(12)]).cuda()
    # [model]
    optimizer = torch.optim.Adam(model.parameters())  # [optimizer]
    for step in range(8):  # noqa: B007
        model(torch.randn(BATCH * 64, 1024, device="cuda")).pow(2).mean().backward()
        optimizer.step(); optimizer.zero_grad()  # noqa: E702 [step]


def two_models():
    first = nn.Sequential(*[Block(256) for _ in range(4)]).cuda()
    second = nn.Sequential(*[Block(256) for _ in range(4)]).cuda()
    # [model]
    optimizer = torch.optim.AdamW([*first.parameters(), *second.parameters()])  # [optimizer]
    for step in range(8):  # noqa: B007
        second(first(torch.randn(BATCH, 64, 256, device="cuda"))).float().pow(2).mean().backward()
        optimizer.step(); optimizer.zero_grad()  # noqa: E702 [step]


if __name__ == "__main__":
    globals()[sys.argv[1]]()
