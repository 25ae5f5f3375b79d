# exam: 6 sound
# exam-env: PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync
"""The training loop on CUDA's own pool that keeps numbers."""
import torch


def objective(weight, batch):
    return torch.tanh(weight * batch)


def main():
    weight = torch.ones(512, 1024, device="cuda", requires_grad=True)
    optimizer = torch.optim.Adam([weight])
    curve = []
    for _ in range(100):
        batch = torch.rand(512, 1024, device="cuda")
        loss = objective(weight, batch).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        curve.append(loss.item())
    return len(curve)


main()
