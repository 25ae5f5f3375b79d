"""Notices loops that wait for a value which only the GPU computes.

In a dry run a value that kernels compute reads as zero, each time. A `while` loop that decides by such a value, or by a
variable that such a value was put into, may never end. One that has gone round often, with nothing new reserved in the
second half of that, is taken for endless: what it needs of the GPU has been seen, so the program is ended.

Loops are found in the source of the functions on the stack. A loop is not suspected if what it tests was not read from
the device: `while step < steps` may read a loss in each round.
"""
import ast
import ctypes
import linecache

ROUNDS = 256  # reads at one line; a whole number of LOOK_EVERY
LOOK_EVERY = 64
FRAMES = 16  # looked through for the loop, from the read outwards

LOOPS = (ast.While, ast.For, ast.AsyncFor)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


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


def tests_of(loop):
    """The expressions that end a loop: its own test, and those before a break or a return."""
    tests = [loop.test]
    for node in ast.walk(loop):
        if isinstance(node, ast.If) and any(isinstance(part, (ast.Break, ast.Return)) for part in ast.walk(node)):
            tests.append(node.test)
    return tests


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

    def waits(self, frame):
        """The line of the loop that decides by what is being read in a frame or below it, None: there is none; and
        whether frames further out are to be asked."""
        tree = self.tree(frame)
        path = path_to(tree, frame.f_lineno) if tree else []
        for loop in reversed([node for node in path if isinstance(node, ast.While)]):
            tests = tests_of(loop)
            # Several statements can stand in one line.
            filled = set().union(*(names_filled(node) for node in ast.walk(loop) if has_line(node, frame.f_lineno)))
            if any(has_line(test, frame.f_lineno) or filled & names_in(test) for test in tests):
                return loop.lineno, False
        return None, not any(isinstance(node, LOOPS) for node in path)


class Endless:
    """Counts reads of values that are not known."""

    def __init__(self, torch, end):
        self.torch, self.end = torch, end
        self.counts, self.sources, self.reserved, self.is_ended = {}, Sources(), {}, False
        driver = ctypes.CDLL("libcuda.so.1")
        self.knows = driver.gpumem_sim_knows
        self.knows.argtypes, self.knows.restype = [ctypes.c_uint64, ctypes.c_uint64], ctypes.c_bool

    def is_unknown(self, tensor):
        try:
            size = tensor.untyped_storage().nbytes()
            return size > 0 and not self.knows(tensor.untyped_storage().data_ptr(), size)
        except (RuntimeError, NotImplementedError):
            return False  # a tensor without memory of its own

    def note(self, tensor, frame):
        """A tensor was read where `frame` stands."""
        if self.is_ended or not self.is_unknown(tensor):
            return
        where = frame.f_code, frame.f_lineno
        count = self.counts[where] = self.counts.get(where, 0) + 1
        if count % LOOK_EVERY:
            return
        reserved = self.torch.cuda.memory_stats().get("reserved_bytes.all.peak", 0)
        if count == ROUNDS // 2 or reserved != self.reserved.get(where):
            self.reserved[where] = reserved
            self.counts[where] = min(count, ROUNDS // 2)
        elif count >= ROUNDS:
            self.look(frame, count)

    def look(self, frame, count):
        for _ in range(FRAMES):
            line, goes_on = self.sources.waits(frame)
            if line:
                self.is_ended = True
                self.end(frame.f_code.co_filename, line, count)
            if not goes_on or not frame.f_back:
                return
            frame = frame.f_back


def unknown_reads(torch, end):
    """What is to be called for each read: note(tensor, frame)."""
    try:
        return Endless(torch, end).note
    except (OSError, AttributeError):
        return None  # not on the simulated driver


