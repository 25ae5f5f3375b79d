#!/usr/bin/env python3
"""A transformer of 2.7 billion parameters as courses teach it, with all written out: large_language_model.py CONTEXT [STEPS
[SNAPSHOT]]

RMSNorm, rotary positions from a table, attention by einsum with a mask, a gated layer, a loss and AdamW of its own. Batch
4, fp32. It stands for the program of a published recording (test_recording_wheel.py), written from what the recording
tells of it. Of SNAPSHOT the history begins where the recording's does: when the model has been made.
"""
import sys

import torch
import torch.nn as nn
from torch import einsum

CONTEXT, STEPS = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
BATCH, WIDTH, INNER, LAYERS, HEADS, WORDS = 4, 2560, 10240, 32, 32, 10000


class Linear(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outside, inside, device="cuda"))

    def forward(self, x):
        return einsum("oi,...i->...o", self.weight, x)


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(WIDTH, device="cuda"))

    def forward(self, x):
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        scale = torch.sqrt(length ** 2 / WIDTH + 1e-5)
        x = x / scale
        return einsum("...d,d->...d", x, self.weight)


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        size = WIDTH // HEADS
        angles = torch.arange(CONTEXT)[:, None] * 10000.0 ** (-torch.arange(0, size, 2) / size)
        self.register_buffer("table", torch.stack((angles.cos(), angles.sin())).cuda())

    def forward(self, x, positions):
        cos = self.table[0][positions].unsqueeze(1)
        sin = self.table[1][positions].unsqueeze(1)
        turned = torch.empty_like(x)
        turned[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
        turned[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
        return turned


def softmax(x):
    most = x.max(dim=-1, keepdim=True).values
    x = (x - most).exp()
    return x / x.sum(dim=-1, keepdim=True)


def attention(q, k, v, mask):
    scores = einsum("...qd,...kd->...qk", q, k)
    scores = scores / (WIDTH // HEADS) ** 0.5
    scores = scores.masked_fill(mask.expand(scores.shape) == 0, float("-inf"))
    return einsum("...qk,...kd->...qd", softmax(scores), v)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (Linear(WIDTH, WIDTH) for _ in range(4))
        self.rotary = Rotary()

    def heads(self, x):
        return x.view(BATCH, CONTEXT, HEADS, -1).transpose(1, 2)

    def forward(self, x):
        q = k = turned_q = turned_k = v = None # in the order in which they are to go at the end
        q, k, v = self.q(x), self.k(x), self.v(x)
        q, k, v = self.heads(q), self.heads(k), self.heads(v)
        positions = torch.arange(CONTEXT, device=x.device).expand(BATCH, CONTEXT)
        turned_q, turned_k = self.rotary(q, positions), self.rotary(k, positions)
        mask = torch.triu(torch.ones(CONTEXT, CONTEXT, device=x.device), diagonal=1).bool()
        mask = ~mask
        y = attention(turned_q, turned_k, v, mask)
        y = y.transpose(1, 2).reshape(BATCH, CONTEXT, WIDTH)
        return self.out(y)


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = Linear(WIDTH, INNER), Linear(WIDTH, INNER), Linear(INNER, WIDTH)

    def forward(self, x):
        gate, up = self.gate(x), self.up(x)
        gate = gate * gate.sigmoid()
        return self.down(gate * up)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.attention, self.second, self.gated = Norm(), Attention(), Norm(), Gated()

    def forward(self, x):
        y = self.attention(self.first(x))
        x = x + y
        y = self.second(x)
        y = self.gated(y)
        return x + y


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Parameter(torch.empty(WORDS, WIDTH, device="cuda"))
        self.blocks, self.norm, self.head = nn.ModuleList(Block() for _ in range(LAYERS)), Norm(), Linear(WIDTH, WORDS)

    def forward(self, text):
        x = self.words[text]
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x)


def cross_entropy(logits, targets):
    most = logits.max(dim=-1, keepdim=True).values
    logits = logits - most
    total = logits.exp().sum(dim=-1)
    wanted = logits[torch.arange(len(targets)), targets]
    losses = total.log() - wanted
    return losses.mean()


class AdamW(torch.optim.Optimizer):
    """Without temporary arrays of all parameters, as `foreach` makes them."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "decay": 0.01})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for one in group["params"]:
                state = self.state[one]
                if not state:
                    state["step"], state["first"], state["second"] = 0, torch.zeros_like(one), torch.zeros_like(one)
                state["step"] += 1
                first, second, (one_beta, other_beta) = state["first"], state["second"], group["betas"]
                first.mul_(one_beta).add_(one.grad, alpha=1 - one_beta)
                second.mul_(other_beta).addcmul_(one.grad, one.grad, value=1 - other_beta)
                update = first / second.sqrt().add_(group["eps"])
                one.add_(update, alpha=-group["lr"])
                one.mul_(1 - group["lr"] * group["decay"])


def step(model, optimizer, text):
    logits = model(text)
    loss = cross_entropy(logits.flatten(0, 1), text.flatten())
    loss.backward()
    optimizer.step()


if __name__ == "__main__":
    model = Language()
    optimizer = AdamW(model.parameters())
    text = torch.randint(0, WORDS, (BATCH, CONTEXT), device="cuda")
    if len(sys.argv) > 3:
        torch.cuda.memory._record_memory_history(max_entries=1000000, stacks="python")
        print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
    for _ in range(STEPS):
        step(model, optimizer, text)
        if len(sys.argv) > 3:
            torch.cuda.memory._dump_snapshot(sys.argv[3])
        optimizer.zero_grad()
