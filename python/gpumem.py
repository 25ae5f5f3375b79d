"""Marks and ranges for gpumem: a program's own names for its work, which become phases of the report.

    import gpumem

    for batch in loader:
        with gpumem.range("step"):
            train(batch)
        gpumem.mark("step")

    @gpumem.range("validation")
    def validate(model): ...

You need not install anything: this is one file without dependencies. Without libgpumem.so in the process all functions
here do nothing, at the cost of a function call. None raises, for any name.

Names are str or bytes; a new name for each call ("step 17231") needs trace space each time, "step" needs it once.
Ranges nest per thread: do not keep one open across an await.
"""
import contextlib
import ctypes

__all__ = ["active", "mark", "range"]


def _nothing(*_):
    pass


def _library_functions():
    """The functions of the preloaded library, or functions that do nothing."""
    try:
        process = ctypes.PyDLL(None)  # not CDLL: a mark should not let another thread run
        mark, push, pop = process.gpumem_mark, process.gpumem_range_push, process.gpumem_range_pop
    except (AttributeError, OSError, TypeError):
        return False, _nothing, _nothing, _nothing
    mark.argtypes = push.argtypes = [ctypes.c_char_p]
    mark.restype = push.restype = pop.restype = None
    return True, mark, push, pop


_active, _mark, _push, _pop = _library_functions()


def _bytes(name):
    if isinstance(name, bytes):
        return name
    return str(name).encode("utf-8", "backslashreplace")


def active():
    """Whether libgpumem.so is in the process."""
    return _active


def mark(name):
    """A moment of the process: the report finds places that hold more at each mark of one name."""
    if _active:
        _mark(_bytes(name))


class range(contextlib.ContextDecorator):  # reads well as gpumem.range
    """A stretch of this thread's time: for `with`, or before a function. It can be used again, and
    inside itself."""

    def __init__(self, name):
        self._name = _bytes(name)

    def __enter__(self):
        _push(self._name)
        return self

    def __exit__(self, *exception):
        _pop()
        return False
