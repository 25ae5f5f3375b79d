"""Stands for PyTorch: what sim/dry/python/sitecustomize.py hooks into, and no more."""


class Tensor:
    is_cuda = True

    def _read(self):
        return 0

    __bool__ = lambda self: bool(self._read())  # noqa: E731
    __int__ = __index__ = item = _read

    def __float__(self):
        return 0.0

    def tolist(self):
        return [0]
