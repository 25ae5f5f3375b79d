#!/usr/bin/env python3
"""Programs that test_search_wheel.py searches: searched_programs.py NAME [KEY=NUMBER]...

Each trains for up to eight steps, sized by its numbers or by variables of the environment.
"""
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

GIVEN = {key: int(number) for key, number in (word.split("=") for word in sys.argv[2:])}
STEPS = 8


def train(model, optimizer, loss_of, pieces=1):
    for _ in range(STEPS):
        for _ in range(pieces):
            loss_of(model).backward()
        optimizer.step()
        optimizer.zero_grad()


def classified(batch, *shape, classes=1000):
    return lambda model: F.cross_entropy(model(torch.randn(batch, *shape, device="cuda")),
                                         torch.randint(0, classes, (batch,), device="cuda"))


def perceptron():
    model = nn.Sequential(nn.Linear(4096, 16384), nn.ReLU(), nn.Linear(16384, 16384), nn.ReLU(), nn.Linear(16384, 1000)).cuda()
    train(model, torch.optim.AdamW(model.parameters()), classified(GIVEN["batch"] * 64, 4096))


class Residual(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.first, self.first_norm = nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside)
        self.second, self.second_norm = nn.Conv2d(outside, outside, 3, 1, 1, bias=False), nn.BatchNorm2d(outside)
        self.short = nn.Conv2d(inside, outside, 1, stride, bias=False) if stride != 1 else nn.Identity()

    def forward(self, x):
        return F.relu(self.second_norm(self.second(F.relu(self.first_norm(self.first(x))))) + self.short(x))


def backbone(*ends):
    return nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
                         Residual(64, 64, 1), Residual(64, 64, 1), Residual(64, 128, 2), Residual(128, 128, 1),
                         Residual(128, 256, 2), Residual(256, 256, 1), Residual(256, 512, 2), *ends)


def images():
    model = backbone(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)).cuda()
    train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), classified(GIVEN["batch"], 3, 224, 224))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm, self.all, self.out = heads, nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down, self.second_norm = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.LayerNorm(width)

    def forward(self, x):
        parts = self.all(self.norm(x)).view(*x.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.second_norm(x))))


class Language(nn.Module):
    def __init__(self, width, layers, words=32000):
        super().__init__()
        self.words, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        self.layers = nn.ModuleList(Attention(width, width // 64) for _ in range(layers))

    def forward(self, x):
        x = self.words(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def of_text(batch, length, words=32000):
    def loss(model):
        text = torch.randint(0, words, (batch, length), device="cuda")
        return F.cross_entropy(model(text).flatten(0, 1), text.flatten())
    return loss


def language():
    """Over the length of the text."""
    model = Language(512, 8).cuda()
    train(model, torch.optim.AdamW(model.parameters()), of_text(4, GIVEN["length"]))


def width():
    """Over the width, which comes by the environment: a parabola."""
    with torch.device("cuda"):
        model = Language(int(os.environ["WIDTH"]), 6, 8000)
    train(model, torch.optim.AdamW(model.parameters()), of_text(2, 256, 8000))


def autocast():
    """bf16 with cuBLAS's workspaces and plain attention, whose need is a parabola of the length."""
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), 4).cuda()

    def loss(model):
        with torch.autocast("cuda", dtype=torch.bfloat16), nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
            return model(torch.randn(2, GIVEN["length"], 512, device="cuda")).float().pow(2).mean()

    train(model, torch.optim.Adam(model.parameters()), loss)


class Unet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        def block(inside, outside):
            return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1), nn.GroupNorm(8, outside), nn.SiLU())
        self.time = nn.Linear(64, 4 * width)
        self.down = nn.ModuleList([block(3, width), block(width, 2 * width), block(2 * width, 4 * width)])
        self.middle = nn.MultiheadAttention(4 * width, 4, batch_first=True)
        self.up = nn.ModuleList([block(8 * width, 2 * width), block(4 * width, width), block(2 * width, width)])
        self.out = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, time):
        kept = []
        for layer in self.down:
            x = layer(x)
            kept.append(x)
            x = F.avg_pool2d(x, 2)
        shape, flat = x.shape, x.flatten(2).transpose(1, 2)
        x = (flat + self.middle(flat, flat, flat)[0]).transpose(1, 2).reshape(shape) + self.time(time)[:, :, None, None]
        for layer in self.up:
            x = layer(torch.cat([F.interpolate(x, scale_factor=2.0), kept.pop()], 1))
        return self.out(x)


def diffusion():
    model = Unet().cuda()

    def loss(model):
        picture = torch.randn(GIVEN["batch"], 3, 64, 64, device="cuda")
        noise = torch.randn_like(picture)
        return F.mse_loss(model(picture + noise, torch.randn(len(picture), 64, device="cuda")), noise)

    train(model, torch.optim.AdamW(model.parameters()), loss)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.cells, self.head = nn.Embedding(10000, 512), nn.LSTM(512, 1024, 2, batch_first=True), nn.Linear(1024, 10000)

    def forward(self, x):
        return self.head(self.cells(self.words(x))[0])


def recurrent():
    model = Recurrent().cuda()
    train(model, torch.optim.Adam(model.parameters()), of_text(16, GIVEN["length"], 10000))


def detection():
    """A head for each cell of the picture, and the best cells chosen: how many is fixed."""
    model = backbone(nn.Conv2d(512, 256, 3, padding=1), nn.ReLU(), nn.Conv2d(256, 9 * 85, 1)).cuda()

    def loss(model):
        cells = model(torch.randn(GIVEN["batch"], 3, 320, 320, device="cuda")).flatten(2).transpose(1, 2).reshape(GIVEN["batch"], -1, 85)
        best = cells[..., 4].topk(100, dim=1).indices
        chosen = cells.gather(1, best[..., None].expand(-1, -1, 85))
        return F.binary_cross_entropy_with_logits(chosen[..., 4:], torch.zeros_like(chosen[..., 4:])) + chosen[..., :4].abs().mean()

    train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), loss)


def distributed():
    """Rank 0 of 8, alone."""
    import torch.distributed as dist
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=8)
    model = nn.parallel.DistributedDataParallel(Language(512, 6).cuda())
    train(model, torch.optim.AdamW(model.parameters()), of_text(GIVEN["batch"], 256))


def accumulated():
    """The gradients of four pieces; few of the batch are more than the optimizer takes."""
    model = Language(1024, 12).cuda()
    train(model, torch.optim.AdamW(model.parameters()), of_text(GIVEN["batch"], 128), pieces=4)


class Grouped(nn.Module):
    """As in Llama: RMSNorm, few heads of keys and values for many of queries, a gated layer."""

    def __init__(self, width, heads, groups):
        super().__init__()
        self.size, self.groups = width // heads, groups
        self.first, self.second = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, groups * self.size, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, 3 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * width, width, bias=False)

    def forward(self, x):
        y = self.first(x)
        q, k, v = (layer(y).unflatten(-1, (-1, self.size)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2).flatten(2)
        x = x + self.out(y)
        y = self.second(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def llama():
    """bf16 weights, over the length of the text."""
    model = nn.Sequential(nn.Embedding(32000, 1024), *[Grouped(1024, 16, 4) for _ in range(8)],
                          nn.Linear(1024, 32000, bias=False)).to("cuda", torch.bfloat16)
    train(model, torch.optim.AdamW(model.parameters()), of_text(2, GIVEN["length"]))


class Vision(nn.Module):
    def __init__(self, width=384):
        super().__init__()
        self.patches, self.first = nn.Conv2d(3, width, 16, 16), nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.zeros(1, 197, width))
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 6, 4 * width, activation="gelu", batch_first=True,
                                                                       norm_first=True), 6, enable_nested_tensor=False)
        self.head = nn.Linear(width, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        return self.head(self.layers(torch.cat([self.first.expand(len(x), -1, -1), x], 1) + self.places)[:, 0])


def vision():
    model = Vision().cuda()
    train(model, torch.optim.AdamW(model.parameters()), classified(GIVEN["batch"], 3, 224, 224))


def variational():
    """A VAE of vectors, whose optimizer takes more than the smallest batches."""
    def layers(*widths):
        return nn.Sequential(*[part for a, b in zip(widths, widths[1:]) for part in (nn.Linear(a, b), nn.ELU())][:-1])
    model = nn.ModuleDict({"code": layers(12288, 4096, 2048, 512), "back": layers(256, 2048, 4096, 12288)}).cuda()

    def loss(model):
        x = torch.rand(GIVEN["batch"] * 8, 12288, device="cuda")
        mean, spread = model["code"](x).chunk(2, dim=1)
        again = model["back"](mean + torch.randn_like(mean) * (spread / 2).exp())
        return F.mse_loss(again, x) - (1 + spread - mean ** 2 - spread.exp()).mean() / 2

    train(model, torch.optim.Adam(model.parameters()), loss)


def adversarial():
    """Two networks with optimizers of their own, by turns."""
    def layers(*widths):
        return nn.Sequential(*[part for a, b in zip(widths, widths[1:]) for part in (nn.Linear(a, b), nn.LeakyReLU(0.2))][:-1])
    makes, judges = layers(128, 1024, 4096, 12288).cuda(), layers(12288, 4096, 1024, 1).cuda()
    of_makes, of_judges = torch.optim.Adam(makes.parameters()), torch.optim.Adam(judges.parameters())
    for _ in range(STEPS):
        real, noise = torch.randn(GIVEN["batch"] * 16, 12288, device="cuda"), torch.randn(GIVEN["batch"] * 16, 128, device="cuda")
        of_judges.zero_grad()
        (F.softplus(-judges(real)).mean() + F.softplus(judges(makes(noise).detach())).mean()).backward()
        of_judges.step()
        of_makes.zero_grad()
        F.softplus(-judges(makes(noise))).mean().backward()
        of_makes.step()


def graph():
    """Messages along the edges of a graph that grows, gathered and added."""
    nodes, width = GIVEN["nodes"] * 1024, 128
    first, second, head = nn.Linear(64, width).cuda(), nn.Linear(width, width).cuda(), nn.Linear(width, 40).cuda()
    model = nn.ModuleList([first, second, head])
    edges = torch.randint(0, nodes, (2, nodes * 8), device="cuda")

    def passed(x):
        return torch.zeros_like(x).index_add_(0, edges[1], x[edges[0]])

    def loss(_model):
        x = F.relu(passed(first(torch.randn(nodes, 64, device="cuda"))))
        return F.cross_entropy(head(F.relu(passed(second(x)))), torch.randint(0, 40, (nodes,), device="cuda"))

    train(model, torch.optim.Adam(model.parameters()), loss)


def contrastive():
    """Each of a batch against each other: logits that are a parabola of it."""
    images, texts = nn.Linear(2048, 512).cuda(), nn.Sequential(nn.Embedding(20000, 512), nn.Linear(512, 512)).cuda()
    model = nn.ModuleList([images, texts])

    def loss(_model):
        count = GIVEN["batch"] * 64
        one = F.normalize(images(torch.randn(count, 2048, device="cuda")), dim=1)
        other = F.normalize(texts(torch.randint(0, 20000, (count, 16), device="cuda")).mean(1), dim=1)
        logits, target = one @ other.T / 0.07, torch.arange(count, device="cuda")
        return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2

    train(model, torch.optim.AdamW(model.parameters()), loss)


def two_ranks():
    """Both ranks of DistributedDataParallel, under torchrun."""
    import torch.distributed as dist
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    model = nn.parallel.DistributedDataParallel(Language(512, 6).cuda(), device_ids=[rank])
    train(model, torch.optim.AdamW(model.parameters()), of_text(GIVEN["batch"], 256))
    dist.destroy_process_group()


def grid():
    model = Language(512, 6).cuda()
    train(model, torch.optim.AdamW(model.parameters()), of_text(GIVEN["batch"], GIVEN["length"]))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
