"""Notices loops that wait for a value which only the GPU computes, and loops that have no end.

In a dry run a value that kernels compute reads as zero, each time. A `while` loop that decides by such a value, or by a
variable that such a value was put into, may never end. One that has gone round often, with nothing new reserved in the
second half of that, is taken for endless: what it needs of the GPU has been seen, so the program is ended. So is one
that goes round for very long and reserves more and more (text that is generated until a token says so): what it needs
cannot be told. A loop without any exit (`while True` around training that somebody stops by hand) is ended like the
first.

Loops are found in the source of the functions on the stack. A loop is not suspected if what it tests was not read from
the device: `while step < steps` may read a loss in each round. If it has an exit of that kind beside one that waits
(`while loss > 0.1 and step < steps`), or a `for` loop within it makes most of the rounds, it gets many more of them.
"""
import ast
import ctypes
import linecache

ROUNDS = 256  # reads at one line; a whole number of LOOK_EVERY
ROUNDS_UNSURE = 16384  # where the loop can end by itself, too, or has a `for` loop in it
ROUNDS_GROWING = 2048  # where more and more is reserved
PATIENCE = 4  # times as many, where small operations are computed: what is known may end the loop
LOOK_EVERY = 64
FRAMES = 16  # looked through for the loop, from the read outwards

LOOPS = (ast.While, ast.For, ast.AsyncFor)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
LEAVE = (ast.Return, ast.Raise, ast.Yield, ast.YieldFrom)


def names_in(node):
    """Variables and attributes, by their last name."""
    return {part.id if isinstance(part, ast.Name) else part.attr for part in ast.walk(node)
            if isinstance(part, (ast.Name, ast.Attribute))} - {"self", "torch"}


def names_filled(statement):
    """What a statement puts a value into: targets, and what a method such as append is called on."""
    if isinstance(statement, ast.Assign):
        return set().union(*map(names_in, statement.targets))
    if isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        return names_in(statement.target)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and \
            isinstance(statement.value.func, ast.Attribute):
        return names_in(statement.value.func.value)
    return set()


def has_line(node, line):
    return hasattr(node, "lineno") and node.lineno <= line <= node.end_lineno


def path_to(tree, line):
    """The nodes around a line, outermost first, within the innermost function."""
    path, node = [], tree
    while node:
        path = [] if isinstance(node, SCOPES) else path + [node]
        node = next((child for child in ast.iter_child_nodes(node) if has_line(child, line)), None)
    return path


def parts_of(test):
    """The expressions each of which can end a loop that runs while all of them hold."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return [part for value in test.values for part in parts_of(value)]
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and \
            isinstance(test.operand, ast.BoolOp) and isinstance(test.operand.op, ast.Or):
        return test.operand.values
    return [] if isinstance(test, ast.Constant) and test.value else [test]


def exits_of(loop):
    """How a loop can end: for each way the tests before it, which are none where nothing in the loop decides. The end of
    what a `for` loop goes through is one, too."""
    exits = [[part] for part in parts_of(loop.test)] if isinstance(loop, ast.While) else [[]]

    def look(node, tests, is_inner):
        if isinstance(node, SCOPES):
            return
        if isinstance(node, LEAVE) or (isinstance(node, ast.Break) and not is_inner):
            exits.append(tests)
        if isinstance(node, ast.If):
            tests = tests + [node.test]
        elif isinstance(node, ast.ExceptHandler):
            tests = []
        for child in ast.iter_child_nodes(node):
            look(child, tests, is_inner or isinstance(node, LOOPS))

    for child in loop.body:
        look(child, [], False)
    return exits


WAITS, CAN_END, FOREVER = "waits", "can end", "forever"


def kind_of(loop, line):
    """How a loop ends in which a value is read at a line: not before that value says so (WAITS), so or otherwise
    (CAN_END), never (FOREVER), by what has nothing to do with the value (None)."""
    # Several statements can stand in one line.
    filled = set().union(*(names_filled(node) for node in ast.walk(loop) if has_line(node, line)))
    exits = exits_of(loop)
    waiting = [tests for tests in exits
               if any(has_line(test, line) or filled & names_in(test) for test in tests)]
    if not exits:
        return FOREVER
    if not waiting:
        return None
    return WAITS if len(waiting) == len(exits) else CAN_END


class Sources:
    """Syntax trees of the files that were asked about."""

    def __init__(self):
        self.trees = {}

    def tree(self, frame):
        name = frame.f_code.co_filename
        if name not in self.trees:
            try:
                self.trees[name] = ast.parse("".join(linecache.getlines(name, frame.f_globals)))
            except (SyntaxError, ValueError, RecursionError):
                self.trees[name] = None
        return self.trees[name]

    def loop_around(self, frame):
        """The line of the loop that decides by what is being read in a frame or below it, and how it ends; None, None:
        there is none. And whether a `for` loop stands between, or around."""
        tree = self.tree(frame)
        path = path_to(tree, frame.f_lineno) if tree else []
        loops = [node for node in reversed(path) if isinstance(node, LOOPS)]
        for i, loop in enumerate(loops):
            kind = kind_of(loop, frame.f_lineno) if isinstance(loop, ast.While) else None
            if kind:
                return loop.lineno, kind, any(not isinstance(inner, ast.While) for inner in loops[:i])
        return None, None, bool(loops)


class Endless:
    """Counts reads of values that are not known, and steps of optimizers."""

    def __init__(self, torch, computes, end, tell_decision):
        """`computes`: whether small operations are computed (dry_values.py). `end`: called with the file and line of a
        loop, the count of its rounds, whether it has an exit, and whether it reserves more and more. `tell_decision`:
        called once where a loop decides by a count or a truth that is not known."""
        self.torch, self.computes, self.end, self.tell_decision = torch, computes, end, tell_decision
        self.has_decision = False
        self.patience = PATIENCE if computes else 1
        self.counts, self.totals, self.reserved = {}, {}, {}
        self.sources, self.is_ended = Sources(), False
        driver = ctypes.CDLL("libcuda.so.1")
        self.knows = driver.gpumem_sim_knows
        self.knows.argtypes, self.knows.restype = [ctypes.c_uint64, ctypes.c_uint64], ctypes.c_bool

    def is_unknown(self, tensor):
        try:
            size = tensor.untyped_storage().nbytes()
            # What kernels add to a value that the host wrote is not seen by the driver.
            is_changed = not self.computes and tensor._version > 0
            return size > 0 and (is_changed or not self.knows(tensor.untyped_storage().data_ptr(), size))
        except (RuntimeError, NotImplementedError):
            return False  # a tensor without memory of its own

    def note(self, tensor, frame):
        """A tensor was read where `frame` stands."""
        if not self.is_ended and self.is_unknown(tensor):
            if not tensor.is_floating_point() and not self.computes:
                self.look_for_decision(frame)
            self.count(frame, (None, WAITS, CAN_END, FOREVER))

    def look_for_decision(self, frame):
        """Tells, once, that a loop may end by a count or a truth that the GPU computes: here by a zero, on a GPU later."""
        where = frame.f_code, frame.f_lineno
        if self.has_decision or where in self.totals:
            return
        for _ in range(FRAMES):
            tree = self.sources.tree(frame)
            loops = [node for node in (path_to(tree, frame.f_lineno) if tree else []) if isinstance(node, LOOPS)]
            if any(kind_of(loop, frame.f_lineno) in (WAITS, CAN_END) for loop in loops):
                self.has_decision = True
                self.tell_decision()
                return
            if not frame.f_back:
                return
            frame = frame.f_back

    def note_step(self, frame):
        """An optimizer made a step there."""
        if not self.is_ended:
            self.count(frame, (None, FOREVER))

    def count(self, frame, kinds):
        where = frame.f_code, frame.f_lineno
        total = self.totals[where] = self.totals.get(where, 0) + 1
        count = self.counts[where] = self.counts.get(where, 0) + 1
        if total % LOOK_EVERY:
            return
        reserved = self.torch.cuda.memory_stats().get("reserved_bytes.all.peak", 0)
        half = ROUNDS * self.patience // 2
        if count == half or reserved != self.reserved.get(where):
            self.reserved[where] = reserved
            count = self.counts[where] = min(count, half)
        if count >= ROUNDS * self.patience or total >= ROUNDS_GROWING * self.patience:
            self.look(frame, kinds, count, total)

    def look(self, frame, kinds, count, total):
        is_growing, is_within = count < ROUNDS * self.patience, False
        for _ in range(FRAMES):
            line, kind, has_loop = self.sources.loop_around(frame)
            is_within |= has_loop
            if kind:
                is_unsure = kind == CAN_END or is_within
                if kind in kinds and (not is_unsure or (total >= ROUNDS_UNSURE and not is_growing)):
                    self.is_ended = True
                    self.end(frame.f_code.co_filename, line, total, kind != FOREVER, is_growing)
                return
            if not frame.f_back:
                return
            frame = frame.f_back


def watch(torch, computes, end, tell_decision):
    """The Endless that is to be told of each read and step; None: not on the simulated driver."""
    try:
        return Endless(torch, computes, end, tell_decision)
    except (OSError, AttributeError):
        return None
