"""Stands for PyTorch: what sim/dry/python/sitecustomize.py hooks into, and no more."""
import os


class Storage:
    """Four bytes where no kernel's result is known."""

    def nbytes(self):
        return 4

    def data_ptr(self):
        return 4096


class Tensor:
    is_cuda = True
    _version = 0

    def untyped_storage(self):
        return Storage()

    def is_floating_point(self):
        return False

    def _read(self):
        return 0

    __bool__ = lambda self: bool(self._read())  # noqa: E731
    __int__ = __index__ = item = _read

    def __float__(self):
        return 0.0

    def tolist(self):
        return [0]


class version:
    cuda = None if os.environ.get("REPLICA") == "without CUDA" else "13.2"


class cuda:
    reserved = 0

    @staticmethod
    def memory_stats():
        return {"reserved_bytes.all.peak": cuda.reserved}
