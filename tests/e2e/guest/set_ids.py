"""Allocates, and sets users and groups to what they are while threads of a guest live. Run by run.py."""
import ctypes
import os
import signal
import time

WANTED = {"gpumem", "gpumem-nvml"} if "LD_PRELOAD" in os.environ else set()
runtime = ctypes.CDLL("libcudart.so.13")


def pair():
    address = ctypes.c_void_p()
    runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(512))
    runtime.cudaFree(address)


def threads():
    names = set()
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/comm", encoding="ascii") as file:
            names.add(file.read().strip())
    return names


for _ in range(20000):  # more than half a ring
    pair()
for _ in range(1000):
    if not WANTED <= threads():
        time.sleep(0.01)
print("no thread", WANTED - threads())
signal.alarm(60)  # a failure is a process that waits for ever
os.setgroups(os.getgroups())
os.setgid(os.getgid())
os.setegid(os.getegid())
os.setuid(os.getuid())
os.seteuid(os.geteuid())
print("set")
