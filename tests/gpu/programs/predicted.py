#!/usr/bin/env python3
"""Training steps whose memory a dry run tells before, for `scripts/gpu-check`: predicted.py SCENARIO.

Each prints PyTorch's own peaks. Their shapes are such that cuBLAS, cuDNN, the attention kernels and torch.compile take part.
"""
import json
import sys

import torch
from torch import nn
from torch.nn import functional


def train(parameters, make_loss, optimizer=torch.optim.AdamW, scaler=None, **settings):
    steps = optimizer(parameters, **settings)
    for _ in range(4):
        loss = make_loss()
        (scaler.scale(loss) if scaler else loss).backward()
        if scaler:
            scaler.step(steps)
            scaler.update()
        else:
            steps.step()
        steps.zero_grad()


def tokens(*shape):
    return torch.randint(0, 50304, shape, device="cuda")


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.asked, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.asked(self.before(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        held = functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(held.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(self.between(x))


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50304, 768)
        self.blocks = nn.Sequential(*[Block(768, 12) for _ in range(6)])
        self.head = nn.Linear(768, 50304, bias=False)

    def forward(self, x):
        return self.head(self.blocks(self.embedding(x)))


def perceptron():
    model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 4096), nn.GELU(), nn.Linear(4096, 10)).cuda()
    train(model.parameters(), lambda: functional.cross_entropy(model(torch.randn(2048, 1024, device="cuda")),
                                                               torch.randint(0, 10, (2048,), device="cuda")))


def language(batch=4, mixed=False):
    model = Language().cuda()

    def loss():
        x = tokens(batch, 512)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=mixed):
            return functional.cross_entropy(model(x).flatten(0, 1), x.flatten())
    train(model.parameters(), loss)


def language_mixed():
    language(8, True)


def compiled():
    model = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.LayerNorm(1024)) for _ in range(6)]).cuda()
    faster = torch.compile(model)
    train(model.parameters(), lambda: faster(torch.randn(4096, 1024, device="cuda")).pow(2).mean())


def residual():
    import torchvision
    model = torchvision.models.resnet50().cuda()
    train(model.parameters(), lambda: functional.cross_entropy(model(torch.randn(32, 3, 224, 224, device="cuda")),
                                                               torch.randint(0, 1000, (32,), device="cuda")),
          torch.optim.SGD, lr=0.1, momentum=0.9)


def convolutions(first, width):
    layers = []
    for channels in (first, width):
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.GroupNorm(8, width), nn.SiLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([convolutions(3, 64), convolutions(64, 128)])
        self.middle = convolutions(128, 256)
        self.up = nn.ModuleList([convolutions(384, 128), convolutions(192, 64)])
        self.out = nn.Conv2d(64, 3, 1)

    def forward(self, x):
        kept = []
        for part in self.down:
            x = part(x)
            kept.append(x)
            x = functional.max_pool2d(x, 2)
        x = self.middle(x)
        for part in self.up:
            x = part(torch.cat([functional.interpolate(x, scale_factor=2), kept.pop()], 1))
        return self.out(x)


def unet():
    model = UNet().cuda().to(memory_format=torch.channels_last)

    def loss():
        x = torch.randn(8, 3, 128, 128, device="cuda").to(memory_format=torch.channels_last)
        with torch.autocast("cuda", dtype=torch.float16):
            return functional.mse_loss(model(x), x)
    train(model.parameters(), loss, scaler=torch.amp.GradScaler())


def recurrent():
    model, head = nn.LSTM(512, 1024, 2).cuda(), nn.Linear(1024, 100).cuda()
    train([*model.parameters(), *head.parameters()],
          lambda: head(model(torch.randn(100, 64, 512, device="cuda"))[0]).pow(2).mean(), torch.optim.Adam)


def checkpointed():
    from transformers import LlamaConfig, LlamaForCausalLM
    model = LlamaForCausalLM(LlamaConfig(vocab_size=50304, hidden_size=1024, intermediate_size=2816, num_hidden_layers=4,
                                         num_attention_heads=16, num_key_value_heads=4)).cuda().to(torch.bfloat16)
    model.gradient_checkpointing_enable()

    def loss():
        x = tokens(4, 1024)
        return model(input_ids=x, labels=x).loss
    train(model.parameters(), loss, fused=True)


SCENARIOS = {function.__name__: function for function in
             (perceptron, language, language_mixed, compiled, residual, unet, recurrent, checkpointed)}


def main():
    torch.manual_seed(0)
    SCENARIOS[sys.argv[1]]()
    figures = torch.cuda.memory_stats()
    print("NOTE peaks", json.dumps({name: figures[f"{name}_bytes.all.peak"] for name in ("allocated", "reserved")}))


if __name__ == "__main__":
    main()
