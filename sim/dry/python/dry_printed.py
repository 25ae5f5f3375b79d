"""Tells which values that a program reads back from the device are only printed, so that nothing can depend on them.

By the source: the statement prints or logs, or puts the value into a variable of which all other uses in its function
(or module) do the same. A test, a return, an attribute, any other call, also one that the value is an argument of on its
way into a variable (`torch.empty(n)`): not only printed.
"""
import ast

from dry_endless import Sources

PRINTERS = {"print", "debug", "info", "warning", "error", "log", "write", "set_postfix", "set_postfix_str",
            "set_description", "add_scalar", "log_dict", "log_metrics"}
COLLECTORS = {"append", "extend"}
# They make a number or a text of the host of what they are given.
HARMLESS = {"int", "float", "bool", "str", "repr", "round", "abs", "min", "max", "sum", "len", "sorted", "format", "join",
            "mean", "median", "std", "exp", "sqrt", "log", "log2", "log10", "isnan", "isinf", "isfinite"}
READERS = {"item", "tolist", "cpu", "numpy", "int", "float", "bool"}
BODIES = {"body", "orelse", "finalbody", "handlers"}


def head_of(statement):
    """The nodes of a statement without the statements within it."""
    for field, value in ast.iter_fields(statement):
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and field not in BODIES:
                yield from ast.walk(node)


def uses(statement, name):
    return any(isinstance(node, ast.Name) and node.id == name for node in head_of(statement))


def name_of(call):
    """The last name of the function that is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", None)


def feeds_a_call(statement, is_value):
    """Whether a function that may do anything takes the value."""
    for call in head_of(statement):
        if isinstance(call, ast.Call) and name_of(call) not in HARMLESS | COLLECTORS | READERS:
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            if any(is_value(node) for part in given for node in ast.walk(part)):
                return True
    return False


def is_read(node):
    return isinstance(node, ast.Call) and name_of(node) in READERS


def called_by(statement):
    """The last name of the function that a statement calls, and the variable that it is a method of; None, None."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return None, None
    of = call.func.value if isinstance(call.func, ast.Attribute) else None
    return name_of(call), of.id if isinstance(of, ast.Name) else None


def filled_by(statement):
    """The variables that a statement puts a value into; None: something else happens to it."""
    function, variable = called_by(statement)
    if function in COLLECTORS and variable:
        return [variable]
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        targets = [statement.target]
    else:
        return None
    return [target.id for target in targets] if all(isinstance(target, ast.Name) for target in targets) else None


def is_printed(scope, statement, known, is_value=is_read):
    """`known`: variables that are looked at already; `is_value`: whether a node of the statement is the value."""
    if called_by(statement)[0] in PRINTERS:
        return True
    names = filled_by(statement)
    if names is None or feeds_a_call(statement, is_value):
        return False
    for name in names:
        if name in known:
            continue
        known.add(name)
        if not all(is_printed(scope, other, known, lambda node, name=name: isinstance(node, ast.Name) and node.id == name)
                   for other in ast.walk(scope)
                   if isinstance(other, ast.stmt) and other is not statement and uses(other, name)):
            return False
    return True


def statement_at(tree, line):
    """The innermost statement with a line, and the function or module around it."""
    scope, statement, node = tree, None, tree
    while node:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            scope = node
        statement = node if isinstance(node, ast.stmt) else statement
        node = next((child for child in ast.iter_child_nodes(node)
                     if hasattr(child, "lineno") and child.lineno <= line <= child.end_lineno), None)
    return scope, statement


class Printed:
    def __init__(self, tell):
        self.tell, self.seen, self.sources = tell, set(), Sources()

    def note(self, _tensor, frame):
        """A tensor was read where `frame` stands, or in what PyTorch called from there."""
        while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] == "torch":
            frame = frame.f_back
        where = frame.f_code, frame.f_lineno
        if where in self.seen:
            return
        self.seen.add(where)
        tree = self.sources.tree(frame)
        scope, statement = statement_at(tree, frame.f_lineno) if tree else (None, None)
        if statement is not None and is_printed(scope, statement, set()):
            self.tell(f"printed\t1\t{frame.f_lineno}\t{frame.f_code.co_filename}")
