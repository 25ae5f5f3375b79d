"""What a Python program can tell gpumem, and ask it. The functions are those of gpumem.h, which says more of each.

Marks and ranges: a program's own names for its work, which become phases of the report.

    import gpumem

    for batch in loader:
        with gpumem.range("step"):
            train(batch)
        gpumem.mark("step")

    @gpumem.range("validation")
    def validate(model): ...

You need not install anything: this is one file without dependencies. Without libgpumem.so in the process all functions
here do nothing, at the cost of a function call; questions raise NotKnown. Nothing else raises, for any name.

Questions: live_bytes(), peak_bytes() and check_now() answer from all that the process did up to the call, or raise
NotKnown. `with gpumem.ignore():` says that what is allocated there is no leak.

Names are str or bytes; a new name for each call ("step 17231") needs trace space each time, "step" needs it once.
Ranges nest per thread: do not keep one open across an await.
"""
import collections
import contextlib
import ctypes

__all__ = ["Left", "NotKnown", "active", "check_now", "ignore", "live_bytes", "mark", "moment", "peak_bytes",
           "peak_restart", "range"]

ALL_DEVICES = -1
NO_SUCH = -4  # the code of NotKnown for a device or a kind that there is not

# Kinds of memory, for live_bytes.
KINDS = {"on_device": 0, "device": 1, "managed": 2, "array": 3, "vmm": 4, "graph": 5, "external": 6, "pinned": 7,
         "registered": 8, "host_vmm": 9, "in_use": 10, "blocks": 11}

Left = collections.namedtuple("Left", "bytes count")


class NotKnown(Exception):
    """There is no answer; `code` is that of gpumem.h."""

    REASONS = {-1: "libgpumem.so is not in the process (gpumem run -- COMMAND, or LD_PRELOAD=$(gpumem path))",
               -2: "libgpumem.so is in the process, but does not record it",
               -3: "records were lost, or calls not seen: gpumem report says which",
               -4: "there is no such device or kind"}

    def __init__(self, code):
        super().__init__(self.REASONS.get(code, f"no answer: {code}"))
        self.code = code

    @property
    def is_absent(self):
        """Nobody records this process."""
        return self.code in (-1, -2)


def _nothing(*_):
    pass


class _Left(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ulonglong), ("count", ctypes.c_ulonglong)]


def _absent(*_):
    return -1


_FUNCTIONS = {  # result, arguments, what stands for it where it is absent
    "mark": (None, [ctypes.c_char_p], _nothing),
    "range_push": (None, [ctypes.c_char_p], _nothing),
    "range_pop": (None, [], _nothing),
    "live_bytes": (ctypes.c_longlong, [ctypes.c_int, ctypes.c_int], _absent),
    "peak_bytes": (ctypes.c_longlong, [ctypes.c_int], _absent),
    "peak_restart": (None, [], _nothing),
    "moment": (ctypes.c_ulonglong, [], lambda: 0),
    "check_now": (ctypes.c_longlong, [ctypes.c_ulonglong, ctypes.POINTER(_Left)], _absent),
    "ignore_begin": (None, [], _nothing),
    "ignore_end": (None, [], _nothing),
}


def _library_functions():
    """The functions of the preloaded library, or functions that do nothing. A library that is older than this module
    may have but some of them."""
    try:
        process = ctypes.PyDLL(None)  # not CDLL: a mark should not let another thread run
        process.gpumem_mark  # noqa: B018
    except (AttributeError, OSError, TypeError):
        return False, {name: absent for name, (_, _, absent) in _FUNCTIONS.items()}
    found = {}
    for name, (result, arguments, absent) in _FUNCTIONS.items():
        function = getattr(process, "gpumem_" + name, absent)
        if function is not absent:
            function.restype, function.argtypes = result, arguments
        found[name] = function
    return True, found


_active, _library = _library_functions()
_mark, _push, _pop = _library["mark"], _library["range_push"], _library["range_pop"]


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


def _answer(value):
    if value < 0:
        raise NotKnown(value)
    return value


def live_bytes(device=ALL_DEVICES, kind="in_use"):
    """Bytes alive now, of one kind (KINDS) on one device or on all. "in_use": on the device, without what a framework's
    cache keeps."""
    return _answer(_library["live_bytes"](device, KINDS[kind]))


def peak_bytes(device=0):
    """The most bytes in use on a device at one time since peak_restart()."""
    return _answer(_library["peak_bytes"](device))


def peak_restart():
    """From here on the peak of each device counts from what is in use now."""
    _library["peak_restart"]()


def moment():
    """The present, for check_now."""
    return _library["moment"]()


def check_now(since=0):
    """What was allocated since a moment (0: since the process began) and is not freed: Left(bytes, count)."""
    left = _Left()
    _answer(_library["check_now"](since, ctypes.byref(left)))
    return Left(left.bytes, left.count)


class ignore(contextlib.ContextDecorator):
    """What this thread allocates inside is no leak: for `with`, or before a function. Reports show it by itself."""

    def __enter__(self):
        _library["ignore_begin"]()
        return self

    def __exit__(self, *exception):
        _library["ignore_end"]()
        return False
