"""What the scenarios of TensorFlow and JAX share."""
import ctypes
import os
import sys

functions = {}


def quiet():
    """Before the framework is imported: its log has times, and what is printed is compared."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.stderr = sys.stdout


def scenario(function):
    functions[function.__name__] = function
    return function


def mark_held(current):
    """A mark with the bytes that the framework says are in use; None if it does not say."""
    library = ctypes.CDLL(None)
    if hasattr(library, "gpumem_mark"):
        library.gpumem_mark(f"held {current}".encode())
    print(f"{current} bytes")
