"""The programs that pages of docs/howto are about, where they are installed, and what stands in for them.

A real one is named by the environment: GPUMEM_HOWTO_TORCH=PYTHON, GPUMEM_HOWTO_JAX=PYTHON and so on, an interpreter
that has it. `make test-howto` sets these.
"""
import os
import shutil
import stat
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def write_program(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


def link_python(sandbox, python):
    for name in ("python", "python3"):
        write_program(f"{sandbox.bin}/{name}", f"#!/bin/sh\nexec '{python}' \"$@\"\n")


def torch_stand_in(sandbox):
    """A package `torch` of some lines over the replica of PyTorch's allocator, where a framework's files lie."""
    packages = os.path.join(sandbox.folder, "site-packages")
    shutil.copytree(os.path.join(HERE, "clients/torch"), packages + "/torch",
                    ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT + "/tests/torch/replica_tensor.py", packages + "/torch")
    sandbox.environment.update(PYTHONPATH=packages, REPLICA=sandbox.build + "/tests/torch/default",
                               REPLICA_RUNTIME=sandbox.build + "/sim/libcudart.so.13")
    write_program(sandbox.bin + "/torchrun", f"#!/bin/sh\nexec '{sys.executable}' '{HERE}/clients/torchrun.py' \"$@\"\n")


def toolkit_stand_in(sandbox):
    """nvcc by the host's compiler, over CUDA's headers and the simulated runtime."""
    root = sandbox.folder + "/cuda"
    os.makedirs(root + "/bin")
    os.makedirs(root + "/lib64")
    os.symlink(sandbox.setting("GPUMEM_CUDA_INCLUDE"), root + "/include")
    for name in ("libcudart.so", "libcudart.so.13"):
        os.symlink(sandbox.build + "/sim/libcudart.so.13", f"{root}/lib64/{name}")
    shutil.copy(HERE + "/clients/nvcc", root + "/bin/nvcc")
    sandbox.environment["PATH"] = f"{root}/bin:" + sandbox.environment["PATH"]


def slurm_stand_in(sandbox):
    """sbatch that runs the script at once, and srun that starts its tasks with the environment of Slurm's."""
    for name in ("sbatch", "srun"):
        write_program(f"{sandbox.bin}/{name}", f"#!/bin/sh\nexec '{sys.executable}' '{HERE}/clients/slurm.py' {name} \"$@\"\n")


STAND_INS = {"torch": torch_stand_in, "toolkit": toolkit_stand_in, "slurm": slurm_stand_in}


def provide(sandbox, client):
    """Puts a client into the sandbox. Returns what the page is tried with, or None: it is not here."""
    python = os.environ.get("GPUMEM_HOWTO_" + client.upper())
    if python:
        link_python(sandbox, python)
        sandbox.environment["PATH"] += ":" + os.path.dirname(python)
        return f"{client} of {python}"
    if client in STAND_INS:
        STAND_INS[client](sandbox)
        return f"a stand-in for {client}"
    if client == "gpu":
        return "a GPU" if os.path.exists("/proc/driver/nvidia/version") else None
    return None
