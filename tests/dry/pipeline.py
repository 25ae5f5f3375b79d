"""One of two stages of a pipeline (test_wheel.py)."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

rank = int(os.environ["RANK"])
device = torch.device("cuda", rank)
torch.cuda.set_device(device)
dist.init_process_group("nccl", rank=rank, world_size=2)
inputs = torch.randn(64, 1024, device=device)
for kind in (ScheduleGPipe, Schedule1F1B):
    layers = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).to(device)
    schedule = kind(PipelineStage(layers, rank, 2, device), n_microbatches=4,
                    loss_fn=lambda output, target: (output - target).pow(2).mean())
    for _ in range(2):
        if rank == 0:
            schedule.step(inputs)
        else:
            schedule.step(target=inputs, losses=[])
    assert all(parameter.grad is not None for parameter in layers.parameters())
dist.destroy_process_group()
