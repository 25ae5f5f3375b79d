# exam: 10 sick device-imbalance
# exam-env: GPUMEM_SIM_DEVICES=2
"""Data parallel by hand: each device does its half, the first one collects all outputs."""
import torch


def replicate(size):
    return [torch.ones(size, 4096, device=f"cuda:{n}") for n in range(torch.cuda.device_count())]


def forward(replicas, batches):
    return [torch.tanh(batch.to(weight.device) * weight) for weight, batch in zip(replicas, batches)]


@torch.no_grad()
def main():
    replicas = replicate(4096)
    gathered = []
    for _ in range(12):
        outputs = forward(replicas, [torch.rand(1, 4096).pin_memory() for _ in replicas])
        for output in outputs:
            gathered.append(output.to("cuda:0", copy=True))  # cause
    print(len(gathered))


main()
