"""What programs of growth_programs.py take memory with, on the replica of PyTorch's allocator and on CUDA itself. The
test copies this file and replica_tensor.py to the place of a framework's files, so that findings name the lines of their
callers."""
import atexit
import ctypes
import os

from torch.replica_tensor import Tensor, runtime

KIB, MIB = 1 << 10, 1 << 20
HOST, STAGING = ctypes.create_string_buffer(64), ctypes.c_void_p()


def _called_in(file, function):
    """A function of that name in a file of PyTorch's, by which gpumem tells what memory is for."""
    scope = {}
    exec(compile(f"def {function}(make, *sizes):\n    return make(*sizes)\n",  # the file need not exist
                 os.path.join(os.path.dirname(__file__), file), "exec"), scope)
    return lambda size, device=0: scope[function](Tensor, size, device)


parameter = _called_in("nn/parameter.py", "make")
activation = _called_in("nn/modules/module.py", "_call_impl")
gradient = _called_in("autograd/__init__.py", "_make_grads")
optimizer_state = _called_in("optim/adam.py", "_init_group")
batch = _called_in("utils/data/fetch.py", "fetch")


def item(tensor):
    """Reads some bytes back, which waits for the device."""
    assert runtime.cudaMemcpy(HOST, ctypes.c_void_p(tensor.address), 4, 2) == 0


def from_host(tensor):
    """Copies through one buffer that stays."""
    if not STAGING:
        assert runtime.cudaHostAlloc(ctypes.byref(STAGING), ctypes.c_size_t(64 * MIB), 0) == 0
        atexit.register(lambda: runtime.cudaFreeHost(STAGING))
    assert runtime.cudaMemcpy(ctypes.c_void_p(tensor.address), STAGING, ctypes.c_size_t(tensor.size), 1) == 0
    return tensor


class Memory:
    """What a program takes from CUDA itself, and gives back with release()."""
    take, give = "cudaMalloc", "cudaFree"

    def __init__(self, size, *more):
        self.size, pointer = size, ctypes.c_void_p()
        if getattr(runtime, self.take)(ctypes.byref(pointer), ctypes.c_size_t(size), *more) != 0:
            raise MemoryError(size)
        self.address = pointer.value

    def release(self):
        assert getattr(runtime, self.give)(ctypes.c_void_p(self.address)) == 0


class Pinned(Memory):
    take, give = "cudaMallocHost", "cudaFreeHost"


class Managed(Memory):
    take = "cudaMallocManaged"

    def __init__(self, size):
        super().__init__(size, 1)


class Ordered(Memory):
    take = "cudaMallocAsync"

    def __init__(self, size):
        super().__init__(size, None)


def register(size):
    memory = ctypes.create_string_buffer(size)
    assert runtime.cudaHostRegister(memory, ctypes.c_size_t(size), 0) == 0
    return memory
