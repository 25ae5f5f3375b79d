# exam: 6 sick retained growing leak
"""A binding of one's own: every frame's device buffer is registered, and freed only at shutdown."""
import atexit
import ctypes

runtime = ctypes.CDLL("libcudart.so.13")
registered = {}


def allocate(size):
    pointer = ctypes.c_void_p()
    if runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)) != 0:  # cause
        raise MemoryError(size)
    return pointer


def release(pointer):
    runtime.cudaFree(pointer)


def process(number):
    image, result = allocate(1 << 20), allocate(2 << 20)  # cause
    runtime.cudaMemset(image, 0, ctypes.c_size_t(1 << 20))
    registered[number] = result
    release(image)


@atexit.register
def shutdown():
    for pointer in registered.values():
        release(pointer)


for frame in range(200):
    process(frame)
