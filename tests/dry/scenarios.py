#!/usr/bin/env python3
"""Programs that test_wheel.py runs dry: scenarios.py NAME

Each prints the bytes of PyTorch's peaks, allocated and reserved.
"""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


def train(model, optimizer, batch, classes, steps=3, forward=None):
    for _ in range(steps):
        inputs = torch.randn(*batch, device="cuda")
        labels = torch.randint(0, classes, (batch[0],), device="cuda")
        F.cross_entropy((forward or model)(inputs), labels).backward()
        optimizer.step()
        optimizer.zero_grad()


def perceptron():
    return nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1000)).cuda()


def mlp():
    model = perceptron()
    train(model, torch.optim.AdamW(model.parameters()), (64, 1024), 1000)


def transformer():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), 4).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(torch.randn(8, 128, 512, device="cuda")).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outside)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outside)
        self.short = nn.Conv2d(inside, outside, 1, stride, bias=False) if stride != 1 else nn.Identity()

    def forward(self, x):
        return F.relu(self.second_norm(self.second(F.relu(self.first_norm(self.first(x))))) + self.short(x))


def residual_network():
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1), Block(64, 64, 1),
        Block(64, 128, 2), Block(128, 256, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 1000)).cuda()


def resnet():
    model = residual_network()
    train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), (16, 3, 224, 224), 1000)


def amp():
    model = residual_network().to(memory_format=torch.channels_last)
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), torch.amp.GradScaler("cuda")
    for _ in range(3):
        with torch.autocast("cuda", torch.float16):
            inputs = torch.randn(16, 3, 224, 224, device="cuda").contiguous(memory_format=torch.channels_last)
            loss = F.cross_entropy(model(inputs), torch.randint(0, 1000, (16,), device="cuda"))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def attention():
    q, k, v = (torch.randn(4, 16, 1024, 64, device="cuda", dtype=torch.float16, requires_grad=True) for _ in range(3))
    F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()


def lstm():
    model = nn.LSTM(256, 512, 2, bidirectional=True).cuda()
    model(torch.randn(64, 32, 256, device="cuda"))[0].sum().backward()


def fourier():
    torch.fft.rfft2(torch.randn(8, 512, 512, device="cuda"))


def linear_algebra():
    a = torch.randn(8, 64, 64, device="cuda")
    torch.linalg.svd(a)
    torch.linalg.qr(a)
    torch.linalg.inv(a)


def data_parallel():
    """Rank 0 of 8, alone."""
    import torch.distributed as dist
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=8)
    model = nn.parallel.DistributedDataParallel(perceptron())
    train(model, torch.optim.AdamW(model.parameters()), (64, 1024), 1000)


def sharded():
    """FSDP2, rank 0 of 8, alone."""
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=8)
    model = nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(6)]).cuda()
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(torch.randn(64, 2048, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def compiled():
    model = perceptron()
    train(model, torch.optim.AdamW(model.parameters()), (64, 1024), 1000, forward=torch.compile(model))


def graph():
    model, inputs, recorded = nn.Linear(256, 256).cuda(), torch.randn(8, 256, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.stream(torch.cuda.Stream()):
        model(inputs)
    torch.cuda.synchronize()
    with torch.cuda.graph(recorded):
        model(inputs)
    recorded.replay()


def too_large():
    kept = []
    while True:
        kept.append(torch.empty(1 << 28, device="cuda"))


def wide_convolution():
    """What cuDNN takes for it may be more than all the rest."""
    model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.Conv2d(64, 64, 3, padding=1)).cuda()
    model(torch.randn(64, 3, 224, 224, device="cuda")).sum().backward()


def other_stream():
    """Blocks that another stream used come back when PyTorch has seen that stream's event happen."""
    stream = torch.cuda.Stream()
    for _ in range(10):
        x = torch.empty(1 << 26, device="cuda")
        with torch.cuda.stream(stream):
            y = x + 1
        x.record_stream(stream)
        del x, y
    torch.cuda.synchronize()


def endless():
    """Ends when the device says so."""
    left, steps = torch.ones(3, dtype=torch.long, device="cuda"), 0
    while left.max() != 0:
        steps += 1
        left = left & (torch.full((3,), steps, device="cuda") < 6).long()
    print("steps", steps)


def many_steps():
    model = perceptron()
    train(model, torch.optim.AdamW(model.parameters()), (64, 1024), 1000, steps=1000000)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("peak", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
