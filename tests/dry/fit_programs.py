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
    optimizer = torch.optim.AdamW([*first.parameters(), *second.parameters()], fused=True)  # [optimizer]
    for step in range(8):  # noqa: B007
        second(first(torch.randn(BATCH, 64, 256, device="cuda"))).float().pow(2).mean().backward()
        optimizer.step(); optimizer.zero_grad()  # noqa: E702 [step]


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm, self.all, self.out = heads, nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.rest = Block(width)

    def forward(self, x, is_causal=True):
        parts = self.all(self.norm(x)).view(*x.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        return self.rest(x + self.out(F.scaled_dot_product_attention(*parts, is_causal=is_causal).transpose(1, 2).flatten(2)))


def causal():
    """As Transformers' models: the loss within forward, of shifted logits in fp32, tied words, groups of parameters."""
    class Model(nn.Module):
        def __init__(self, width=256, words=16000):
            super().__init__()
            self.words = nn.Embedding(words, width)
            self.layers = nn.ModuleList(Attention(width, 4) for _ in range(6))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
            self.head.weight = self.words.weight

        def forward(self, tokens, labels):
            x = self.words(tokens)
            for layer in self.layers:
                x = layer(x, is_causal=True)
            logits = self.head(self.norm(x)).float()[:, :-1].flatten(0, 1)
            targets = labels[:, 1:].flatten()
            loss = F.cross_entropy(logits, targets)  # [loss]
            return {"loss": loss, "logits": logits}

    model = Model().cuda()
    # [model]
    groups = [{"params": [p for p in model.parameters() if (p.ndim > 1) == is_wide], "weight_decay": 0.1 if is_wide else 0}
              for is_wide in (True, False)]
    optimizer = torch.optim.AdamW(groups, lr=1e-3)  # [optimizer]
    for step in range(8):  # noqa: B007
        tokens = torch.randint(0, 16000, (BATCH, 256), device="cuda")
        model(tokens, labels=tokens)["loss"].backward()
        optimizer.step()  # [step]
        optimizer.zero_grad()  # [zero]


def recurrent():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.cells = nn.Embedding(8000, 256), nn.LSTM(256, 512, 2, batch_first=True, dropout=0.1)
            self.head = nn.Linear(512, 8000)

        def forward(self, x):
            return self.head(self.cells(self.words(x))[0])

    net = Model().cuda()
    # [model]
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3)  # [optimizer]
    for step in range(8):  # noqa: B007
        tokens = torch.randint(0, 8000, (BATCH, 128), device="cuda")
        logits, targets = net(tokens).flatten(0, 1), tokens.flatten()
        loss = F.cross_entropy(logits, targets)  # [loss]
        loss.backward()
        optimizer.step(); optimizer.zero_grad()  # noqa: E702 [step]


class Stage(nn.Module):
    def __init__(self, width, wider):
        super().__init__()
        self.first, self.second = nn.Conv2d(width, wider, 3, padding=1), nn.Conv2d(wider, wider, 3, padding=1)
        self.norm, self.time, self.beside = nn.GroupNorm(8, wider), nn.Linear(64, wider), nn.Conv2d(width, wider, 1)

    def forward(self, x, time):
        y = self.norm(self.first(x)) + self.time(time)[:, :, None, None]
        return self.beside(x) + self.second(F.silu(y))


def diffusion():
    """A U-Net with time, skips and attention at its bottom, which predicts noise."""
    class Net(nn.Module):
        def __init__(self, width=32):
            super().__init__()
            self.down = nn.ModuleList([Stage(3, width), Stage(width, 2 * width), Stage(2 * width, 4 * width)])
            self.bottom = Attention(4 * width, 4)
            self.up = nn.ModuleList([Stage(8 * width, 2 * width), Stage(4 * width, width), Stage(2 * width, width)])
            self.out = nn.Conv2d(width, 3, 1)

        def forward(self, x, time):
            skips = []
            for stage in self.down:
                x = stage(x, time)
                skips.append(x)
                x = F.avg_pool2d(x, 2)
            x = self.bottom(x.flatten(2).transpose(1, 2), is_causal=False).transpose(1, 2).view(x.shape)
            for stage in self.up:
                x = stage(torch.cat([F.interpolate(x, scale_factor=2), skips.pop()], 1), time)
            return self.out(x)

    unet = Net().cuda()
    # [model]
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-4, foreach=True)  # [optimizer]
    for step in range(8):  # noqa: B007
        noise = torch.randn(BATCH, 3, 64, 64, device="cuda")
        F.mse_loss(unet(noise * 0.5, torch.randn(BATCH, 64, device="cuda")).float(), noise).backward()
        optimizer.step(); optimizer.zero_grad()  # noqa: E702 [step]


def adapters():
    """Frozen blocks with small parts that are trained."""
    class Adapted(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.block = Attention(width, 8).requires_grad_(False)
            self.down, self.up = nn.Linear(width, 16), nn.Linear(16, width)

        def forward(self, x):
            x = self.block(x)
            return x + self.up(self.down(x))

    model = nn.Sequential(*[Adapted(512) for _ in range(6)]).cuda()
    # [model]
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad])  # [optimizer]
    for step in range(8):  # noqa: B007
        model(torch.randn(BATCH, 128, 512, device="cuda")).float().pow(2).mean().backward()
        optimizer.step()  # [step]
        optimizer.zero_grad(set_to_none=False)  # [zero]


def vision():
    """A transformer of images with a class token, trained by a class of its own."""
    class Net(nn.Module):
        def __init__(self, width=256):
            super().__init__()
            self.patches, self.token = nn.Conv2d(3, width, 8, 8), nn.Parameter(torch.zeros(1, 1, width))
            self.encoder, self.head = nn.Sequential(*[Attention(width, 4) for _ in range(6)]), nn.Linear(width, 100)

        def forward(self, images):
            x = self.patches(images).flatten(2).transpose(1, 2)
            return self.head(self.encoder(torch.cat([self.token.expand(len(x), -1, -1), x], 1))[:, 0])

    class Trainer:
        def __init__(self):
            self.model = Net().cuda()
            # [model]

        def train(self):
            optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)  # [optimizer]
            for step in range(8):  # noqa: B007
                images, kinds = torch.randn(BATCH, 3, 128, 128, device="cuda"), torch.randint(0, 100, (BATCH,), device="cuda")
                F.cross_entropy(self.model(images).float(), kinds).backward()
                optimizer.step(); optimizer.zero_grad()  # noqa: E702 [step]

    Trainer().train()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
