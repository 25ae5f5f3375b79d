"""How many rows masks choose, in a dry run: those that known values choose, else all.

The sizes of some results depend on values: nonzero, masked_select, unique, indexing by a mask. Kernels do not run, so a
mask that the GPU computes reads as zero and chooses nothing, and what a program makes of the rows costs nothing. This
mode adds to that of dry_values.py the other end: of a mask that is not known all rows are chosen, and its sum says so. A
mask that follows from what the host copied to the device (`labels != -100`) is computed, and chooses what it does on a GPU.

A mask that is not known is true where the host gets it, too, so that both choose the same. And a whole number that is not
known (a token that the GPU chose) differs from each that the program compares it with: no token ends a text before its
limit does.

PyTorch looks for the rows within an operation, below any mode, so each mask is replaced by the indices that PyTorch
would find: results and gradients then have matching sizes.
"""
import os

import torch
from dry_values import Values, aten, is_known, is_plain, is_small, learn, mirror, on_device, span_of, unlearn

MASKS = (torch.bool, torch.uint8)
MANY = 1 << 20  # rows of a mask, from which on it may be the host that has no room for all
# Whether whole numbers are equal, and what they say of such as are not.
COMPARISONS = {aten.eq: False, aten.ne: True, aten.isin: False}


def check_host():
    """A program that makes lists of all rows may need more than the machine has: that is no answer, and no end of others."""
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[1])
    if pages > os.sysconf("SC_PHYS_PAGES") // 2:
        raise MemoryError("all rows that masks choose take more than half of the host's memory")


def is_mask(value):
    return on_device(value) and value.dtype in MASKS and value.dim() > 0


class Rows(Values):
    KNOWS_RANDOM = False  # a GPU draws other numbers, which choose other rows

    def __init__(self, tell):
        super().__init__()
        self.tell, self.told = tell, set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        choose = CHOOSERS.get(func.overloadpacket) or CHOOSERS_BY_NAME.get(str(func.overloadpacket))
        if choose and on_device(args[0]) and args[0].numel() and not torch.cuda.is_current_stream_capturing():
            result = choose(self, func, *args, **(kwargs or {}))
            if result is not None:
                return result
        return super().__torch_dispatch__(func, types, args, kwargs)

    def assumes(self, what):
        if what not in self.told:
            self.told.add(what)
            self.tell(f"rows\t1\t{what}")

    def chooses_all(self):
        self.assumes("all")

    def assume(self, packet, inputs, kwargs, computed):
        says = COMPARISONS.get(packet)
        if says is not None and not any(tensor.is_floating_point() or tensor.dtype is torch.bool for tensor in inputs) and \
                (len(inputs) == 1 or any(is_known(tensor) for tensor in inputs)):
            computed.fill_(says != bool(kwargs.get("invert")))
            self.assumes("differ")

    def nonzero(self, mask):
        """The indices of what is not zero in a mask of the device, a row each, as PyTorch lays them out."""
        known = is_plain(mask) and is_known(mask)
        found = mirror(mask).nonzero() if known else None
        if not known:
            if mask.numel() > MANY:
                check_host()
            aten.nonzero.default(mask)  # for the memory that it takes meanwhile
            self.chooses_all()
        indices = torch.empty((mask.dim(), len(found) if known else mask.numel()), dtype=torch.int64, device=mask.device)
        if known and len(found):
            mirror(indices).copy_(found.t())
            learn(indices.data_ptr(), indices.numel() * indices.element_size())
        return indices.t()

    def without_masks(self, indices):
        """Indices in which each mask is replaced by what it chooses; None: there is no mask."""
        if not any(is_mask(index) for index in indices):
            return None
        return [part for index in indices for part in (self.nonzero(index).unbind(1) if is_mask(index) else [index])]

    def choose_nonzero(self, _func, mask):
        return self.nonzero(mask)

    def choose_count(self, func, mask, *arguments, **named):
        """How many a mask chooses, which a program may read to size a tensor by it; None: it can be computed."""
        if mask.dtype is not torch.bool or (is_plain(mask) and is_small(mask) and is_known(mask)):
            return None
        count = func(mask, *arguments, **named)
        if count.numel() and is_plain(count):
            mirror(count).fill_(mask.numel() // count.numel())
            unlearn(count.data_ptr(), span_of(count))
            self.chooses_all()
        return count

    def choose_on_host(self, func, mask, *arguments, **named):
        """A copy to the host; None: it has the values that it should."""
        device = named.get("device")
        if device is None or torch.device(device).type != "cpu" or not is_mask(mask) or (is_plain(mask) and is_known(mask)):
            return None
        self.chooses_all()
        return func(mask, *arguments, **named).fill_(1)

    def choose_by_index(self, func, tensor, indices, *rest, **named):
        indices = self.without_masks(indices)
        return None if indices is None else func(tensor, indices, *rest, **named)

    def choose_masked(self, _func, tensor, mask):
        tensor, mask = torch.broadcast_tensors(tensor, mask)
        return aten.index.Tensor(tensor, list(self.nonzero(mask).unbind(1)))

    def all_unique(self, func, tensor, arguments, dim, counts):
        """All are different, along a dimension or in all; None: it can be computed. `counts`: they are asked for."""
        if is_plain(tensor) and is_small(tensor) and is_known(tensor):
            return None
        values, inverse, count = func(tensor, *arguments)
        self.chooses_all()
        values = tensor.new_empty(tensor.numel() if dim is None else tensor.size())
        if counts:
            count = count.new_empty(tensor.numel() if dim is None else tensor.size(dim))
        return values, inverse, count

    def choose_unique(self, func, tensor, sorted=True, return_inverse=False, return_counts=False):
        return self.all_unique(func, tensor, (sorted, return_inverse, return_counts), None, return_counts)

    def choose_unique_dim(self, func, tensor, dim, sorted=True, return_inverse=False, return_counts=False):
        return self.all_unique(func, tensor, (dim, sorted, return_inverse, return_counts), dim, return_counts)

    def choose_consecutive(self, func, tensor, return_inverse=False, return_counts=False, dim=None):
        return self.all_unique(func, tensor, (return_inverse, return_counts, dim), dim, return_counts)

    def choose_boxes(self, func, boxes, *arguments, **named):
        func(boxes, *arguments, **named)
        self.chooses_all()
        return torch.arange(len(boxes), device=boxes.device)


CHOOSERS = {getattr(aten, name, None): choose for name, choose in {
    "nonzero": Rows.choose_nonzero, "masked_select": Rows.choose_masked, "index": Rows.choose_by_index,
    "_unsafe_index": Rows.choose_by_index, "index_put": Rows.choose_by_index, "index_put_": Rows.choose_by_index,
    "_index_put_impl_": Rows.choose_by_index, "_unsafe_index_put": Rows.choose_by_index,
    "_to_copy": Rows.choose_on_host, "sum": Rows.choose_count, "count_nonzero": Rows.choose_count, "_unique2": Rows.choose_unique, "unique_dim": Rows.choose_unique_dim,
    "unique_consecutive": Rows.choose_consecutive}.items()}
CHOOSERS_BY_NAME = {"torchvision.nms": Rows.choose_boxes}  # not there before torchvision is imported


def start(tell):
    """Begins, for the rest of the process, as dry_values.start() does."""
    Rows(tell).begin(tell)
