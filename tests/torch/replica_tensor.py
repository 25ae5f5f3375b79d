"""Tensors on the replica of PyTorch's allocator. The test copies this file to the place of a framework's files, so that
findings name the lines of its callers."""
import ctypes
import os

folder = os.environ["REPLICA"]
# Loaded as `import torch` loads them: their symbols stay local.
cuda = ctypes.CDLL(os.path.join(folder, "libc10_cuda.so"))
runtime = ctypes.CDLL(os.environ["REPLICA_RUNTIME"])
cuda.replica_malloc.restype = ctypes.c_void_p
cuda.replica_malloc.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_int]
cuda.replica_free.argtypes = [ctypes.c_int, ctypes.c_void_p]
cuda.replica_allocated.restype = cuda.replica_reserved.restype = ctypes.c_size_t
runtime.cudaMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
runtime.cudaHostAlloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_uint]


class Tensor:
    """A block that is freed when Python drops it."""

    def __init__(self, size, device=0):
        self.size, self.device = size, device
        self.address = cuda.replica_malloc(device, size, 0)
        if not self.address:
            raise MemoryError(size)

    def copy_from(self, host):
        assert runtime.cudaMemcpy(self.address, host, self.size, 1) == 0

    def __del__(self):
        if getattr(self, "address", None):
            cuda.replica_free(self.device, self.address)


def pageable(size):
    return ctypes.create_string_buffer(size)


def pin(size):
    pointer = ctypes.c_void_p()
    assert runtime.cudaHostAlloc(ctypes.byref(pointer), size, 0) == 0
    return pointer.value


def free_memory():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert runtime.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)) == 0
    return free.value


def figures():
    return {"allocated": [cuda.replica_allocated(device) for device in range(2)],
            "reserved": [cuda.replica_reserved(device) for device in range(2)]}
