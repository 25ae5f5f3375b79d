"""What the scenarios of TensorFlow and JAX share."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import gpumem  # noqa: E402

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
    gpumem.mark(f"held {current}")
    print(f"{current} bytes")
