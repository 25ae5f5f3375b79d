#!/usr/bin/env python3
"""Training steps and the memory of a GPU, for `scripts/gpu-check`: training.py SCENARIO [DEVICE].

Scenarios that need real kernels (cuBLAS, cuDNN, Triton), in addition to those of tests/torch/wheel_scenarios.py. The
same seed gives the same losses, printed to the last bit, so that a run with the preload can be compared with one
without. DEVICE `cpu` tries the programs without a GPU; there is nothing to record then.
"""
import os
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # deterministic, and a block that no line requests
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "torch"))
import torch  # noqa: E402
import wheel_scenarios as wheel  # noqa: E402

DEVICE = sys.argv[2] if len(sys.argv) > 2 else "cuda"
STEPS = 5


def train(model, make_loss, steps=STEPS, scaler=None, accumulate=1):
    """The usual loop; the losses are printed."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for step in range(steps):
        loss = make_loss(model) / accumulate
        (scaler.scale(loss) if scaler else loss).backward()
        if (step + 1) % accumulate == 0:
            if scaler:
                scaler.step(optimiser)
                scaler.update()
            else:
                optimiser.step()
            optimiser.zero_grad()
        wheel.mark("step")
        losses.append(loss.item())
    print("losses", [loss.hex() for loss in losses])
    return [model, optimiser]


def perceptron():
    return torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.GELU(), torch.nn.LayerNorm(1024),
                               torch.nn.Linear(1024, 512)).to(DEVICE)


def random(*shape):
    return torch.randn(*shape, device=DEVICE)


def square(data):
    return lambda model: (model(data) ** 2).mean()


@wheel.scenario
def matmul():
    return train(perceptron(), square(random(256, 512)))


@wheel.scenario
def convolution():
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(),
                                torch.nn.Conv2d(32, 64, 3, stride=2), torch.nn.ReLU(),
                                torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10))
    return train(model.to(DEVICE), square(random(16, 3, 64, 64)))


@wheel.scenario
def attention():
    layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.0, batch_first=True)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return train(torch.nn.TransformerEncoder(layer, 2).to(DEVICE), square(random(8, 128, 256)))


@wheel.scenario
def mixed_precision():
    data = random(256, 512)

    def loss(model):
        with torch.autocast(DEVICE, dtype=torch.float16 if DEVICE == "cuda" else torch.bfloat16):
            return (model(data).float() ** 2).mean()

    return train(perceptron(), loss, scaler=torch.amp.GradScaler(DEVICE, enabled=DEVICE == "cuda"))


@wheel.scenario
def checkpointing():
    from torch.utils.checkpoint import checkpoint
    data = random(256, 512)
    blocks = torch.nn.ModuleList(perceptron() for _ in range(4))

    def loss(model):
        result = data
        for block in model:
            result = checkpoint(block, result, use_reentrant=False)
        return (result ** 2).mean()

    return train(blocks, loss)


@wheel.scenario
def accumulation():
    return train(perceptron(), square(random(256, 512)), steps=8, accumulate=4)


@wheel.scenario
def compiled():
    return train(torch.compile(perceptron()), square(random(256, 512)))


@wheel.scenario
def graph_step():
    """A whole step captured and replayed, as in PyTorch's documentation of CUDA graphs."""
    model, data = perceptron(), random(256, 512)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step():
        loss = (model(data) ** 2).mean()
        loss.backward()
        optimiser.step()
        return loss

    warm = torch.cuda.Stream()
    warm.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm):
        for _ in range(3):
            optimiser.zero_grad(set_to_none=True)
            step()
    torch.cuda.current_stream().wait_stream(warm)
    graph = torch.cuda.CUDAGraph()
    optimiser.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = step()
    for _ in range(STEPS):
        graph.replay()
    print("loss", loss.item().hex())
    return [model, data, optimiser, graph, loss]


@wheel.scenario
def loader():
    """Workers, pinned batches and copies that do not wait."""
    generator = torch.Generator().manual_seed(1)
    data = torch.utils.data.TensorDataset(torch.randn(512, 512, generator=generator))
    model = perceptron()
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)
    losses = []
    for (batch,) in torch.utils.data.DataLoader(data, batch_size=64, num_workers=2, pin_memory=DEVICE == "cuda"):
        loss = (model(batch.to(DEVICE, non_blocking=True)) ** 2).mean()
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        losses.append(loss.item())
    print("losses", [loss.hex() for loss in losses])
    return [model, optimiser]


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    if DEVICE == "cpu":
        wheel.scenarios[sys.argv[1]]()
    else:
        wheel.main()
