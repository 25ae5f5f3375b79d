# exam: 10 sick ipc-handles retained leak
"""A consumer opens the producer's buffers by their IPC handles, and closes none."""
import ctypes
import os
import sys

CUDART = "libcudart.so.13"
SIZE = 2 << 20


class Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * 64)]


def check(status):
    if status:
        sys.exit(f"cuda error {status}")


def produce(pipe):
    cuda = ctypes.CDLL(CUDART)
    for _ in range(40):
        pointer, handle = ctypes.c_void_p(), Handle()
        check(cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(SIZE)))
        check(cuda.cudaIpcGetMemHandle(ctypes.byref(handle), pointer))
        pipe.write(bytes(handle))
    pipe.flush()
    sys.stdin.readline()


def consume(pipe):
    cuda = ctypes.CDLL(CUDART)
    views = []
    while len(data := pipe.read(64)) == 64:
        handle, pointer = Handle.from_buffer_copy(data), ctypes.c_void_p()
        check(cuda.cudaIpcOpenMemHandle(ctypes.byref(pointer), handle, ctypes.c_uint(1)))  # cause
        views.append(pointer)
        if len(views) == 40:
            break
    return len(views)


if __name__ == "__main__":
    here, there = os.pipe()
    done, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(done, 0)
        os.close(tell)
        produce(os.fdopen(there, "wb"))
        os._exit(0)
    print(consume(os.fdopen(here, "rb")))
    os.close(tell)
    os.waitpid(child, 0)
