"""Shared by the scenarios of TensorFlow and JAX."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import gpumem  # noqa: E402

functions = {}


def quiet():
    """To be called before the import of the framework: its log has times, but the output is compared."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.stderr = sys.stdout


def scenario(function):
    functions[function.__name__] = function
    return function


def mark_held(current):
    """A mark with the bytes that the framework says are in use; None if it does not say."""
    gpumem.mark(f"held {current}")
    print(f"{current} bytes")
