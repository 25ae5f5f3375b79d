"""Compares the stacks that the preload reads with those that the interpreter itself reports.

    python stacks.py PROBE cdll|pydll|preload

Every case calls check() in an odd place; check() reads its own stack both ways and compares frame by frame: file,
function (qualified where the version has it), line, and which evaluation loop of the native stack runs it. The last
line says "N stacks, M wrong".

PROBE_PACKAGES names a folder with packages (greenlet), PROBE_LOOP gives the probe the place of the evaluation loop's
code.
"""

import asyncio
import contextlib
import ctypes
import functools
import gc
import os
import random
import re
import signal
import sys
import tempfile
import threading
import weakref

DEPTH_MAX = 256
FREE_THREADED = "t" in sys.abiflags
KNOWS_SUBINTERPRETERS = sys.version_info >= (3, 12)  # from the state of a thread
INLINED_CALLS = sys.version_info >= (3, 11)  # a Python function called by another shares its loop
LOOP_OUTLIVES_FRAME = sys.version_info >= (3, 12)  # locals die in the loop, not after it


class ProbeFrame(ctypes.Structure):
    _fields_ = [
        ("file", ctypes.c_void_p),
        ("function", ctypes.c_void_p),
        ("file_size", ctypes.c_uint32),
        ("function_size", ctypes.c_uint32),
        ("line", ctypes.c_uint32),
        ("loop", ctypes.c_int32),
    ]

    def place(self):
        return (
            ctypes.string_at(self.file, self.file_size),
            ctypes.string_at(self.function, self.function_size),
            self.line,
        )


class PerThread(threading.local):
    def __init__(self):
        self.frames = (ProbeFrame * DEPTH_MAX)()
        self.loops = []


sys.path.append(os.environ["PROBE_PACKAGES"])
path, mode = sys.argv[1:3]
probe = (ctypes.PyDLL if mode == "pydll" else ctypes.CDLL)(path)
probe.probe_state.restype = ctypes.c_char_p
here = PerThread()
counted = threading.Lock()
stacks = 0
wrong = []
skipped = []
several_interpreters = False
inside_another = False  # its evaluation loops are further out on the native stack
empty_loops = False  # a loop may have lost its last frame already, or hide its first as yet


def fail(text):
    with counted:
        wrong.append(text)


def capture(depth=DEPTH_MAX, native=1):
    """The stack from capture's caller outwards as the preload reads it, and whether it was cut."""
    frames = here.frames
    if mode == "preload" and depth == DEPTH_MAX:
        os.getppid()
        count = probe.probe_hooked(frames)
    else:
        count = probe.probe_walk(frames, depth, native)
    truncated = count < 0
    count = -1 - count if truncated else count
    here.loops = [frame.loop for frame in frames[1:count]]
    return [frame.place() for frame in frames[1:count]], truncated


def encoded(text):
    """In UTF-8, with odd bytes of file names unchanged and other lone surrogates as U+FFFD."""
    text = re.sub("[\ud800-\udc7f\udd00-\udfff]", "\ufffd", text)
    return text.encode("utf-8", "surrogateescape")


def told(frame):
    """The same from the interpreter."""
    stack = []
    while frame is not None:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        stack.append((encoded(code.co_filename), encoded(name), frame.f_lineno or 0))
        frame = frame.f_back
    return stack


def unknowable():
    """Whether it is unknown which interpreter runs: then there are no frames, and the preload says so."""
    return several_interpreters and not KNOWS_SUBINTERPRETERS and (
        # The GIL is not held; or a thread state is in use on a thread for which it was not made.
        mode == "cdll" or (inside_another and threading.current_thread() is not threading.main_thread()))


def compare(read, truncated, want, what="check"):
    global stacks
    with counted:
        stacks += 1
    if unknowable():
        if read or not probe.probe_unknown():
            fail("%s: frames of an interpreter that is not known: %s" % (what, read))
        return
    if truncated:
        want = want[: len(read)]
    if read != want:
        fail("%s:\n  read %s\n  told %s" % (what, read, want))
    loops = here.loops
    if any(loop < 0 for loop in loops) or loops != sorted(loops):
        fail("%s: not placed in evaluation loops: %s of %s" % (what, loops, read))
    if not INLINED_CALLS and not truncated and loops != list(range(1, len(loops) + 1)):
        fail("%s: not one loop per frame: %s" % (what, loops))
    count = max(loops, default=0) + 1 if inside_another else probe.probe_loops()
    if loops and not (truncated or empty_loops) and {0, *loops} != set(range(count)):
        fail("%s: %d loops, with frames in %s of %s" % (what, count, loops, read))


def check(*_, **__):
    (read, truncated), want = capture(), told(sys._getframe())
    compare(read, truncated, want)
    return 0


def loops_of_check():
    """Evaluation loops of the caller's stack, innermost first, without check's own."""
    check()
    return here.loops[2:]


# ---- cases ---------------------------------------------------------------------------------------

cases = []


def case(function):
    cases.append(function)
    return function


@case
def plain():
    check()


@case
def nested():
    def outer():
        def inner():
            check()

        inner()
        return (lambda: check())()

    outer()


@case
def multi_line_calls():
    # fmt: off
    check(
        1,
        check(
            2,
        ), [
            check(),
            3,
        ],
    ); check()
    x = (check() +
         check()
         + check()); return x
    # fmt: on


@case
def generators():
    def numbers(count):
        try:
            for i in range(count):
                check()
                yield i
        finally:
            check()

    def delegating():
        got = yield from numbers(3)
        check(got)
        yield 4

    list(numbers(3))
    for _ in numbers(2):
        check()
    list(delegating())
    half_way = numbers(5)
    next(half_way)
    half_way.close()
    thrown = numbers(5)
    next(thrown)
    with contextlib.suppress(KeyError):
        thrown.throw(KeyError("x"))
    sum(check() for _ in range(3))
    dropped = numbers(2)
    next(dropped)
    del dropped


@case
def comprehensions():
    [check() for _ in range(2)]
    {check(): [check() for _ in range(2)] for _ in range(2)}
    {check() for _ in range(2)}
    list(map(lambda _: [check() for _ in "ab"], "ab"))


@case
def coroutines():
    class Manager:
        async def __aenter__(self):
            check()

        async def __aexit__(self, *_):
            await asyncio.sleep(0)
            check()

    async def ticks():
        for i in range(3):
            check()
            yield i
            await asyncio.sleep(0)

    async def work(level):
        check()
        await asyncio.sleep(0)
        check()
        if level:
            await work(level - 1)
        async with Manager():
            async for _ in ticks():
                check()
        return [check() async for _ in ticks()]

    async def several():
        await asyncio.gather(*(work(i) for i in range(4)))
        loop = asyncio.get_running_loop()
        loop.call_soon(check)
        await loop.run_in_executor(None, check)

    asyncio.run(several())


@case
def classes():
    class Meta(type):
        def __new__(cls, name, bases, space):
            check()
            return super().__new__(cls, name, bases, space)

        def __call__(cls, *arguments):
            check()
            return super().__call__(*arguments)

    class Base(metaclass=Meta):
        check()

        def __init__(self):
            check()

        def __init_subclass__(cls):
            check()

        def __getattr__(self, name):
            return check()

        def __missing__(self, key):
            return check()

        def __eq__(self, other):
            return not check()

        def __hash__(self):
            return check()

        def __len__(self):
            return check()

        @property
        def shown(self):
            return check()

        @staticmethod
        def still():
            check()

        @classmethod
        def whole(cls):
            check()

    class Child(Base, dict):
        [check() for _ in range(2)]

        class Inner:
            check()

        def __init__(self):
            super().__init__()

    child = Child()
    child.unknown, child["x"], child.shown, len(child), {child: child}
    child.still(), Child.whole()
    child == Base()


@case
def hot_constructors():
    """From 3.12 the interpreter puts a frame of its own between __init__ and its caller."""

    class Made:
        def __init__(self, n):
            self.n = n
            check()

    def make(n):
        return Made(n)

    for n in range(40):
        make(n)


@case
def decorators():
    def traced(function):
        @functools.wraps(function)
        def wrapper(*arguments):
            check()
            return function(*arguments)

        return wrapper

    @traced
    @functools.lru_cache(None)
    @traced
    def decorated(n):
        return decorated(n - 1) if n else check()

    decorated(5)

    @contextlib.contextmanager
    def managed():
        check()
        yield
        check()

    with managed(), contextlib.ExitStack() as stack:
        stack.callback(check)
        stack.enter_context(managed())


@case
def calls_through_c():
    list(map(check, [1, 2]))
    sorted([3, 1, 2], key=check)
    functools.reduce(lambda a, b: check(), [1, 2, 3])
    functools.partial(check, 1)()
    re.sub("a", lambda m: str(check()), "aa")
    max([1, 2], key=lambda x: check())
    "%s" % type("Shown", (), {"__str__": lambda self: str(check())})()
    ctypes.PYFUNCTYPE(ctypes.c_int)(check)()


@case
def exceptions():
    def failing(level):
        try:
            if level:
                failing(level - 1)
            raise ValueError(level)
        except ValueError:
            check()
            raise
        finally:
            check()

    try:
        failing(4)
    except ValueError:
        check()
    else:
        fail("no exception")
    with contextlib.suppress(ZeroDivisionError):
        while True:
            check()
            1 / 0


@case
def executed_code():
    space = {"check": check}
    exec("\n\n\ncheck()\nfor i in range(2):\n    check(\n    )\n", space)
    eval("[check() for _ in 'ab']", space)
    eval(compile("check()", "<some text>", "eval"), space)
    exec("def f():\n" + "    x = 1\n" * 3000 + "    check()\n" + "\n" * 700 + "    check()\nf()", space)
    exec("check(" + "\n" * 300 + "check())", space)
    exec("x = [" + "\n" * 200 + "check(),\n" + "check(), " * 80 + "\n]", space)
    exec("\n".join("if 1: check()" for _ in range(1100)), space)
    # A str of another type, as a path library may pass.
    exec(compile("check()", type("Path", (str,), {})("/odd/pfäd.py"), "exec"), space)


@case
def names_beyond_ascii():
    for file in ("/tmp/caf\xe9.py", "/tmp/\u043f\u0443\u0442\u044c.py", "/tmp/\U0001f40d.py",
                 "/tmp/\udce9\udcff.py", "/tmp/\ud834.py", "\x80\u07ff\u0800\uffff\U00010000.py", ""):
        exec(compile("def fünf(): check()\nclass Größe:\n  def 名前(self): check()\n"
                     "fünf(); Größe().名前(); (lambda \U0001d4d0: check())(1)\n", file, "exec"),
             {"check": check})
    long = "/" + "d" * 5000 + ".py"
    before = len(wrong)
    exec(compile("check()", long, "exec"), {"check": check})
    if len(wrong) != before:
        fail("a long file name was cut")


@case
def imports():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "imported_\u00fcber.py"), "w", encoding="utf-8") as file:
            file.write("import __main__\n\n__main__.check()\n")
        sys.modules["__main__"].check = check
        sys.path.insert(0, folder)
        try:
            __import__("imported_\u00fcber")
        finally:
            sys.path.remove(folder)


@case
def recursion():
    def down(n):
        check()
        if n:
            down(n - 1)

    def down_through_c(n):
        check()
        if n:
            list(map(down_through_c, [n - 1]))

    down(120)
    down_through_c(120)
    down(300)  # deeper than the preload reads


@case
def code_objects_used_again():
    """New code where old code was: the address, and often file, name and first line, are equal."""
    for i in range(20000):
        space = {"capture": capture, "told": told, "sys": sys}
        exec("%sdef f%d():\n%s    return capture(4, 0), told(sys._getframe())\n"
             % ("\n" * (i % 3), i % 7, "    x = 1\n" * (i % 5)), space)
        (read, truncated), want = space["f%d" % (i % 7)]()
        here.loops = []
        compare(read, truncated, want)


@case
def destructors():
    class Dying:
        def __init__(self):
            self.me = self

        def __del__(self):
            check()

    class Held:
        def __del__(self):
            check()

    def dropping():
        held = Held()
        return [held] and None

    def replacing():
        held = Held()
        held = None
        return held

    def unwinding():
        held = Held()
        raise KeyError(held and 1)

    Dying()
    gc.collect()
    dropping()
    replacing()
    list(map(lambda _: dropping(), "ab"))
    list(map(unwound, [unwinding]))
    gc.callbacks.append(check)
    gc.collect()
    gc.callbacks.remove(check)
    watched = Held()
    reference = weakref.ref(watched, check)
    del watched
    assert reference() is None


@case
def code_that_dies_with_its_frame():
    """3.11 frees the code of a returning function with its frame still linked. The test only requires survival, because
    the interpreter itself cannot show that frame."""
    if FREE_THREADED:  # it keeps all constants for ever
        return

    class Held:
        def __del__(self):
            walked.append(capture()[0])

    def dying():
        return "constant"

    def made():
        code = dying.__code__
        constants = tuple(Held() if c == "constant" else c for c in code.co_consts)
        return type(made)(code.replace(co_consts=constants), {})

    walked = []
    for _ in range(50):
        made()()
    if len(walked) != 50 or any(b"code_that_dies" not in read[-3][1] for read in walked):
        fail("no stack at the end of a code object: %s" % walked)


@case
def collections_in_calls():
    """Before 3.12 a collection may start in a call, in a frame that the interpreter still hides."""
    thresholds = gc.get_threshold()

    def closing(a, b):
        return lambda: (a, b)

    global empty_loops
    empty_loops = True
    gc.callbacks.append(check)
    gc.set_threshold(1, 1, 1)
    for n in range(30):
        closing(n, [n])
        list(map(closing, [n], [n]))
    gc.set_threshold(*thresholds)
    gc.callbacks.remove(check)
    empty_loops = False


def unwound(function):
    with contextlib.suppress(KeyError):
        function()


@case
def tracing():
    def tracer(frame, event, argument):
        if frame.f_code is traced.__code__:
            check()
        return tracer

    def traced():
        a = 1
        for _ in range(2):
            a += 1
        return a

    for install in (sys.settrace, sys.setprofile):
        install(tracer)
        try:
            traced()
        finally:
            install(None)


@case
def signals():
    signal.signal(signal.SIGUSR1, check)
    for _ in range(5):
        os.kill(os.getpid(), signal.SIGUSR1)
        sum(range(1000))
    ticks = []
    signal.signal(signal.SIGALRM, lambda *_: (check(), ticks.append(1)))
    for wanted in range(1, 21):
        signal.setitimer(signal.ITIMER_REAL, 0.0005)
        while len(ticks) < wanted:
            sorted(range(50), key=lambda x: -x)


def wander(chooser, level):
    """A random way through the ways to call."""
    check()
    if not level:
        return 0
    ways = (
        lambda: wander(chooser, level - 1),
        lambda: list(map(lambda _: wander(chooser, level - 1), "a")),
        lambda: [wander(chooser, level - 1) for _ in "a"],
        lambda: next(wander(chooser, level - 1) for _ in "a"),
        lambda: sorted("a", key=lambda _: wander(chooser, level - 1)),
        lambda: exec("wander(chooser, level)", {**globals(), "chooser": chooser, "level": level - 1}),
    )
    return chooser.choice(ways)()


@case
def threads_under_contention():
    stop = threading.Event()

    def collecting():
        while not stop.is_set():
            cycle = [[] for _ in range(50)]
            cycle.append(cycle)
            gc.collect(0)

    def walking(seed):
        chooser = random.Random(seed)
        for _ in range(40):
            wander(chooser, 8)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    collectors = [threading.Thread(target=collecting) for _ in range(2)]
    walkers = [threading.Thread(target=walking, args=(seed,)) for seed in range(3)]
    for thread in collectors + walkers:
        thread.start()
    for thread in walkers:
        thread.join()
    stop.set()
    for thread in collectors:
        thread.join()
    sys.setswitchinterval(interval)


@case
def loops():
    """Which calls share an evaluation loop: those of Python functions by Python functions."""

    def one():
        return loops_of_check()

    def two():
        return one()

    def three():
        return list(map(lambda _: one(), "a"))[0]

    direct, through_c = two(), three()
    if INLINED_CALLS:
        if len(set(direct[:3])) != 1:
            fail("direct calls were told apart: %s" % direct)
        # one and the lambda, then three and this function
        if through_c[0] != through_c[1] or through_c[2] != through_c[3] or (
            through_c[1] == through_c[2]):
            fail("a call through C was not told: %s" % through_c)

    class Last:
        def __del__(self):
            found.append(loops_of_check())

    found = []

    def returning(_):
        last = Last()
        return last and None

    global empty_loops
    empty_loops = True
    list(map(returning, [1]))
    empty_loops = False
    inner, outer = found[0][:2]
    if outer - inner != (2 if LOOP_OUTLIVES_FRAME else 1):
        fail("locals died %d loops inside of the caller" % (outer - inner))


@case
def threads_of_others():
    if mode != "pydll":  # such a call holds the GIL, which these threads need
        done = []

        def called():
            check()
            wander(random.Random(1), 5)
            done.append(1)

        for _ in range(20):
            probe.probe_call_in_thread(ctypes.CFUNCTYPE(None)(called))
        if len(done) != 20:
            fail("callbacks lost")
        def level():
            """The same innermost frames, with and without more of them outside."""
            levels.append(capture(4, 0)[1])
            if len(levels) < 6:
                level()

        levels = []
        probe.probe_call_in_thread(ctypes.CFUNCTYPE(None)(level))
        if levels != [False] * 3 + [True] * 3:
            fail("stacks of depth 4 cut at: %s" % levels)
    for _ in range(50):
        if probe.probe_foreign() != 0:
            fail("a thread that Python does not know has frames")


@case
def greenlets():
    """Switched stacks: greenlet moves pieces of the C stack away and back."""
    try:
        import greenlet
    except ImportError:
        skipped.append("greenlets: no package greenlet")
        return

    def look():
        # Without the native stack, which is incomplete above the first frame of a greenlet.
        (read, truncated), want = capture(DEPTH_MAX - 1, 0), told(sys._getframe())
        here.loops = []
        compare(read, truncated, want)

    def deep(levels, ways):
        if levels:
            return [deep(levels - 1, ways) for _ in "a"] if ways & 1 else deep(levels - 1, ways >> 1)
        look()
        greenlet.getcurrent().parent.switch()
        look()
        try:
            raise KeyError(levels)
        except KeyError:
            look()

    def body(number):
        deep(number % 7, number)
        list(map(lambda _: look(), "ab"))

    chooser = random.Random(1)
    suspended = []
    for number in range(200):
        suspended.append(greenlet.greenlet(body))
        suspended[-1].switch(number)
        look()
        if len(suspended) > 20:
            suspended.pop(chooser.randrange(len(suspended))).switch()
    for one in suspended:
        wander(chooser, 3)
        one.switch()


IN_SUBINTERPRETER = """
import sys
sys.argv = %r
space = {"__name__": "stacks"}
with open(%r, encoding="utf-8") as file:
    exec(compile(file.read(), file.name, "exec"), space)
space["several_interpreters"] = space["inside_another"] = True
for name in ("plain", "nested", "generators", "exceptions", "decorators", "hot_constructors"):
    space[name]()
import os
os.write(%d, repr((space["stacks"], [text[:500] for text in space["wrong"][:3]])).encode())
"""


def subinterpreter(module, *kind, **options):
    """Stacks compared in a new interpreter, by this thread and another, and here next to it."""
    global several_interpreters, stacks
    reader, writer = os.pipe()
    number = module.create(*kind, **options)
    several_interpreters = True

    def inside():
        trouble = module.run_string(number, IN_SUBINTERPRETER % (sys.argv, __file__, writer))
        if trouble:
            fail("in a subinterpreter: %s" % (trouble,))
        check()

    try:
        inside()
        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()
        check()
    finally:
        module.destroy(number)
        several_interpreters = False
        os.close(writer)
    text = b"".join(iter(lambda: os.read(reader, 1 << 16), b"")).decode()
    os.close(reader)
    for found in text.replace(")(", ")\n(").splitlines():
        count, troubles = eval(found)
        stacks += count
        wrong.extend("in a subinterpreter: " + trouble for trouble in troubles)
    if text.count("(") < 2:
        fail("subinterpreters told nothing: %s" % text)
    check()


@case
def subinterpreters():
    if sys.version_info >= (3, 13):
        import _interpreters as module

        subinterpreter(module, "legacy")
        subinterpreter(module, "isolated")
    else:
        import _xxsubinterpreters as module

        subinterpreter(module, **({"isolated": False} if sys.version_info >= (3, 9) else {}))


def main():
    print("state:", probe.probe_state().decode())
    if mode == "preload":
        probe.probe_hook(1)
    for function in cases:
        if mode == "cdll" or function is not code_objects_used_again:
            function()
    probe.probe_hook(0)
    if probe.probe_node_mistakes():
        fail("%d kept frames with a stale node" % probe.probe_node_mistakes())
    for text in skipped:
        print("SKIP", text)
    for text in wrong[:5]:
        print("wrong:", text)
    print("kept: %d of 1000 frames" % probe.probe_kept_permille())
    print("%d stacks, %d wrong" % (stacks, len(wrong)), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
