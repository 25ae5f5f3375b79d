"""One of two ranks (test_wheel.py): what the other one sends must arrive, as tensors are sized by it."""
import os
import sys

import torch
import torch.distributed as dist

MIB = 1 << 20
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
other = 1 - rank
torch.cuda.set_device(rank)
total = torch.ones(1, device="cuda")
free = torch.cuda.mem_get_info()[0]
dist.init_process_group("nccl", rank=rank, world_size=size)


def expect(what, got, expected):
    if got != expected:
        print(f"rank {rank}: {what}: {got}, expected {expected}", file=sys.stderr)
        os._exit(3)


def on_device(*values):
    return torch.tensor(values, device="cuda")


# No tensor stands for the communicator's buffers.
dist.all_reduce(total)
expect("NCCL's buffers", (free - torch.cuda.mem_get_info()[0]) // MIB, 224 + 2 * 96)  # sim/dry/devices/h100.device

kept = []
# Objects of unequal sizes: 32 MiB on each rank, as rank 0 says.
objects = [None] * size
dist.all_gather_object(objects, {"rank": rank, "name": "x" * (10 + 300 * rank)})
expect("all_gather_object", [(one["rank"], len(one["name"])) for one in objects], [(0, 10), (1, 310)])
told = [{"rows": 32 * MIB}] if rank == 0 else [None]
dist.broadcast_object_list(told, 0)
expect("broadcast_object_list", told, [{"rows": 32 * MIB}])
kept.append(torch.empty(told[0]["rows"], dtype=torch.uint8, device="cuda"))

# A shape by send and receive, both ways: 64 MiB on each rank.
shape = on_device(0, 0)
mine = on_device(64 + rank, MIB - rank)
for one in dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, other), dist.P2POp(dist.irecv, shape, other)]):
    one.wait()
expect("batch_isend_irecv", shape.tolist(), [64 + other, MIB - other])
if rank == 0:
    dist.send(on_device(64, MIB), 1)
    shape = on_device(64, MIB)
else:
    dist.recv(shape, 0)
expect("recv", shape.tolist(), [64, MIB])
kept.append(torch.empty(*shape.tolist(), dtype=torch.uint8, device="cuda"))

# Reductions, gathers and exchanges: 64 MiB more on rank 1.
total, largest = on_device(rank + 1), on_device(rank * 64)
dist.all_reduce(total)
dist.all_reduce(largest, op=dist.ReduceOp.MAX)
expect("all_reduce", (total.item(), largest.item()), (3, 64))
parts = [on_device(0) for _ in range(size)]
dist.all_gather(parts, on_device(rank * 7))
expect("all_gather", [part.item() for part in parts], [0, 7])
exchanged = on_device(0, 0)
dist.all_to_all_single(exchanged, on_device(rank * 10, rank * 10 + 1))
expect("all_to_all_single", exchanged.tolist(), [rank, 10 + rank])
scattered = on_device(0)
dist.reduce_scatter_tensor(scattered, on_device(rank, rank * 64))
expect("reduce_scatter_tensor", scattered.item(), [1, 64][rank])
kept.append(torch.empty(MIB * (scattered.item() if rank else 0), dtype=torch.uint8, device="cuda"))

# A group of one rank does not wait for the other.
alone = dist.new_group([1])
if rank == 1:
    one = on_device(5)
    dist.all_reduce(one, group=alone)
    expect("a group of one", one.item(), 5)
dist.barrier()
dist.destroy_process_group()
