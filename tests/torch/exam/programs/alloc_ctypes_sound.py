# exam: 6 sound
"""A binding of one's own with a free list: what a frame needs is taken from it."""
import ctypes

runtime = ctypes.CDLL("libcudart.so.13")


class Arena:
    def __init__(self):
        self.free = {}

    def take(self, size):
        if self.free.get(size):
            return self.free[size].pop()
        pointer = ctypes.c_void_p()
        if runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)) != 0:
            raise MemoryError(size)
        return pointer

    def give(self, size, pointer):
        self.free.setdefault(size, []).append(pointer)

    def close(self):
        for pointers in self.free.values():
            for pointer in pointers:
                runtime.cudaFree(pointer)


arena = Arena()
for frame in range(300):
    sizes = [(1 + (frame * step) % 7) << 18 for step in (1, 2, 3)]
    buffers = [(size, arena.take(size)) for size in sizes]
    for size, buffer in buffers:
        runtime.cudaMemset(buffer, 0, ctypes.c_size_t(size))
    for size, buffer in buffers:
        arena.give(size, buffer)
arena.close()
