"""Stands in for PyTorch in pages of docs/howto: tensors of 4-byte elements on the replica of its allocator."""
from torch import cuda
from torch.replica_tensor import Tensor as _Block

__version__ = "stand-in"


class Tensor:
    def __init__(self, count, device):
        self.count = count
        self.block = None
        if str(device).startswith("cuda"):
            try:
                self.block = _Block(4 * count, int((str(device) + ":0").split(":")[1]))
            except MemoryError:
                raise cuda.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {4 * count} bytes.") from None

    def __mul__(self, _):
        return Tensor(self.count, "cuda" if self.block else "cpu")

    __add__ = __mul__

    def cpu(self):
        return Tensor(self.count, "cpu")


def empty(*shape, device="cpu"):
    count = 1
    for length in shape:
        count *= length
    return Tensor(count, device)


zeros = ones = empty
