#!/usr/bin/env python3
"""Programs that test_wheel.py runs dry: scenarios.py NAME

Each prints the bytes of PyTorch's peaks, allocated and reserved.
"""
import os
import subprocess
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


def tuned():
    """Autotuners try few variants, and once, as nothing can be told apart by its time: Inductor's, and a program's own."""
    import triton
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU()).cuda().half()
    faster = torch.compile(model, mode="max-autotune")
    for _ in range(3):
        torch.compiler.cudagraph_mark_step_begin()
        faster(torch.randn(64, 256, device="cuda", dtype=torch.half)).sum().backward()
        model.zero_grad()
    runs = []

    def kernel():
        """Stands for one: its source is not compiled, only its runs are counted."""

    kernel.arg_names, kernel.run = [], lambda *_args, warps, **_named: runs.append(warps)
    kernel.fn = kernel
    many = [triton.Config({"warps": 1 << i}) for i in range(16)]
    own = triton.runtime.autotuner.Autotuner(kernel, [], many, [], None, None)
    own.run(grid=(1,))
    assert len(set(runs)) == 2 and len(runs) < 20, runs


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


def finite():
    """Stops with an error where the loss is not finite, which a device says that did not compute it."""
    model = perceptron()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        loss = model(torch.randn(64, 1024, device="cuda")).pow(2).mean()
        if not torch.isfinite(loss):
            sys.exit("the loss is not finite")
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def generation():
    """Text that grows token by token until the device says that all of it has ended."""
    model, text = nn.Embedding(50000, 512).cuda(), torch.randint(0, 50000, (4, 16), device="cuda")
    unfinished, kept = torch.ones(4, dtype=torch.long, device="cuda"), []
    while True:
        kept.append(torch.empty(1 << 20, device="cuda"))
        token = (model(text)[:, -1] @ model.weight.T).argmax(-1)
        text = torch.cat([text, (token * unfinished)[:, None]], 1)
        unfinished = unfinished & ~torch.full((4,), text.shape[1] >= 48, device="cuda")
        if unfinished.max() == 0:
            break
    print("tokens", text.shape[1])


def text():
    """Text of 40 tokens, or less if all lines of it end by a token of 0, which is what nobody computes reads as."""
    model, tokens, kept = nn.Embedding(1000, 4096).cuda(), torch.randint(0, 1000, (4, 8)).cuda(), []
    unfinished = torch.ones(4, dtype=torch.bool).cuda()
    for _ in range(40):
        hidden = model(tokens)
        kept.append(hidden)
        token = (hidden[:, -1] @ model.weight.T).argmax(-1)
        unfinished = unfinished & (token != 0)
        if not unfinished.any():
            break
        tokens = torch.cat([tokens, token[:, None]], 1)


def limited_text():
    """Text that ends by a token of 0, or by its limit, which the device looks at."""
    model, tokens, kept = nn.Embedding(1000, 4096).cuda(), torch.randint(0, 1000, (4, 8)).cuda(), []
    unfinished = torch.ones(4, dtype=torch.long).cuda()
    while unfinished.max() != 0:
        hidden = model(tokens)
        kept.append(hidden)
        token = (hidden[:, -1] @ model.weight.T).argmax(-1) * unfinished
        tokens = torch.cat([tokens, token[:, None]], 1)
        is_done = torch.isin(token, torch.zeros(1, dtype=torch.long).cuda())
        is_done = is_done | torch.full((4,), tokens.shape[1] >= 48, device="cuda")
        unfinished = unfinished & ~is_done
    print("tokens", tokens.shape[1])


def assigned():
    """As detectors do it: targets by image, of which there are as many as the host says; boxes by a grid."""
    image = torch.tensor([0.0, 0.0, 1.0, 3.0, 3.0, 3.0]).cuda()
    _, counts = image.unique(return_counts=True)
    room = torch.zeros(4, counts.max(), 1 << 20, device="cuda")
    y, x = torch.meshgrid(torch.arange(8, device="cuda"), torch.arange(8, device="cuda"), indexing="ij")
    boxes = torch.stack((x, y), -1).view(-1, 2)
    assert room.shape[1] == 3 and boxes.max().item() == 7, (room.shape, boxes)


def chosen_on_host():
    """Rows that the device chooses of what is there, and the host of what it has: as many of the one as of the other."""
    scores, labels = torch.randn(1 << 14, 256, device="cuda"), torch.arange(1 << 14)
    keep = scores[:, 0] > 0.5
    assert len(scores[keep]) == len(labels[keep.cpu()])


def experts():
    """Experts that get the tokens which a gate sends them: of none, there would be no gradient."""
    gate, experts = nn.Linear(256, 4).cuda(), nn.ModuleList(nn.Linear(256, 256) for _ in range(4)).cuda()
    inputs = torch.randn(512, 256, device="cuda")
    weights, chosen = gate(inputs).softmax(-1).topk(2, -1)
    outputs = torch.zeros_like(inputs)
    for number, expert in enumerate(experts):
        token, rank = torch.where(chosen == number)
        if token.numel():
            outputs.index_add_(0, token, expert(inputs[token]) * weights[token, rank, None])
    outputs.pow(2).mean().backward()


def objects():
    """What ranks tell each other as pickles; rank 0 of 8, alone."""
    import torch.distributed as dist
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=8)
    gathered, sent = [None] * 8, [{"rank": 0}]
    dist.all_gather_object(gathered, sent[0])
    dist.broadcast_object_list(sent, 0)
    assert gathered == [{"rank": 0}] * 8 and sent == [{"rank": 0}], (gathered, sent)


def two_ranks(program):
    folder = os.path.dirname(os.path.abspath(__file__))
    subprocess.run([sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                    os.path.join(folder, program)], check=True)


def ranks():
    """Two ranks of one node, which size their tensors by what the other one says."""
    two_ranks("ranks.py")


def pipeline():
    """Two stages, which tell each other the shapes of their tensors."""
    two_ranks("pipeline.py")


def checkpointing():
    from torch.utils.checkpoint import checkpoint
    layers = nn.ModuleList(nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(8)).cuda()
    x = torch.randn(512, 1024, device="cuda", requires_grad=True)
    for layer in layers:
        x = checkpoint(layer, x, use_reentrant=False)
    x.sum().backward()


def tensor_parallel():
    """Rank 0 of 8, alone, in a process group that only pretends."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
    from torch.testing._internal.distributed.fake_pg import FakeStore
    dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
    model = parallelize_module(perceptron(), init_device_mesh("cuda", (8,)), {"0": ColwiseParallel()})
    train(model, torch.optim.AdamW(model.parameters()), (64, 1024), 1000, forward=lambda x: model[0](x).repeat(1, 8))


def most_at_once(history):
    """The peak of a recorded history: blocks by what was asked for, each rounded up to 512 bytes, as MemTracker does.
    PyTorch's own figure has also the rests of segments that it does not split off."""
    held = peak = 0
    for event in history:
        if event["action"] in ("alloc", "free_completed"):
            size = -(-event["size"] // 512) * 512
            held += size if event["action"] == "alloc" else -size
            peak = max(peak, held)
    return peak


def tracked():
    """PyTorch's own MemTracker says the same of these steps, of tensors without memory."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker

    def make():
        model = nn.Sequential(nn.Linear(1024, 4096, device="cuda"), nn.ReLU(), nn.Linear(4096, 1000, device="cuda"))
        return (model, torch.optim.AdamW(model.parameters(), foreach=True), torch.randn(64, 1024, device="cuda"),
                torch.randint(0, 1000, (64,), device="cuda"))

    def step(model, optimizer, inputs, labels):
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        optimizer.zero_grad()

    with FakeTensorMode():
        made, tracker = make(), MemTracker()
        tracker.track_external(*made)
        with tracker:
            for _ in range(3):
                tracker.reset_mod_stats()
                step(*made)
    says = next(sizes for device, sizes in tracker.get_tracker_snapshot("peak").items() if device.type == "cuda")
    torch.cuda.memory._record_memory_history(context=None)
    made = make()
    for _ in range(3):
        step(*made)
    here = most_at_once(torch.cuda.memory._snapshot()["device_traces"][0])
    assert says["Total"] == here, (says["Total"], here)


def many_steps():
    model = perceptron()
    train(model, torch.optim.AdamW(model.parameters()), (64, 1024), 1000, steps=1000000)


def masks(known):
    """Cross-entropy over the labels that count, which the host knows or the GPU computes."""
    embedding, head = torch.nn.Embedding(1000, 512).cuda(), torch.nn.Linear(512, 8000).cuda()
    ids = torch.randint(0, 1000, (8, 512))
    labels = ids.clone()
    labels[:, :256] = -100
    labels = labels.cuda() if known else torch.where(torch.rand(8, 512, device="cuda") > 0.5, labels.cuda(), -100)
    hidden = embedding(ids.cuda())
    kept = labels != -100
    torch.nn.functional.cross_entropy(head(hidden[kept]), labels[kept]).backward()
    hidden.detach()[kept] = 0.0
    torch.unique(labels, return_counts=True)
    torch.masked_select(hidden, kept[..., None])


def known_masks():
    masks(True)


def unknown_masks():
    masks(False)


def repeats():
    """As often as the host says: how long the result is stands on the device. 8 + 16 MiB with the indices."""
    rows = torch.zeros(1024, 2048, device="cuda")
    torch.repeat_interleave(rows, torch.tensor([1, 3] * 512).cuda(), dim=0)
    assert len(torch.bincount(torch.tensor([5, 9, 9]).cuda())) in (1, 10)


def counted_masks():
    """Room for as many rows as a mask is read to have: the read and the rows agree in each run."""
    hidden = torch.randn(8192, 1024, device="cuda")
    for dim, mask in ((None, hidden[:, 0] > 0), (0, torch.randn(8192, 2, device="cuda") > 0)):
        count = mask.sum() if dim is None else mask.sum(dim)[0]
        room = torch.zeros(int(count.item()), 1024, device="cuda")
        room += hidden[mask if dim is None else mask[:, 0]]


def chosen_masks():
    """The same as known_masks() by indices that the host has made: what it needs at least."""
    kept = torch.ones(8, 512, dtype=torch.bool)
    kept[:, :256] = False
    indices = [index.cuda() for index in kept.nonzero().unbind(1)]
    embedding, head = torch.nn.Embedding(1000, 512).cuda(), torch.nn.Linear(512, 8000).cuda()
    ids = torch.randint(0, 1000, (8, 512))
    labels, hidden = ids.cuda(), embedding(ids.cuda())
    torch.nn.functional.cross_entropy(head(hidden[indices]), labels[indices]).backward()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("peak", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
