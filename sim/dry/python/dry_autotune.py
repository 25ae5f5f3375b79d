"""Autotuners try variants of a kernel and take the fastest. In a dry run kernels take no time, so that nothing is found by
trying: of variants that differ in their tiles one or two are compiled, and what is tried is tried once. What is left is
tried as ever, so that the memory which a trial takes (copies of arguments, a buffer to empty a cache with) is allocated.
"""
import functools
import inspect

FEW = 2  # of one alone nothing is tried


def one_of_each(choosing):
    """Of Inductor's ways to compute an operation (max-autotune), all libraries' and one of each template."""
    def kind_of(choice):
        request = getattr(choice, "bmreq", None)
        name = str(getattr(choice, "name", "")).rstrip("0123456789")
        is_template = request is not None and "Triton" in type(choice).__name__
        return (name, getattr(request, "workspace_size_bytes", None)) if is_template else id(choice)

    def wrap(call):
        @functools.wraps(call)
        def choose(self, name, choices, *args, **kwargs):
            kept = {}
            for choice in choices:
                kept.setdefault(kind_of(choice), choice)
            return call(self, name, list(kept.values()), *args, **kwargs)
        return choose

    cache = getattr(choosing, "AlgorithmSelectorCache", None)
    if cache:
        cache.__call__ = wrap(cache.__call__)


def few_configurations(heuristics):
    """Of the tiles of one of Inductor's own kernels."""
    tuner = getattr(heuristics, "CachingAutotuner", None)
    if not tuner or "configs" not in inspect.signature(tuner.__init__).parameters:
        return
    make = tuner.__init__

    @functools.wraps(make)
    def make_with_few(*args, **kwargs):
        given = inspect.signature(make).bind(*args, **kwargs)
        given.arguments["configs"] = list(given.arguments["configs"])[:FEW]
        make(*given.args, **given.kwargs)

    tuner.__init__ = make_with_few


def few_configurations_in_triton(autotuner):
    """Of those that a program gives a kernel of its own, after it has chosen among them itself."""
    tuner = getattr(autotuner, "Autotuner", None)
    if not hasattr(tuner, "prune_configs"):
        return
    prune = tuner.prune_configs

    @functools.wraps(prune)
    def prune_to_few(*args, **kwargs):
        return list(prune(*args, **kwargs))[:FEW]

    tuner.prune_configs = prune_to_few


def same_time(measured):
    """What a trial took: all take the same, so that the first one wins, each time. That is a library's, where there is one."""
    return [same_time(part) for part in measured] if isinstance(measured, (list, tuple)) else 1.0


def timed_once(function, **most):
    """A function that times another, with arguments by which it does so as few times as it can."""
    known = inspect.signature(function).parameters

    @functools.wraps(function)
    def time(*args, **kwargs):
        given = inspect.signature(function).bind(*args, **kwargs)
        given.arguments.update({name: value for name, value in most.items() if name in known})
        return same_time(function(*given.args, **given.kwargs))
    return time


def time_once_in_triton(testing):
    testing.do_bench = timed_once(testing.do_bench, warmup=0, rep=0)


def time_once_in_inductor(benchmarking):
    bench = getattr(benchmarking, "InductorBenchmarker", None)
    if bench and hasattr(bench, "benchmark_gpu"):
        bench.benchmark_gpu = timed_once(bench.benchmark_gpu, estimation_iters=1, memory_warmup_iters=1, benchmark_iters=1)


AFTER = {"torch._inductor.select_algorithm": one_of_each, "torch._inductor.runtime.triton_heuristics": few_configurations,
         "torch._inductor.runtime.benchmarking": time_once_in_inductor, "triton.testing": time_once_in_triton,
         "triton.runtime.autotuner": few_configurations_in_triton}
