# exam: 6 sick retained growing leak
# exam-env: PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync GPUMEM_SIM_MEMORY=512M
# exam-exit: 1
"""Results kept with their graphs, on CUDA's own pool."""
import torch


def objective(weight, batch):
    return torch.tanh(weight * batch)  # cause


def main():
    weight = torch.ones(512, 1024, device="cuda", requires_grad=True)
    curve = []
    for _ in range(1000):
        batch = torch.rand(512, 1024, device="cuda")
        loss = objective(weight, batch).mean()
        curve.append(loss)
        loss.backward(retain_graph=True)
        weight.grad = None
    return len(curve)


main()
