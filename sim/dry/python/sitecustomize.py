"""What a dry run adds inside a Python program: it tells of the exception that ends the program, notices loops that wait
for a value which only the GPU computes (dry_endless.py), tells which values are only printed (dry_printed.py), lets
Inductor read its constants (dry_values.py), lets JAX use the GPU that is not there, and, where an option asks for it,

GPUMEM_DRY_MAX_STEPS=N  end the program, as sys.exit() does, after N steps: steps of one optimizer, or reads
                        of a tensor's value at one line
GPUMEM_DRY_STEADY=1     the same, after steps of an optimizer that no longer raise the peak
GPUMEM_DRY_VALUES=1     compute small operations on the CPU (dry_values.py)
GPUMEM_DRY_ROWS=1        the same, and masks of unknown values choose all (dry_rows.py)
GPUMEM_DRY_REMEDY=LIST  change how the program uses memory (dry_remedies.py)
GPUMEM_DRY_COMPILED=FOLDER  compiled code goes into a new folder there

Python imports the first sitecustomize that it finds; this one imports the one it hides. PyTorch and JAX are changed when
the program imports them, and not where it never does.
"""
import copy
import functools
import importlib.machinery
import importlib.util
import os
import pickle
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


INSTALLED = ("site-packages", "dist-packages", "lib" + os.sep + "python", "<frozen ")


def place_of(value, trace):
    """File and line that an exception came from: the innermost in the program itself, not in an installed package."""
    if isinstance(value, SyntaxError) and value.filename:
        return value.filename, value.lineno or 0
    places = []
    while trace:
        places.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    own = [place for place in places if not any(part in place[0] for part in INSTALLED)]
    return (own or places or [("", 0)])[-1]


def tell_of_exceptions():
    """Tells of an exception that ends the program, before it is printed as ever."""
    print_it = sys.excepthook

    def tell_and_print(kind, value, trace):
        try:
            file, line = place_of(value, trace)
            text = " ".join(f"{kind.__name__}: {value}".split())
            if file and not issubclass(kind, KeyboardInterrupt):
                tell(f"raised\t1\t{line}\t{file}\t{text[:200]}")
        except Exception:  # whatever the value's own text does
            pass
        print_it(kind, value, trace)

    sys.excepthook = tell_and_print


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


class Steady:
    """Ends the program when the last steps of an optimizer, three and as many as a half of all, raised no peak."""

    LEAST = 3

    def __init__(self, torch):
        self.torch, self.counts, self.peaks, self.risen, self.ended = torch, {}, {}, {}, False

    def note(self, what):
        count = self.counts[what] = self.counts.get(what, 0) + 1
        stats = self.torch.cuda.memory_stats()
        peak = stats.get("reserved_bytes.all.peak", 0), stats.get("allocated_bytes.all.peak", 0)
        if peak != self.peaks.get(what):
            self.peaks[what], self.risen[what] = peak, count
        if count - self.risen[what] >= max(self.LEAST, count // 2) and not self.ended:
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

    for name in ("__bool__", "__int__", "__float__", "__index__", "item", "tolist") if notes else ():
        setattr(torch.Tensor, name, watched(getattr(torch.Tensor, name)))


def caller_of_step():
    """The frame that called the step of an optimizer, outside of torch."""
    frame = sys._getframe(2)
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] == "torch":
        frame = frame.f_back
    return frame


def is_compiler(frame):
    """Inductor reads constants of the graphs that it compiles, many at one line."""
    return frame.f_globals.get("__name__", "").startswith(("torch._inductor.", "torch._dynamo.", "torch._functorch."))


def watch_steps(notes):
    """Calls each of `notes` with an optimizer that made a step, and the frame that asked for it."""
    def after_step(optimizer, _args, _kwargs):
        frame = caller_of_step()
        for note in notes:
            note(optimizer, frame)

    if notes:
        importlib.import_module("torch.optim.optimizer").register_optimizer_step_post_hook(after_step)


def end_endless(file, line, count, has_exit, is_growing):
    how = f"{'waits' if has_exit else 'no-exit'}\t{'grows' if is_growing else 'steady'}"
    tell(f"endless\t{count}\t{line}\t{file}\t{how}")
    raise SystemExit(0)


def share_objects():
    """Objects that ranks send each other (all_gather_object and the like) arrive, up to 1 MiB. Of larger ones, and of ranks
    that are not there, a rank receives what it sent itself, as its tensors do."""
    module = sys.modules.get("torch.distributed.distributed_c10d")
    if not hasattr(module, "_object_to_tensor") or not hasattr(module, "_tensor_to_object"):
        return
    to_tensor, to_object, sent = module._object_to_tensor, module._tensor_to_object, []

    def object_to_tensor(value, *args, **kwargs):
        sent[:] = [value]
        return to_tensor(value, *args, **kwargs)

    def tensor_to_object(*args, **kwargs):
        try:
            return to_object(*args, **kwargs)
        except (EOFError, ValueError, LookupError, AttributeError, RuntimeError, pickle.UnpicklingError):
            return copy.deepcopy(sent[0]) if sent else None

    module._object_to_tensor, module._tensor_to_object = object_to_tensor, tensor_to_object
    package = sys.modules["torch.distributed"]
    for name in OBJECT_COLLECTIVES:
        if hasattr(module, name):
            computed = computing(getattr(module, name))
            setattr(module, name, computed)
            setattr(package, name, computed)


OBJECT_COLLECTIVES = ("all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list",
                      "send_object_list", "recv_object_list")


def computing(function):
    """A function whose small operations are computed: sizes of objects go through kernels (max, sum) before they are read."""
    @functools.wraps(function)
    def compute(*args, **kwargs):
        with import_own("dry_values").Objects():
            return function(*args, **kwargs)
    return compute


def import_own(name):
    sys.path.append(HERE)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(HERE)


def compile_anew():
    """Inductor finds nothing that other runs have compiled: compiling takes memory, so that a need would be another one
    after them. Processes that this one starts share what it compiles."""
    folder = os.environ.pop("GPUMEM_DRY_COMPILED", None)
    if folder:
        import tempfile  # takes longer than all that every Python of a dry run needs here
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(dir=folder)


def set_up(torch):
    compile_anew()
    if torch.version.cuda is None:
        tell(f"without-cuda\t{os.path.dirname(torch.__file__)}\tPyTorch")
    computes, most = "1" in (os.environ.get("GPUMEM_DRY_VALUES"), os.environ.get("GPUMEM_DRY_ROWS")), os.environ.get("GPUMEM_DRY_MAX_STEPS", "")
    after_read, after_step = [], []
    endless = import_own("dry_endless").watch(torch, computes, end_endless, lambda: tell("decides\t1\tloop"))
    if endless:
        after_read.append(endless.note)
        after_step.append(lambda optimizer, frame: endless.note_step(frame))
    if most.isdigit() and int(most):
        steps = Steps(int(most))
        after_step.append(lambda optimizer, frame: steps.note(id(optimizer)))
        # The read that ends the program is the one after the last step's.
        after_read.append(lambda tensor, frame: is_compiler(frame) or steps.note((frame.f_code, frame.f_lineno)))
    if os.environ.get("GPUMEM_DRY_STEADY") == "1":
        steady = Steady(torch)
        after_step.append(lambda optimizer, frame: steady.note(id(optimizer)))
    after_read.append(import_own("dry_printed").Printed(tell).note)
    share_objects()
    watch_reads(torch, after_read)
    watch_steps(after_step)
    if os.environ.get("GPUMEM_DRY_REMEDY"):
        import_own("dry_remedies").start(torch)
    if os.environ.get("GPUMEM_DRY_ROWS") == "1":
        import_own("dry_rows").start(tell)
    elif computes:
        import_own("dry_values").start(tell)


def fold_by_value(folding):
    """Inductor reads constants that it finds in a graph, and writes them into what it compiles: it must not read the
    zeros that stand for them."""
    run = getattr(getattr(folding, "ConstantFolder", None), "run", None)

    def run_by_value(*args, **kwargs):
        with import_own("dry_values").Values():
            return run(*args, **kwargs)

    if run:
        folding.ConstantFolder.run = run_by_value


def show_gpu(hardware):
    """JAX looks for /dev/nvidia0 before it asks the driver, and computes on the CPU where that is missing."""
    if hasattr(hardware, "has_visible_nvidia_gpu"):
        hardware.has_visible_nvidia_gpu = lambda: True


def count_tokens(module):
    import_own("dry_serving").count_tokens(module)


def try_few(module):
    import_own("dry_autotune").AFTER[module.__name__](module)


TUNERS = ("torch._inductor.select_algorithm", "torch._inductor.runtime.triton_heuristics",
          "torch._inductor.runtime.benchmarking", "triton.testing", "triton.runtime.autotuner")


class After:
    """A finder that lets a module be imported as ever, and then does what is to be done with it."""

    def __init__(self, module, act):
        self.module, self.act, self.is_busy = module, act, False

    def find_spec(self, name, path=None, target=None):
        if name != self.module or self.is_busy:
            return None
        self.is_busy = True
        spec = importlib.util.find_spec(name)
        self.is_busy = False
        if spec and spec.loader:
            execute = spec.loader.exec_module

            def execute_and_act(module):
                execute(module)
                sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
                self.act(module)

            spec.loader.exec_module = execute_and_act
        return spec


if os.environ.get("GPUMEM_DRY_STATUS"):
    sys.meta_path[:0] = [After("torch", set_up), After("torch._inductor.constant_folding", fold_by_value),
                         After("jax._src.hardware_utils", show_gpu),
                         After("vllm.v1.worker.gpu.model_runner", count_tokens), *(After(tuner, try_few) for tuner in TUNERS)]
    tell_of_exceptions()
import_hidden()
