# exam: 7 sick churn
"""A context manager that cleans up after each request: collector, cache and all."""
import contextlib
import gc

import torch


@contextlib.contextmanager
def clean_memory():
    try:
        yield
    finally:
        gc.collect(0)
        torch.cuda.empty_cache()  # cause


def detect(image):
    pyramid = [image]
    for _ in range(4):
        pyramid.append(pyramid[-1][:, ::2, ::2] * 0.5)  # cause
    return sum(level.mean() for level in pyramid).item()


if __name__ == "__main__":
    for number in range(50):
        with clean_memory():
            detect(torch.rand(3, 2048, 2048, device="cuda"))  # cause
