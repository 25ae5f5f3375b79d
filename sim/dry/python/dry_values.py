"""The value plane of a dry run: small operations on the simulated device are computed on the CPU.

Kernels do not run on the simulated GPU, so a program that decides by a value which the device computed would decide
by a zero. This mode sees each operation of PyTorch. The operation itself runs as ever, so the same memory is
allocated; if all tensors that take part are small, it runs again on the CPU, on views of the same memory (the
simulated device's memory is the host's), and the result is stored where the kernel would have stored it. What
follows from known values alone is known; the simulator is told, and does not count a read of it as uncertain. What
follows from a value that is not known is computed from the zero that stands for it, and stays unknown: of a loss that
nobody computed, isfinite says True.

Operations whose result has a shape that depends on values (nonzero, masked_select, unique, indexing by a mask) run on
the CPU when they are small; what they return is allocated on the device. Where their input is not known they run on the
device as well, which reads a value there, and that counts.
"""
import ctypes
import functools

import torch
from torch.utils._python_dispatch import TorchDispatchMode

MOST = 4096  # elements of the largest tensor that takes part
MOST_BYTES = 1 << 20  # of one of whole numbers or truths: labels, indices, masks; larger copies are left out

aten = torch.ops.aten
BY_VALUE = {getattr(aten, name, None) for name in (
    "nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "repeat_interleave", "bincount", "index")}
# What they make of a known operand that is all zero, or all true, does not depend on the other one.
ZERO_DECIDES = {getattr(aten, name, None) for name in (
    "mul", "mul_", "logical_and", "logical_and_", "bitwise_and", "bitwise_and_", "__and__", "__iand__")}
TRUTH_DECIDES = {getattr(aten, name, None) for name in (
    "logical_or", "logical_or_", "bitwise_or", "bitwise_or_", "__or__", "__ior__")}
# They make no values, or they are how a value leaves the device.
PASSED_OVER = {getattr(aten, name, None) for name in (
    "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "_local_scalar_dense", "record_stream",
    "set_", "resize_", "is_pinned", "_pin_memory", "detach", "view", "_unsafe_view", "as_strided", "t", "transpose",
    "permute", "expand", "slice", "select", "unsqueeze", "squeeze", "alias", "split", "unbind", "chunk", "reshape",
    "_reshape_alias", "equal")}

driver = ctypes.CDLL("libcuda.so.1")
knows = driver.gpumem_sim_knows
knows.argtypes, knows.restype = [ctypes.c_uint64, ctypes.c_uint64], ctypes.c_bool
learn, unlearn = driver.gpumem_sim_learn, driver.gpumem_sim_unlearn
learn.argtypes, learn.restype = [ctypes.c_uint64, ctypes.c_uint64], None
unlearn.argtypes, unlearn.restype = [ctypes.c_uint64, ctypes.c_uint64], None


def on_device(value):
    return isinstance(value, torch.Tensor) and value.is_cuda


def is_plain(tensor):
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided and \
        not tensor.is_conj() and not tensor.is_neg() and not tensor.is_quantized and tensor.data_ptr() != 0


def is_small(tensor):
    return tensor.numel() <= MOST or (not tensor.is_floating_point() and
                                      tensor.numel() * tensor.element_size() <= MOST_BYTES)


def tensors_of(values):
    """All tensors on the device; None: one of them is too large, or of a kind that is left alone."""
    found = []
    stack = list(values)
    while stack:
        value = stack.pop()
        if isinstance(value, (list, tuple)):
            stack.extend(value)
        elif on_device(value):
            if not is_small(value) or (value.numel() and not is_plain(value)):
                return None
            found.append(value)
    return found


def span_of(tensor):
    """Bytes from the first element of a tensor to its last."""
    if tensor.numel() == 0:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.size(), tensor.stride()))
    return (last + 1) * tensor.element_size()


def is_known(tensor):
    span = span_of(tensor)
    return span == 0 or knows(tensor.data_ptr(), span)


def mirror(tensor):
    """The same memory as a tensor of the CPU."""
    span = span_of(tensor)
    if span == 0:
        return torch.empty(tensor.size(), dtype=tensor.dtype)
    memory = (ctypes.c_char * span).from_address(tensor.data_ptr())
    return torch.frombuffer(memory, dtype=tensor.dtype).as_strided(tensor.size(), tensor.stride())


def without_repeats(tensor):
    """Each place in memory once, of a tensor that was expanded: PyTorch does not write to a place twice."""
    for dim, (size, stride) in enumerate(zip(tensor.size(), tensor.stride())):
        if stride == 0 and size > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def on_cpu(value, mirrors):
    if on_device(value):
        return mirrors[id(value)]
    if isinstance(value, (list, tuple)):
        return type(value)(on_cpu(part, mirrors) for part in value)
    if isinstance(value, torch.device):
        return torch.device("cpu")
    return value


def is_settled(packet, inputs):
    """Whether a known operand alone decides the result."""
    if packet in ZERO_DECIDES:
        return any(is_known(tensor) and not mirror(tensor).any() for tensor in inputs if not tensor.is_floating_point())
    return packet in TRUTH_DECIDES and any(
        is_known(tensor) and mirror(tensor).all() for tensor in inputs if tensor.dtype is torch.bool)


def flat(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


class Values(TorchDispatchMode):
    KNOWS_RANDOM = True  # what is drawn here stands for what a GPU would draw

    def __init__(self):
        super().__init__()
        self.random_state = None

    def begin(self, tell):
        """For the rest of the process, or until compiled code is called: the compiler looks for modes."""
        compile_function, is_active = torch.compile, True

        def leave(*_):
            nonlocal is_active
            if is_active:
                self.__exit__(None, None, None)
                tell("values-ended\t1\tcompiled")
            is_active = False

        def compile_and_leave(model=None, **options):
            if model is None:
                return lambda model: compile_and_leave(model, **options)
            compiled = compile_function(model, **options)
            if isinstance(compiled, torch.nn.Module):
                compiled.register_forward_pre_hook(leave)
                return compiled

            @functools.wraps(compiled)
            def leave_and_call(*args, **kwargs):
                leave()
                return compiled(*args, **kwargs)
            return leave_and_call

        torch.compile = compile_and_leave
        self.__enter__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        packet = func.overloadpacket
        if packet in PASSED_OVER or func.namespace == "c10d" or torch.cuda.is_current_stream_capturing():
            return func(*args, **kwargs)
        inputs = tensors_of([args, list(kwargs.values())])
        if inputs is None or not (inputs or "device" in kwargs):
            return func(*args, **kwargs)
        known = (all(is_known(tensor) for tensor in inputs) or is_settled(packet, inputs)) and \
            (self.KNOWS_RANDOM or torch.Tag.nondeterministic_seeded not in func.tags)
        if packet in BY_VALUE:
            return self.by_value(func, args, kwargs, inputs, known)
        # In-place operations change their inputs: the CPU's copies are made before.
        mirrors = {id(tensor): mirror(tensor).clone() for tensor in inputs}
        result = func(*args, **kwargs)
        outputs = [value for value in flat(result) if on_device(value)]
        if not outputs or tensors_of(outputs) is None:
            return result
        computed = self.compute(func, args, kwargs, mirrors)
        if computed is not None:
            if not known:
                self.assume(packet, inputs, kwargs, computed)
            self.store(outputs, [value for value in flat(computed) if isinstance(value, torch.Tensor)],
                       learn if known else unlearn)
        return result

    def compute(self, func, args, kwargs, mirrors):
        """What the CPU says; None: it cannot."""
        is_random = torch.Tag.nondeterministic_seeded in func.tags
        if is_random: # the program's own generator stays as it is
            before = torch.get_rng_state()
            if self.random_state is not None:
                torch.set_rng_state(self.random_state)
        try:
            return func(*on_cpu(tuple(args), mirrors),
                        **{name: on_cpu(value, mirrors) for name, value in kwargs.items() if name != "generator"})
        except (RuntimeError, NotImplementedError, TypeError, IndexError, ValueError):
            return None
        finally:
            if is_random:
                self.random_state = torch.get_rng_state()
                torch.set_rng_state(before)

    def assume(self, packet, inputs, kwargs, computed):
        """What is to be assumed of a result that is not known, other than what follows from zeros."""

    @staticmethod
    def store(outputs, computed, tell):
        for output, value in zip(outputs, computed):
            if output.numel() and output.size() == value.size() and output.dtype == value.dtype:
                once = without_repeats(output)
                mirror(once).copy_(value.as_strided(once.size(), value.stride()))
                tell(output.data_ptr(), span_of(output))

    def by_value(self, func, args, kwargs, inputs, known):
        computed = self.compute(func, args, kwargs, {id(tensor): mirror(tensor).clone() for tensor in inputs})
        if computed is None:
            return func(*args, **kwargs)
        if not known:
            func(*args, **kwargs)
        device = inputs[0].device
        values = flat(computed)
        outputs = [torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=device)
                   for value in values]
        self.store(outputs, values, learn if known else unlearn)
        return type(computed)(outputs) if isinstance(computed, (list, tuple)) else outputs[0]


class Objects(Values):
    """For what ranks send each other as pickles. All are made as long as the longest, and nobody looks at what stands
    behind a shorter one."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket is not aten.resize_ or not is_known(args[0]):
            return super().__torch_dispatch__(func, types, args, kwargs)
        result = func(*args, **(kwargs or {}))
        learn(result.data_ptr(), span_of(result))
        return result


def start(tell):
    """Begins, for the rest of the process."""
    Values().begin(tell)
