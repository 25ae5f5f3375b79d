"""Remedies against too large a need: what there is to try in a program, the lines that do it, and what each saves.

Each is tried in the unchanged program by dry_remedies.py, which does what `write` says. All runs are without limit, so
that needs can be compared where the program does not fit. What PyTorch's cache grows to without limit it would give back
in part where memory is short, so a need has two ends: with that cache and without. Remedies are ranked by both; the one
that is recommended is run on the device as well.
"""
import itertools
import json
import os
import subprocess

from runs import UNLIMITED

RUNS_MOST = 32
WORTH = 0.01           # of the need: what saves less does nothing
VERIFIED_MOST = 3      # runs on the device, for the remedy to recommend
COMMON_OPTIONS = ("lr", "betas", "eps", "weight_decay", "amsgrad") # of Adam, which bitsandbytes has as well
# Remedies that change no result before those that do, and those for which one needs more GPUs.
GENTLE_FIRST = ("zero_grad", "loss", "activations", "optimizer", "layout", "compile", "batch", "autocast", "shards")
HALF_TYPES = {"torch.float16", "torch.bfloat16"}
BATCH_NAMES = ("batch", "bs", "bsz", "mbs")


class Remedy:
    """`slot`: of remedies with the same one, only one can be in a combination. `facts`: for dry_remedies.py. `kind`: how
    far the saving can be trusted."""

    def __init__(self, name, slot, facts, write, cost, applied_to=(), where=None, kind="exact", values=None):
        self.name, self.slot, self.facts, self.write, self.cost = name, slot, facts, write, cost
        self.applied_to, self.where, self.kind, self.values = list(applied_to), where, kind, values
        self.result = self.honest = self.why_not = self.estimate = None
        self.parts = [self]

    def is_tried(self):
        return self.result is not None or self.estimate is not None


class Combination(Remedy):
    def __init__(self, parts):
        super().__init__(" + ".join(part.name for part in parts), None, [fact for part in parts for fact in part.facts],
                         [line for part in parts for line in part.write], [part.cost for part in parts],
                         [one for part in parts for one in part.applied_to])
        self.parts = parts
        self.kind = "bounded" if any(part.kind != "exact" for part in parts) else "exact"
        self.values = next((part.values for part in parts if part.values), None)


class Program:
    """What the survey told of a program."""

    def __init__(self, told):
        def all_of(what):
            return [one for one in told if one["what"] == what]

        def different(what, *keys):
            """Without what a second run, or another rank, told again."""
            return list({json.dumps([one[key] for key in keys]): one for one in reversed(all_of(what))}.values())[::-1]

        self.models, self.optimizers = different("model", "name", "path", "kind", "place"), different("optimizer", "place")
        self.groups = different("blocks", "model", "kind", "paths")
        self.groups.sort(key=lambda group: -sum(group["held"]))
        self.losses, self.steps = all_of("loss"), all_of("step")
        self.packages = next((one["found"] for one in all_of("packages")), [])
        self.has_checkpoints, self.unset = bool(all_of("checkpoint")), all_of("zero_grad")
        self.is_surveyed = bool(all_of("packages"))

    def model_name(self):
        return (self.models[0]["name"] or "model") if self.models else "model"

    def model_place(self):
        return self.models[0]["place"] if self.models else None

    def optimizer(self):
        return self.optimizers[0] if self.optimizers else None

    def is_peak_in_step(self):
        """Whether the last rise of the peak was within an optimizer's step."""
        peaks = [step["peak"] for step in self.steps]
        return any(step["is_peak_in_step"] for step in self.steps if step["peak"] == max(peaks, default=0))

    def state(self):
        return max((step["state"] for step in self.steps), default=0)


# ---- what there is to try -------------------------------------------------------------------------------------

def each(program, line):
    """A line for each model, if there are several."""
    names = [model["name"] or "model" for model in program.models]
    if len(names) < 2:
        return line.replace("MODEL", program.model_name())
    return f"for each_model in ({', '.join(names)}): " + line.replace("MODEL", "each_model")


def blocks_expression(groups, count=None):
    """The blocks of groups as one writes them; `count`: only the first ones."""
    part, texts = f"[:{count}]" if count else "", []
    for group in groups:
        name, path = group["model"] or "model", group["is_list"]
        if path is None:
            texts.append(f"[m for m in {name}.modules() if type(m).__name__ == '{group['kind']}']")
        elif any(step.isdigit() for step in path.split(".")):
            texts.append(f'{name}.get_submodule("{path}")')
        else:
            texts.append(name + ("." + path if path else ""))
    return (texts[0] if len(texts) == 1 else "[" + ", ".join("*" + text for text in texts) + "]") + part


def checkpoints(program):
    if not program.groups:
        yield skipped("checkpoint", "no class of modules with parts of its own occurs twice")
        return
    if program.has_checkpoints:
        yield skipped("checkpoint", "the program has checkpoints already")
        return
    cost = "each block is computed twice: again in the backward pass"
    model = program.models[0]
    if model["can_checkpoint"]:
        yield Remedy("checkpoint", "activations", [{"name": "checkpoint", "by_model": True}],
                     [(model["name"] or "model") + model["path"] +
                      '.gradient_checkpointing_enable({"use_reentrant": False})'], cost,
                     [path for group in program.groups for path in group["paths"]], program.model_place())
        return
    kinds = list(dict.fromkeys(group["kind"] for group in program.groups))
    for kind in kinds[:2]:
        groups = [group for group in program.groups if group["kind"] == kind]
        paths = [path for group in groups for path in group["paths"]]
        half = (len(paths) + 1) // 2
        for count in [None, half] if len(groups) == 1 and half > 1 else [None]:
            name = "checkpoint" + (f" {count} of {len(paths)}" if count else "") + (f" {kind}" if kind != kinds[0] else "")
            yield Remedy(name, "activations", [{"name": "checkpoint", "paths": paths[:count]}],
                         ["import functools, torch.utils.checkpoint",
                          f"for block in {blocks_expression(groups, count)}: block.forward = functools.partial("
                          "torch.utils.checkpoint.checkpoint, block.forward, use_reentrant=False)"],
                         cost, paths[:count], program.model_place())


def at_models(program):
    place = program.model_place()
    halves = program.models and all(set(model["dtypes"]) <= HALF_TYPES for model in program.models)
    for name, dtype, cost in (
            ("autocast bf16", "bfloat16", "mostly faster on GPUs with Tensor Cores; the loss gets bf16"),
            ("autocast fp16", "float16", "mostly faster on GPUs with Tensor Cores; small gradients need a GradScaler")):
        if any(model["is_autocast"] for model in program.models):
            yield skipped(name, "autocast is on already")
        elif halves:
            yield skipped(name, "the model has 16 bits already")
        else:
            yield Remedy(name, "autocast", [{"name": "autocast", "dtype": dtype}],
                         [each(program, f'MODEL.forward = torch.autocast("cuda", dtype=torch.{dtype})(MODEL.forward)')],
                         cost, where=place)
    yield Remedy("save_on_cpu", "activations", [{"name": "offload"}],
                 ["def offloaded(forward, *args, **kwargs):",
                  "    with torch.autograd.graph.save_on_cpu(): return forward(*args, **kwargs)",
                  each(program, "MODEL.forward = lambda *a, forward=MODEL.forward, **k: offloaded(forward, *a, **k)")],
                 "what the backward pass needs goes to the host and back", where=place)
    if any(model["has_convolutions"] for model in program.models):
        yield Remedy("channels_last", "layout", [{"name": "channels_last"}],
                     [each(program, "MODEL.to(memory_format=torch.channels_last)"),
                      each(program, "MODEL.register_forward_pre_hook(lambda m, a: tuple("
                           "x.to(memory_format=torch.channels_last) if getattr(x, 'ndim', 0) == 4 else x for x in a))")],
                     "mostly faster with Tensor Cores", where=place, kind="bounded")
    else:
        yield skipped("channels_last", "there is no convolution")
    yield Remedy("torch.compile", "compile", [{"name": "compile"}], [each(program, "MODEL.compile()")],
                 "faster once it is compiled, which takes minutes; runs that find it compiled need other amounts",
                 where=place, kind="bounded")


def optimizer_text(optimizer, parameters, **options):
    options = dict(optimizer["options"], **options)
    if options.get("fused") == "True":
        options.pop("foreach", None)
    prefix = "torch.optim." if optimizer["module"].startswith("torch.optim") else ""
    return f"{prefix}{optimizer['kind']}({', '.join([parameters, *(f'{a}={b}' for a, b in options.items())])})"


def optimizers(program):
    optimizer = program.optimizer()
    names = ("foreach=False", "fused=True", "in backward")
    if not optimizer or not optimizer["module"].startswith("torch.optim"):
        for name in names:
            yield skipped(name, "the program makes no optimizer of torch.optim")
        return
    place, parameters = optimizer["place"], program.model_name() + ".parameters()"
    if any(model["has_frozen"] for model in program.models):
        parameters = f"[p for p in {parameters} if p.requires_grad]"
    for name, option, cost in (("foreach=False", "foreach", "slower steps: one kernel for each parameter"),
                               ("fused=True", "fused", "mostly faster steps")):
        value = name.partition("=")[2]
        if option not in optimizer["has"]:
            yield skipped(name, f"{optimizer['kind']} has no such form")
        elif optimizer["options"].get(option) == value:
            yield skipped(name, "is so already")
        else:
            yield Remedy(name, "optimizer", [{"name": "optimizer", "options": {option: value == "True"}}],
                         [optimizer_text(optimizer, parameters, **{option: value})], cost, where=place)
    yield Remedy("in backward", "optimizer", [{"name": "in_backward"}],
                 [f"own = {{p: {optimizer_text(optimizer, '[p]')} for p in {parameters}}}",
                  "for p in own: p.register_post_accumulate_grad_hook(lambda p: own[p].step() or own[p].zero_grad())"],
                 "steps within the backward pass; no clipping of all gradients, no accumulation", where=place)
    yield from eight_bits(program, optimizer, place, parameters)
    if program.unset:
        yield Remedy("zero_grad(set_to_none=True)", "zero_grad", [{"name": "set_to_none"}],
                     ["optimizer.zero_grad(set_to_none=True)"], "mostly faster", where=program.unset[0]["place"])
    else:
        yield skipped("zero_grad(set_to_none=True)", "gradients are set to None already")


def eight_bits(program, optimizer, place, parameters):
    if optimizer["kind"] not in ("Adam", "AdamW"):
        yield skipped("8-bit state", "only Adam and AdamW are tried with it")
        return
    for name, kind, cost, share in (("8-bit state", "Adam8bit", "about as fast; the state is less exact", 4),
                                    ("paged state", "PagedAdam", "pages of the state move when memory is short", 0)):
        kind = kind.replace("Adam", optimizer["kind"])
        options = {option: value for option, value in optimizer["options"].items() if option in COMMON_OPTIONS}
        write = ["import bitsandbytes",
                 optimizer_text({"module": "", "kind": "bitsandbytes.optim." + kind, "options": options}, parameters)]
        facts = {"name": "other_optimizer", "package": "bitsandbytes.optim", "kind": kind, "replaces": optimizer["kind"]}
        remedy = Remedy(name, "optimizer", [facts], write, cost, where=place, kind="bounded")
        if "bitsandbytes" not in program.packages:
            remedy.facts = None
            remedy.estimate = program.state() - (program.state() // share if share else 0)
            remedy.why_not = "bitsandbytes is not installed"
        yield remedy


def losses(program):
    biggest = max(program.losses, key=lambda loss: loss["bytes"], default=None)
    if not biggest or biggest["bytes"] < 64 << 20 or len(biggest["shape"]) != 2:
        yield skipped("loss in pieces", "no cross-entropy of 64 MiB of logits or more, in two dimensions")
        return
    yield Remedy("loss in pieces", "loss", [{"name": "chunked_loss"}],
                 ["from torch.utils.checkpoint import checkpoint",
                  "loss = sum(checkpoint(torch.nn.functional.cross_entropy, x, y, reduction=\"sum\", use_reentrant=False) "
                  "for x, y in zip(logits.chunk(8), targets.chunk(8))) / (targets != -100).sum()"],
                 "the loss is computed twice", where=biggest["place"])


def shards(program, counts):
    if not program.optimizers or any(".module" in model["path"] for model in program.models):
        yield skipped("FSDP2", "the program is distributed already" if program.optimizers else "there is no optimizer")
        return
    blocks = [f"for block in {blocks_expression(program.groups)}: fully_shard(block)"] if program.groups else []
    for count in counts:
        yield Remedy(f"FSDP2 over {count}", "shards", [{"name": "sharded", "count": count}],
                     ["from torch.distributed.fsdp import fully_shard  # torchrun, init_process_group(\"nccl\")",
                      *blocks, each(program, "fully_shard(MODEL)")],
                     f"{count} GPUs, each with its own batch; parameters are gathered for each block",
                     [path for group in program.groups for path in group["paths"]], program.optimizer()["place"],
                     kind="bounded")


def accumulations(program, options, values):
    axis = next((axis for axis in options.axes if any(name in axis.name.lower() for name in BATCH_NAMES)),
                options.axes[0] if len(options.axes) == 1 else None)
    if not axis or not program.steps:
        yield skipped("accumulation", "--over names no batch")
        return
    batch = values[axis.name]
    for count in (2, 4, 8):
        if batch.isdigit() and int(batch) % count == 0 and int(batch) > count:
            small = str(int(batch) // count)
            yield Remedy(f"accumulation over {count}", "batch", [{"name": "accumulate", "count": count}],
                         [f"if (step + 1) % {count} == 0: optimizer.step(); optimizer.zero_grad()  "
                          f"# with {axis.name}={small}, and loss / {count}"],
                         "the same work in smaller pieces", where=program.steps[0]["place"],
                         values=dict(values, **{axis.name: small}))


def skipped(name, why):
    remedy = Remedy(name, None, None, [], None)
    remedy.why_not = why
    return remedy


def all_remedies(program, options, values):
    if not program.models:
        return [skipped("all", "no model of PyTorch was called for training")]
    return list(itertools.chain(checkpoints(program), at_models(program), optimizers(program), losses(program),
                                shards(program, (2, 4, 8)), accumulations(program, options, values)))


# ---- trying -----------------------------------------------------------------------------------------------------

class Remedies:
    """`request`: called with values and memory, returns what Runner.run takes."""

    def __init__(self, runner, request, options, values, capacity):
        self.runner, self.request, self.options, self.values = runner, request, options, values
        self.capacity, self.base, self.program = capacity, None, None
        self.honest_base = self.chosen = None # the run on the device; the remedy with which it fits there
        self.tried, self.runs_left = [], RUNS_MOST
        wanted = options["remedies"]
        self.only = wanted.split(",") if isinstance(wanted, str) and wanted else None

    def run_one(self, facts, values, memory, keeps_trace=False):
        command, environment, card, _ = self.request(values or self.values, memory)
        environment = dict(environment, GPUMEM_DRY_REMEDY=json.dumps(facts))
        return command, environment, card, memory, keeps_trace

    def run(self):
        self.runner.run_all([("as it is", self.run_one([{"name": "survey"}], None, UNLIMITED, True))],
                            lambda _, result: setattr(self, "base", result))
        if self.base.has_failed or self.base.dry["failed_at"]:
            return
        self.program = Program(self.base.told)
        self.tried = [remedy for remedy in [*all_remedies(self.program, self.options, self.values), *self.settings()]
                      if not self.only or any(remedy.name.startswith(name) for name in self.only)]
        wanted = [remedy for remedy in self.tried if remedy.facts and not remedy.is_tried()]
        self.try_all(wanted[:self.runs_left])
        self.combine()
        self.verify()

    def try_all(self, wanted):
        self.runs_left -= len(wanted)

        def take(number, result):
            wanted[number].result = result

        self.runner.run_all([(remedy.name, self.run_one(remedy.facts, remedy.values, UNLIMITED)) for remedy in wanted],
                            take)

    def settings(self):
        """What PyTorch's allocator would reserve by other settings: replayed, without a run."""
        if not self.base.trace:
            return []
        done = subprocess.run([self.runner.gpumem, "whatif", "--advise", "--json", self.base.trace[0]],
                              capture_output=True, text=True, check=False, timeout=600)
        try:
            told = json.loads(done.stdout)
        except ValueError:
            return []
        families = {} # the best of each
        for setting in told["settings"]:
            if setting["modelled"] or setting["out_of_memory"]:
                continue
            saved = told["as_recorded"]["reserved_peak"] - setting["reserved_peak"]
            remedy = Remedy(setting["set"], "settings", None, [f"PYTORCH_ALLOC_CONF={setting['set']}"],
                            "none that is documented", kind="bounded")
            remedy.estimate = max(0, saved)
            family = setting["set"].partition(":")[0]
            if family not in families or remedy.estimate > families[family].estimate:
                families[family] = remedy
        return list(families.values())

    def saves(self, remedy):
        """(bytes of the whole need, bytes of it without PyTorch's cache); None, None: nothing can be said."""
        if remedy.result is None:
            return remedy.estimate, remedy.estimate if remedy.slot != "settings" else 0
        if is_failed(remedy):
            return None, None
        return self.base.most - remedy.result.most, self.base.without_cache - remedy.result.without_cache

    def helps(self, remedy):
        return max((saves for saves in self.saves(remedy) if saves is not None), default=0) > self.base.most * WORTH

    def rank(self, remedy):
        """Best first."""
        return -sum(saves or 0 for saves in self.saves(remedy))

    def combine(self):
        """Greedily: the best with each next one of another kind that makes it better."""
        ranked = sorted((remedy for remedy in self.tried if remedy.result and self.helps(remedy) and
                         remedy.slot not in ("shards", "batch")), key=self.rank)
        best = ranked[0] if ranked else None
        for remedy in ranked[1:]:
            if self.runs_left <= 0:
                break
            if remedy.slot in {part.slot for part in best.parts}:
                continue
            together = Combination([*best.parts, remedy])
            self.try_all([together])
            self.tried.append(together)
            if not is_failed(together) and self.rank(together) < self.rank(best) - self.base.most * WORTH:
                best = together

    def candidates(self):
        """Remedies with which the program may fit, the one to recommend first: of fewest parts, gentle, and of those of
        a kind the one that does least."""
        found = [remedy for remedy in self.tried if remedy.result and not is_failed(remedy) and self.helps(remedy) and
                 remedy.result.without_cache <= self.capacity]
        return sorted(found, key=lambda one: (len(one.parts), max(GENTLE_FIRST.index(part.slot) for part in one.parts),
                                              -one.result.most))

    def best(self):
        return min((remedy for remedy in self.tried if remedy.result and self.helps(remedy)), key=self.rank, default=None)

    def does_fit_as_it_is(self):
        return self.honest_base.verdict == "fits" if self.honest_base else self.base.most <= self.capacity

    def verify(self):
        """On the device, with the memory that it has."""
        def run(name, facts, values):
            found = []
            self.runner.run_all([(name + " on the device", self.run_one(facts, values, None))],
                                lambda _, result: found.append(result))
            return found[0]

        if self.base.most > self.capacity >= self.base.without_cache:
            self.honest_base = run("as it is", [{"name": "survey"}], None)
        if self.does_fit_as_it_is():
            return
        for remedy in self.candidates()[:VERIFIED_MOST]:
            remedy.honest = run(remedy.name, remedy.facts, remedy.values)
            if remedy.honest.verdict == "fits":
                self.chosen = remedy
                break


def is_failed(remedy):
    result = remedy.result
    return result is not None and (result.has_failed or result.verdict != "fits")


def failure(remedy):
    return remedy.result.why() if remedy.result.verdict == "undecided" else "it does not even fit without limit"


def place_text(place):
    return f"{os.path.basename(place['file'])}:{place['line']}" if place else None
