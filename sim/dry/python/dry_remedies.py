"""Remedies against too large a need, applied to a program of PyTorch that is run dry, which stays as it is.

GPUMEM_DRY_REMEDY is a list in JSON: objects with a `name` and what that remedy takes. Each remedy does what the lines do
that `gpumem fit` says to write (sim/dry/fit/remedies.py), at the same place: when an optimizer is made, or before the
first training call of a model. `survey` changes nothing and tells what the others need to know: models and their
repeated blocks with what each holds, optimizers, losses. Facts go to the file GPUMEM_DRY_REMEDY_TOLD, one object a line.
"""
import functools
import gc
import importlib.util
import inspect
import json
import os
import sys
import types
import weakref

LOGITS_LEAST = 64 << 20  # bytes of logits for which a loss in pieces is worth a try
PIECES = 8


def tell(what, **facts):
    path = os.environ.get("GPUMEM_DRY_REMEDY_TOLD")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"what": what, **facts}) + "\n")


def own_frame(frame):
    """The innermost frame outside of installed packages and of this file."""
    installed = ("site-packages", "dist-packages", "lib" + os.sep + "python", "<frozen ", __file__)
    inner = frame
    while frame and any(part in frame.f_code.co_filename for part in installed):
        frame = frame.f_back
    return frame or inner


def place_of(frame):
    frame = own_frame(frame)
    return {"file": frame.f_code.co_filename, "line": frame.f_lineno}


def name_of(value, frame):
    """How the program names an object: its own code first, then that of packages; None: nobody has a name for it."""
    names = []
    while frame:
        is_own = own_frame(frame) is frame
        for known in (frame.f_locals, frame.f_globals):
            names += [(not is_own, name) for name, one in list(known.items()) if one is value and name != "self"]
        owner = frame.f_locals.get("self")
        for known in ("__dict__", "_modules"):
            names += [(not is_own, "self." + name) for name, one in list(getattr(owner, known, {}).items())
                      if one is value]
        frame = frame.f_back
    return min(names, key=lambda pair: pair[0])[1] if names else None


# ---- models -----------------------------------------------------------------------------------------------

def unwrapped(model):
    """The module of the program in a wrapper of PyTorch's, and how one gets to it."""
    path = ""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and type(model).__module__.startswith("torch.") and type(model).__name__ in (
                "DistributedDataParallel", "DataParallel", "FullyShardedDataParallel"):
            inner = model.module
        if inner is None:
            return model, path
        path += "._orig_mod" if inner is getattr(model, "_orig_mod", None) else ".module"
        model = inner


def repeated_blocks(torch, model):
    """{class: [path]} of the outermost modules that have parts of their own and a class that occurs twice or more.
    Containers count only where nothing else does."""
    containers = (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict)

    def look(is_block):
        counts, groups = {}, {}
        for module in model.modules():
            if module is not model and is_block(module) and any(True for _ in module.parameters()):
                counts[type(module)] = counts.get(type(module), 0) + 1

        def visit(module, path):
            for name, child in module.named_children():
                inner = f"{path}.{name}" if path else name
                if counts.get(type(child), 0) > 1 and is_block(child):
                    groups.setdefault(type(child).__name__, []).append(inner)
                else:
                    visit(child, inner)

        visit(model, "")
        return {name: paths for name, paths in groups.items() if len(paths) > 1}

    def has_parts(module):
        return any(True for _ in module.children())

    return (look(lambda module: has_parts(module) and not isinstance(module, containers)) or
            look(lambda module: has_parts(module) and isinstance(module, torch.nn.Sequential)))


class Models:
    """Sees each model when the program calls it for training the first time, and lets the remedies act on it before."""

    def __init__(self, torch, actions):
        self.torch, self.actions, self.seen = torch, actions, weakref.WeakSet()
        self.plain = torch.nn.Module.__call__
        watcher = self

        @functools.wraps(self.plain)
        def call(module, *args, **kwargs):
            # Calls within this one, and what compiles them, see PyTorch's own method.
            torch.nn.Module.__call__ = watcher.plain
            try:
                watcher.see(module, sys._getframe(1))
                return watcher.plain(module, *args, **kwargs)
            finally:
                torch.nn.Module.__call__ = call

        torch.nn.Module.__call__ = call

    def see(self, module, frame):
        if module in self.seen or not self.torch.is_grad_enabled():
            return
        if not any(parameter.requires_grad for parameter in module.parameters()):
            return
        for part in module.modules(): # which a checkpoint calls by themselves later
            self.seen.add(part)
        for action in self.actions:
            action(module, frame)


def is_on_device(module):
    return any(parameter.is_cuda for parameter in module.parameters())


# ---- what there is --------------------------------------------------------------------------------------------

class Survey:
    """Tells what a program has. Nothing that it does takes memory of the device."""

    def __init__(self, torch):
        self.torch = torch
        self.step_peak = self.rest_peak = 0
        self.logits = self.unset = None
        self.optimizers = weakref.WeakSet()
        optimizer = importlib.import_module("torch.optim.optimizer")
        optimizer.register_optimizer_step_pre_hook(self.before_step)
        optimizer.register_optimizer_step_post_hook(self.after_step)
        self.watch_optimizers()
        self.watch_losses()
        self.watch_checkpoints()
        tell("packages", found=[name for name in ("bitsandbytes", "torchao", "liger_kernel")
                                if importlib.util.find_spec(name)], torch=torch.__version__)

    def model(self, model, frame):
        (inner, path), torch = unwrapped(model), self.torch
        groups = repeated_blocks(torch, inner)
        parameters = list(inner.parameters())
        tell("model", name=name_of(model, frame), path=path, kind=type(inner).__name__, bytes=sum(one.numel() * one.element_size() for one in parameters),
             dtypes=sorted({str(one.dtype) for one in parameters}), is_autocast=torch.is_autocast_enabled("cuda"),
             has_frozen=not all(one.requires_grad for one in parameters),
             has_convolutions=any(isinstance(one, torch.nn.Conv2d) for one in inner.modules()),
             can_checkpoint=bool(getattr(inner, "supports_gradient_checkpointing", False)) and
             hasattr(inner, "gradient_checkpointing_enable"), place=place_of(frame))
        for kind, paths in groups.items():
            self.weigh(inner, kind, paths, (name_of(model, frame) or "model") + path)

    def weigh(self, model, kind, paths, name):
        """What each of a group of blocks holds after its first call."""
        held, hooks, left = {}, [], len(paths)

        def before(path):
            def hook(_module, _args):
                held[path] = -self.torch.cuda.memory_allocated()
            return hook

        def after(path):
            def hook(_module, _args, _output):
                nonlocal left
                held[path] = held.get(path, 0) + self.torch.cuda.memory_allocated()
                left -= 1
                if left == 0:
                    for one in hooks:
                        one.remove()
                    tell("blocks", model=name, kind=kind, paths=paths, held=[held.get(one, 0) for one in paths],
                         is_list=list_around(self.torch, model, paths))
            return hook

        for path in paths:
            block = model.get_submodule(path)
            hooks += [block.register_forward_pre_hook(before(path)), block.register_forward_hook(after(path))]

    def watch_optimizers(self):
        plain, survey = self.torch.optim.Optimizer.__init__, self

        @functools.wraps(plain)
        def init(optimizer, params, defaults):
            plain(optimizer, params, defaults)
            if optimizer not in survey.optimizers:
                survey.optimizers.add(optimizer)
                frame = sys._getframe(1)
                while frame.f_back and frame.f_locals.get("self") is optimizer:
                    frame = frame.f_back
                tell("optimizer", kind=type(optimizer).__name__, module=type(optimizer).__module__,
                     options=own_options(optimizer), has=sorted(parameters_of(type(optimizer))), place=place_of(frame))

        self.torch.optim.Optimizer.__init__ = init
        clear = self.torch.optim.Optimizer.zero_grad

        @functools.wraps(clear)
        def zero_grad(optimizer, set_to_none=True):
            if not set_to_none and not survey.unset:
                survey.unset = place_of(sys._getframe(1))
                tell("zero_grad", place=survey.unset)
            return clear(optimizer, set_to_none)

        self.torch.optim.Optimizer.zero_grad = zero_grad

    def watch_losses(self):
        functional = self.torch.nn.functional
        plain, survey = functional.cross_entropy, self

        @functools.wraps(plain)
        def cross_entropy(input, *args, **kwargs):  # noqa: A002
            size = input.numel() * input.element_size() if input.is_cuda else 0
            if size > (survey.logits or 0):
                survey.logits = size
                tell("loss", bytes=size, shape=list(input.shape), place=place_of(sys._getframe(1)))
            return plain(input, *args, **kwargs)

        functional.cross_entropy = cross_entropy

    def watch_checkpoints(self):
        def act(module):
            plain = module.checkpoint

            @functools.wraps(plain)
            def checkpoint(*args, **kwargs):
                tell("checkpoint", place=place_of(sys._getframe(1)))
                module.checkpoint = plain
                return plain(*args, **kwargs)

            module.checkpoint = checkpoint

        act(importlib.import_module("torch.utils.checkpoint"))

    def before_step(self, _optimizer, _args, _kwargs):
        self.rest_peak = self.torch.cuda.max_memory_allocated()

    def after_step(self, optimizer, _args, _kwargs):
        frame = sys._getframe(1)
        peak = self.torch.cuda.max_memory_allocated()
        states = [value for state in optimizer.state.values() for value in state.values()
                  if isinstance(value, self.torch.Tensor) and value.is_cuda]
        tell("step", place=place_of(frame), peak=peak, is_peak_in_step=peak > self.rest_peak, state_dtypes=sorted({str(one.dtype) for one in states}),
             state=sum(one.numel() * one.element_size() for one in states))


def list_around(torch, model, paths):
    """The path of the list whose elements a group is, all of them; None: they stand in none, or not alone."""
    parent = paths[0].rpartition(".")[0]
    container = model.get_submodule(parent) if parent else model
    names = [f"{parent}.{name}" if parent else name for name, _ in container.named_children()]
    return parent if isinstance(container, (torch.nn.ModuleList, torch.nn.Sequential)) and names == paths else None


def parameters_of(kind):
    return inspect.signature(kind.__init__).parameters


def own_options(optimizer):
    """The options of an optimizer that differ from its class's defaults, as one writes them."""
    options = {}
    for name, parameter in parameters_of(type(optimizer)).items():
        value = optimizer.defaults.get(name, parameter.default)
        plain = isinstance(value, (int, float, bool, str, type(None))) or (
            isinstance(value, tuple) and all(isinstance(one, (int, float)) for one in value))
        if name not in ("self", "params") and plain and value != parameter.default:
            options[name] = repr(value)
    return options


# ---- remedies ---------------------------------------------------------------------------------------------------

def blocks_of(torch, model, facts):
    """The blocks that a remedy is for, as far as a model has them, or all that are repeated."""
    if "paths" in facts:
        there = dict(model.named_modules())
        return [there[path] for path in facts["paths"] if path in there]
    paths = [path for group in repeated_blocks(torch, model).values() for path in group]
    return [model.get_submodule(path) for path in paths]


def checkpoint(torch, facts):
    from torch.utils.checkpoint import checkpoint as of_torch
    done = weakref.WeakSet()

    def act(model, _frame):
        inner, _ = unwrapped(model)
        if facts.get("by_model"):
            inner.gradient_checkpointing_enable({"use_reentrant": False})
            return tell("applied", remedy="checkpoint", count=1)
        blocks = [block for block in blocks_of(torch, inner, facts) if block not in done]
        done.update(blocks)
        for block in blocks:
            block.forward = functools.partial(of_torch, block.forward, use_reentrant=False)
        return tell("applied", remedy="checkpoint", count=len(blocks))
    return act


def autocast(torch, facts):
    def act(model, _frame):
        model.forward = torch.autocast("cuda", dtype=getattr(torch, facts["dtype"]))(model.forward)
        tell("applied", remedy="autocast", count=1)
    return act


def offload(torch, _facts):
    def act(model, _frame):
        @functools.wraps(model.forward)
        def offloaded(*args, forward=model.forward, **kwargs):
            with torch.autograd.graph.save_on_cpu():
                return forward(*args, **kwargs)

        model.forward = offloaded
        tell("applied", remedy="offload", count=1)
    return act


def channels_last(torch, _facts):
    def act(model, _frame):
        model.to(memory_format=torch.channels_last)
        model.register_forward_pre_hook(lambda m, a: tuple(
            x.to(memory_format=torch.channels_last) if getattr(x, 'ndim', 0) == 4 else x for x in a))
        tell("applied", remedy="channels_last", count=1)
    return act


def compiled(_torch, _facts):
    def act(model, _frame):
        model.compile()
        tell("applied", remedy="compile", count=1)
    return act


def made_with(torch, **options):
    """Optimizers of torch.optim are made with other options, where they have them."""
    def wrap(kind):
        plain = kind.__init__

        @functools.wraps(plain)
        def init(self, *args, **kwargs):
            if type(self) is kind:
                if options.get("fused"): # which goes without foreach
                    kwargs.pop("foreach", None)
                kwargs.update(options)
                tell("applied", remedy="optimizer", count=1)
            plain(self, *args, **kwargs)

        kind.__init__ = init

    for kind in optimizers_of(torch):
        if all(name in parameters_of(kind) for name in options):
            wrap(kind)


def optimizers_of(torch):
    return [kind for kind in vars(torch.optim).values()
            if inspect.isclass(kind) and issubclass(kind, torch.optim.Optimizer) and kind is not torch.optim.Optimizer]


def after_making(torch, act):
    """Calls `act` with each optimizer when it has been made, but not with those that `act` makes."""
    is_busy = []

    def wrap(kind):
        inner = kind.__init__

        @functools.wraps(inner)
        def init(self, *args, **kwargs):
            inner(self, *args, **kwargs)
            if type(self) is kind and not is_busy:
                is_busy.append(True)
                try:
                    act(self)
                finally:
                    is_busy.clear()

        kind.__init__ = init

    for kind in optimizers_of(torch):
        wrap(kind)


def in_backward(torch, _facts):
    """Each parameter has an optimizer of its own, which steps as soon as the gradient is there."""
    def act(optimizer):
        kind, own = type(optimizer), {}
        for group in optimizer.param_groups:
            options = {name: value for name, value in group.items() if name in parameters_of(kind) and name != "params"}
            for parameter in group["params"]:
                own[parameter] = kind([parameter], **options)

        def step(parameter):
            own[parameter].step()
            own[parameter].zero_grad()

        for parameter in own:
            parameter.register_post_accumulate_grad_hook(step)
        optimizer.step = types.MethodType(lambda self, closure=None: closure() if closure else None, optimizer)
        optimizer.zero_grad = types.MethodType(lambda self, set_to_none=True: None, optimizer)
        tell("applied", remedy="in_backward", count=len(own))

    after_making(torch, act)


def accumulate(torch, facts):
    """Of `count` steps only the last one is made, and gradients are kept until then."""
    count = facts["count"]

    def act(optimizer):
        calls, plain_step, plain_clear = [0], optimizer.step, optimizer.zero_grad

        def step(self, closure=None):
            calls[0] += 1
            if calls[0] % count == 0:
                return plain_step(closure) if closure else plain_step()
            return closure() if closure else None

        def clear(self, set_to_none=True):
            if calls[0] % count == 0:
                plain_clear(set_to_none)

        optimizer.step = types.MethodType(step, optimizer)
        optimizer.zero_grad = types.MethodType(clear, optimizer)
        tell("applied", remedy="accumulate", count=count)

    after_making(torch, act)


def set_to_none(torch, _facts):
    plain = torch.optim.Optimizer.zero_grad

    @functools.wraps(plain)
    def zero_grad(optimizer, set_to_none=True):
        return plain(optimizer, True)

    torch.optim.Optimizer.zero_grad = zero_grad
    tell("applied", remedy="set_to_none", count=1)


def other_optimizer(torch, facts):
    """A class of another package in place of one of PyTorch's, without the options that it does not have."""
    kind = getattr(importlib.import_module(facts["package"]), facts["kind"])
    plain, has = kind.__init__, parameters_of(kind)

    @functools.wraps(plain)
    def init(self, params, *args, **kwargs):
        tell("applied", remedy="other_optimizer", count=1)
        plain(self, params, *args, **{name: value for name, value in kwargs.items() if name in has})

    kind.__init__ = init
    setattr(torch.optim, facts["replaces"], kind)


def chunked_loss(torch, _facts):
    """Cross-entropy in pieces, each computed again in the backward pass."""
    from torch.utils.checkpoint import checkpoint as of_torch
    functional = torch.nn.functional
    plain = functional.cross_entropy

    @functools.wraps(plain)
    def cross_entropy(input, target, *args, **kwargs):  # noqa: A002
        is_large = input.is_cuda and input.dim() == 2 and input.numel() * input.element_size() >= LOGITS_LEAST
        if not is_large or args or set(kwargs) - {"ignore_index"} or target.dim() != 1:
            return plain(input, target, *args, **kwargs)
        tell("applied", remedy="chunked_loss", count=1)
        total = sum(of_torch(plain, x, y, reduction="sum", use_reentrant=False, **kwargs)
                    for x, y in zip(input.chunk(PIECES), target.chunk(PIECES)))
        return total / (target != kwargs.get("ignore_index", -100)).sum()

    functional.cross_entropy = cross_entropy


def sharded(torch, facts):
    """FSDP2: what this process holds as rank 0 of several. Before an optimizer gets the parameters."""
    import torch.distributed as dist

    def models_of(parameters):
        modules = [one for one in gc.get_objects() if isinstance(one, torch.nn.Module)]
        inner = {id(child) for module in modules for child in module.children()}
        wanted = {id(one) for one in parameters}
        return [one for one in modules if id(one) not in inner and any(id(p) in wanted for p in one.parameters())]

    def shard(params):
        from torch.distributed.fsdp import fully_shard
        given = params if isinstance(params, list) else list(params)
        groups = given if given and isinstance(given[0], dict) else [{"params": given}]
        # Lists that the program keeps get the new ones, too: else they would hold what was there before.
        lists = [group["params"] if isinstance(group["params"], list) else list(group["params"]) for group in groups]
        models = models_of([one for some in lists for one in some])
        if not dist.is_initialized():
            dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=facts["count"])
        places, blocks = {}, 0
        for model in models:
            for path, parameter in model.named_parameters():
                places[id(parameter)] = model, path
        where = [[places[id(one)] for one in some] for some in lists]
        for some in lists:
            some.clear()
        del places
        for model in models:
            for block in blocks_of(torch, model, {}):
                fully_shard(block)
                blocks += 1
            fully_shard(model)
        tell("applied", remedy="sharded", count=blocks)
        for some, paths in zip(lists, where):
            some[:] = [model.get_parameter(path) for model, path in paths]
        return [dict(group, params=some) for group, some in zip(groups, lists)]

    def wrap(kind):
        plain = kind.__init__

        @functools.wraps(plain)
        def init(self, params, *args, **kwargs):
            plain(self, shard(params) if type(self) is kind else params, *args, **kwargs)

        kind.__init__ = init

    for kind in optimizers_of(torch):
        wrap(kind)


AT_MODELS = {"checkpoint": checkpoint, "autocast": autocast, "offload": offload, "channels_last": channels_last,
             "compile": compiled}
AT_ONCE = {"in_backward": in_backward, "accumulate": accumulate, "set_to_none": set_to_none,
           "other_optimizer": other_optimizer, "chunked_loss": chunked_loss, "sharded": sharded,
           "optimizer": lambda torch, facts: made_with(torch, **facts["options"])}


def start(torch):
    actions = []
    for facts in json.loads(os.environ["GPUMEM_DRY_REMEDY"]):
        if facts["name"] == "survey":
            actions.append(Survey(torch).model)
        elif facts["name"] in AT_MODELS:
            actions.append(AT_MODELS[facts["name"]](torch, facts))
        else:
            AT_ONCE[facts["name"]](torch, facts)
    if actions:
        Models(torch, actions)
