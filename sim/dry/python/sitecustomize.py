"""What a dry run adds inside the Python program, where an option asks for it.

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


def count_steps(torch, most):
    steps = Steps(most)

    def after_step(optimizer, _args, _kwargs):
        steps.note(id(optimizer))

    importlib.import_module("torch.optim.optimizer").register_optimizer_step_post_hook(after_step)

    def counted(read):
        def wrapper(tensor, *args, **kwargs):
            value = read(tensor, *args, **kwargs)
            if tensor.is_cuda:
                caller = sys._getframe(1)
                # The read that ends the program is the one after the last step's.
                steps.note((caller.f_code, caller.f_lineno))
            return value
        wrapper.__name__ = read.__name__
        return wrapper

    for name in ("__bool__", "__int__", "__float__", "__index__", "item", "tolist"):
        setattr(torch.Tensor, name, counted(getattr(torch.Tensor, name)))


def set_up(torch):
    most = os.environ.get("GPUMEM_DRY_MAX_STEPS", "")
    if most.isdigit() and int(most):
        count_steps(torch, int(most))
    if os.environ.get("GPUMEM_DRY_VALUES") == "1":
        sys.path.append(HERE)
        import dry_values
        sys.path.remove(HERE)
        dry_values.start()


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


if os.environ.get("GPUMEM_DRY_MAX_STEPS") or os.environ.get("GPUMEM_DRY_VALUES"):
    sys.meta_path.insert(0, AfterTorch())
import_hidden()
