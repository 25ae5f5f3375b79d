"""Repeats something without an end: loop.py step|read|both|cpu|rising"""
import sys

import torch
from torch.optim.optimizer import Optimizer

how, optimizer, tensor, count = sys.argv[1], Optimizer(), torch.Tensor(), 0
tensor.is_cuda = how != "cpu"
try:
    while count < 20:
        count += 1
        if how == "rising" and count < 9:
            torch.cuda.reserved += 1
        if how in ("step", "both", "rising"):
            optimizer.step()
        if how in ("read", "both", "cpu"):
            tensor.item()
finally:
    print("count", count)
