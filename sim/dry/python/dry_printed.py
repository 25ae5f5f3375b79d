"""Tells which values that a program reads back from the device are only printed, so that nothing can depend on them.

By the source: the statement prints or logs, or puts the value into a variable of which all other uses in its function
(or module) do the same. A test, a return, an attribute, any other call: not only printed.
"""
import ast

from dry_endless import Sources

PRINTERS = {"print", "debug", "info", "warning", "error", "log", "write", "set_postfix", "set_postfix_str",
            "set_description", "add_scalar", "log_dict", "log_metrics"}
COLLECTORS = {"append", "extend"}
BODIES = {"body", "orelse", "finalbody", "handlers"}


def head_of(statement):
    """The nodes of a statement without the statements within it."""
    for field, value in ast.iter_fields(statement):
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and field not in BODIES:
                yield from ast.walk(node)


def uses(statement, name):
    return any(isinstance(node, ast.Name) and node.id == name for node in head_of(statement))


def called_by(statement):
    """The last name of the function that a statement calls, and the variable that it is a method of; None, None."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return None, None
    if isinstance(call.func, ast.Attribute):
        return call.func.attr, call.func.value.id if isinstance(call.func.value, ast.Name) else None
    return getattr(call.func, "id", None), None


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


def is_printed(scope, statement, known):
    """`known`: variables that are looked at already."""
    if called_by(statement)[0] in PRINTERS:
        return True
    names = filled_by(statement)
    if names is None:
        return False
    for name in names:
        if name in known:
            continue
        known.add(name)
        if not all(is_printed(scope, other, known) for other in ast.walk(scope)
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
