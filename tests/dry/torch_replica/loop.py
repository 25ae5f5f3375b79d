"""Repeats something without an end: loop.py step|read|both|cpu|rising|compile"""
import sys

import torch
from torch._inductor.joint_graph import constant_of
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
        if how == "compile":
            constant_of(tensor)
finally:
    print("count", count)
