"""What a dry run adds inside a Python program: it notices loops that wait for a value which only the GPU computes
(dry_endless.py), and, where an option asks for it,

GPUMEM_DRY_MAX_STEPS=N  end the program, as sys.exit() does, after N steps: steps of one optimizer, or reads
                        of a tensor's value at one line
GPUMEM_DRY_VALUES=1     compute small operations on the CPU (dry_values.py)

Python imports the first sitecustomize that it finds; this one imports the one it hides. Nothing happens until the
program imports torch, and nothing where it never does.
"""
import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def import_hidden():
    """The sitecustomize of the environment, which stands behind ours."""
    path = [folder for folder in sys.path if os.path.abspath(folder or ".") != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec and spec.loader:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def tell(what):
    status = os.environ.get("GPUMEM_DRY_STATUS")
    if status:
        with open(status, "a", encoding="utf-8") as file:
            file.write(what + "\n")


class Steps:
    """Counts what repeats, and ends the program when one thing has repeated often enough."""

    def __init__(self, most):
        self.most, self.counts, self.ended = most, {}, False

    def note(self, what):
        count = self.counts[what] = self.counts.get(what, 0) + 1
        if count >= self.most and not self.ended:
            self.ended = True
            tell(f"stopped\t{count}\tsteps")
            raise SystemExit(0)


def watch_reads(torch, notes):
    """Calls each of `notes` with a tensor of the device that was read, and the frame that read it."""
    def watched(read):
        def wrapper(tensor, *args, **kwargs):
            value = read(tensor, *args, **kwargs)
            if tensor.is_cuda:
                for note in notes:
                    note(tensor, sys._getframe(1))
            return value
        wrapper.__name__ = read.__name__
        return wrapper

    for name in ("__bool__", "__int__", "__float__", "__index__", "item", "tolist"):
        setattr(torch.Tensor, name, watched(getattr(torch.Tensor, name)))


def count_steps(most):
    """Returns what is to be called for each read."""
    steps = Steps(most)

    def after_step(optimizer, _args, _kwargs):
        steps.note(id(optimizer))

    importlib.import_module("torch.optim.optimizer").register_optimizer_step_post_hook(after_step)
    # The read that ends the program is the one after the last step's.
    return lambda _tensor, frame: steps.note((frame.f_code, frame.f_lineno))


def end_endless(file, line, count):
    tell(f"endless\t{count}\t{line}\t{file}")
    raise SystemExit(0)


def import_own(name):
    sys.path.append(HERE)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(HERE)


def set_up(torch):
    most = os.environ.get("GPUMEM_DRY_MAX_STEPS", "")
    notes = [import_own("dry_endless").unknown_reads(torch, end_endless)]
    if most.isdigit() and int(most):
        notes.append(count_steps(int(most)))
    notes = [note for note in notes if note]
    if notes:
        watch_reads(torch, notes)
    if os.environ.get("GPUMEM_DRY_VALUES") == "1":
        import_own("dry_values").start()


class AfterTorch:
    """A finder that lets torch be imported as ever, and then sets up what was asked for."""

    def __init__(self):
        self.is_busy = False

    def find_spec(self, name, path=None, target=None):
        if name != "torch" or self.is_busy:
            return None
        self.is_busy = True
        spec = importlib.util.find_spec(name)
        self.is_busy = False
        if spec and spec.loader:
            execute = spec.loader.exec_module

            def execute_and_set_up(module):
                execute(module)
                sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
                set_up(module)

            spec.loader.exec_module = execute_and_set_up
        return spec


if os.environ.get("GPUMEM_DRY_STATUS"):
    sys.meta_path.insert(0, AfterTorch())
import_hidden()
