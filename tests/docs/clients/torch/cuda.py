"""torch.cuda of the stand-in."""


class OutOfMemoryError(RuntimeError):
    """As PyTorch's."""
