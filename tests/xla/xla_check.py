#!/usr/bin/env python3
"""Runs the scenarios of TensorFlow or JAX under gpumem; compares the report with the simulator's totals, and the trace
with the framework's own figures.

    xla_check.py BUILD tensorflow|jax|jax-programs [NAME...]

One line per scenario, PASS or FAIL with figures; exit code 1 if any failed. Run by run_xla, and with jax-programs, which runs those
of jax_programs.py alone, by run_jax_versions.
"""
import glob
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import framework_check  # noqa: E402
from framework_check import t  # noqa: E402

DEVICE = {"GPUMEM_SIM_MEMORY": "512M"}  # soon full: both wait some 10 s before they report that
# Environments. "default": a pool that is taken at once; "pieces": it grows; "async": none.
ALLOCATORS = {
    "tensorflow": {
        "default": {},
        "pieces": {"TF_FORCE_GPU_ALLOW_GROWTH": "true"},
        "async": {"TF_GPU_ALLOCATOR": "cuda_malloc_async"},
    },
    "jax": {
        "default": {},
        "pieces": {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
        "async": {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async"},
    },
}
PROGRAMS = os.path.join(HERE, "jax_programs.py")
LIBRARIES = {"tensorflow": "TensorFlow", "jax": "JAX"}
NAMES = {"tensorflow": ("arrays", "training", "kept_results", "refused"),
         "jax": ("arrays", "kept_results", "refused")}
# JAX from 0.12 on compiles without cuDNN; before, only transfers run but where cuDNN has a stand-in.
COMPILED = ("compiled", "donated", "training") if sys.version_info >= (3, 12) else ()

build, framework = os.path.abspath(sys.argv[1]), sys.argv[2].split("-")[0]
allocators = {name: DEVICE | settings for name, settings in ALLOCATORS[framework].items()}
scenarios = os.path.join(HERE, framework + "_scenarios.py")


def command(name):
    """The frameworks use a device only if they find NVML and all of NVIDIA's libraries."""
    folders = glob.glob(sysconfig.get_path("purelib") + "/nvidia/*/lib")
    path = ":".join([build + "/sim", build + "/sim/nvml", *folders])
    return ["env", "LD_LIBRARY_PATH=" + path, sys.executable, scenarios, name]


def record(name, allocator):
    return framework_check.record(build, command(name), allocators[allocator])


def held(trace):
    """At each mark: the framework's figure, and the live device memory."""
    live, pairs = {}, []
    for event, _ in trace.records():
        if event.type == t.VMM_CREATE or (event.type == t.ALLOC and event.kind == t.KIND_DEVICE):
            live[event.address] = event.size
        elif event.type in (t.FREE, t.VMM_RELEASE):
            live.pop(event.address, None)
        elif event.type == t.MARK and trace.string(event.aux).startswith("held "):
            pairs.append((int(trace.string(event.aux).split()[1]), sum(live.values())))
    return pairs


def arrays(name, allocator):
    """At each mark the blocks on record are the arrays that JAX says are alive."""
    return compare_arrays(record(name, allocator)[1])


def compare_arrays(trace):
    live, problems, marks = {}, [], 0
    for event, _ in trace.records():
        if event.type == t.BLOCK_ALLOC:
            live[event.address] = event.size
        elif event.type == t.BLOCK_FREE and event.address:
            if live.pop(event.address, None) != event.size:
                problems.append(f"the end of a block that did not live: {event.address:#x}")
        elif event.type == t.MARK and trace.string(event.aux).startswith("arrays "):
            marks += 1
            said, lived = int(trace.string(event.aux).split()[1]), sum(live.values())
            if said != lived:
                problems.append(f"mark {marks}: JAX has {said} bytes in arrays, {lived} on record")
    return problems if marks else ["no marks"], f"{marks} times the bytes of jax.live_arrays()"


def compare_in_use(trace, report):
    """What JAX says is in use at each mark, to the byte: the arrays, what rounds each up to 256 bytes, and remainders of chunks. BFC
    divides a chunk that is twice what is asked, so an array's remainder is smaller than the array: more would be something else."""
    live, told, latest, problems, most = {}, {}, {}, [], 0
    for event, _ in trace.records():
        if event.type == t.BLOCK_ALLOC:
            live[event.address] = (event.device, event.size)
        elif event.type == t.BLOCK_FREE and event.address:
            live.pop(event.address, None)
        elif event.type == t.BLOCK_FREE:
            sizes = [size for device, size in live.values() if device == event.device]
            rounding = sum(-size % 256 for size in sizes)
            rest = event.aux - sum(sizes) - rounding
            latest[event.device] = event.aux, rest, sum(sizes) + rounding
            told.setdefault(event.device, []).append((event.aux, sum(sizes), rounding))
        elif event.type == t.MARK and trace.string(event.aux).startswith("held "):
            if sum(in_use for in_use, _, _ in latest.values()) != int(trace.string(event.aux).split()[1]):
                problems.append(f"told {latest}, not {trace.string(event.aux)}")
            problems += [f"device {device}: {rest} beside {held}" for device, (_, rest, held) in latest.items()
                         if rest % 256 or rest and not 0 < rest < held]
            most = max([most] + [rest for _, rest, _ in latest.values()])
    said = {pool["device"]: [(one["in_use"], one["allocated"], one["rounding"]) for one in pool["in_use_told"]]
            for pool in report["framework_blocks"]}
    problems += [f"the report's figures of device {device}" for device in told
                 if told[device] != said.get(device, [(0, 0, 0)] * len(told[device]))]
    return problems if latest else ["not told what is in use"], f"at most {most} in remainders"


def programs():
    """jax_programs.py's names; of each the line that holds most, and the (code, line) of what must be found."""
    found, name = {}, None
    with open(PROGRAMS, encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            if text.startswith("def "):
                name = text[4:text.index("(")]
            if text.startswith("@scenarios.scenario"):
                name = None
            elif name and name != "mark":
                line, leaks = found.setdefault(name, (None, set()))
                leak = re.search(r"#.* leak: (\S+)$", text)
                found[name] = number if "# holder" in text else line, leaks | ({(leak[1], number)} if leak else set())
    return found


def dry(command, folder):
    """A command with stand-ins for the libraries of mathematics: JAX before 0.12 compiles nothing without cuDNN. Its output."""
    subprocess.run([build + "/report/gpumem", "dry-run", "--device", "h100", "--devices", "8", "--memory", "2G", "--once",
                    "-o", folder + "/%e.trace", "--", "sh", "-c", 'exec "$@" >output', "sh", *command],
                   cwd=folder, env=dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false"), check=False, capture_output=True)
    with open(folder + "/output", encoding="utf-8") as file:
        return file.read()


def program(name, line, leaks):
    """The same output both ways, JAX's arrays at each mark, the line that holds most, and what is found."""
    path = [sys.executable, PROGRAMS, name]
    with tempfile.TemporaryDirectory() as folder:
        bare = dry(["sh", "-c", 'LD_PRELOAD=$GPUMEM_DRY_LIBRARIES/libgpumem-fresh.so exec "$@"', "sh", *path], folder)
        recorded = dry(path, folder)
        [trace] = glob.glob(folder + "/*.trace")
        shown = subprocess.check_output([build + "/report/gpumem", "report", "--json", trace])
        problems, marks = compare_arrays(t.Trace(trace))
        in_use_problems, remainders = compare_in_use(t.Trace(trace), report := json.loads(shown))
    problems += in_use_problems
    problems += [] if bare == recorded and bare.endswith(" bytes\n") else [f"not the same output: {bare!r} {recorded!r}"]
    findings = {(one["code"], one["line"]): one["severity"] for one in report["findings"]}
    problems += [f"not found: {one}" for one in leaks - set(findings)]
    problems += [f"{severity}: {one}" for one, severity in findings.items() if severity != "note" and one not in leaks]
    pool = max(report["framework_blocks"], key=lambda pool: pool["peak"])
    first = pool["at_peak"]["lines"][0]
    if os.path.basename(first["file"] or "") != "jax_programs.py" or line not in (None, first["line"]):
        problems.append(f"line {line} holds most, not {first['file']}:{first['line']}")
    return problems, f"{marks}, {remainders}, line {first['line']} holds {first['bytes']} bytes"


def gpumem_json(command, environment=()):
    """The exit code of a command of gpumem's, and what it says."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, XDG_CACHE_HOME=folder, **dict(environment))
        shown = subprocess.run([build + "/report/gpumem", *command], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return shown.returncode, json.loads(shown.stdout)


def dry_run():
    """An unchanged program uses the GPU, though there is no /dev/nvidia0 to be seen, and a loop ends though its kernels compute nothing."""
    code = ("import jax, numpy; a = [jax.device_put(numpy.ones(1 << 20, numpy.float32)) for _ in range(3)]; b = a[0] + a[1]; del b;"
            "jax.block_until_ready(jax.lax.while_loop(lambda c: c.sum() < 5, lambda c: c * 2, numpy.ones(64, numpy.float32)))")
    status, answer = gpumem_json(["dry-run", "--json", "--device", "h100", "--", sys.executable, "-c", code])
    parts = {part["name"]: part["bytes"] for part in answer["dry_run"]["parts"]}
    return [] if parts.get("XLA's arrays") == 4 << 22 else [f"exit code {status}, {parts}"], str(parts)


def late_refusal():
    """The call succeeds, and waiting for its result does not. It is refused at the line of the call, whether it is caught or not."""
    code = ("import jax, numpy\nsort = jax.jit(lambda x: jax.numpy.sort(x[:, None] * x[None, :], axis=0))\n"
            "result = sort(numpy.ones(100000, numpy.float32))\n%s")
    endings = {"does-not-fit": "result.block_until_ready()",
               "fits": "try:\n    result.block_until_ready()\nexcept jax.errors.JaxRuntimeError:\n    pass"}
    problems, said = [], []
    for verdict, ending in endings.items():
        status, answer = gpumem_json(["dry-run", "--json", "--device", "rtx4090", "--no-whole", "--", sys.executable, "-c", code % ending])
        refused = [failure for pool in answer["framework_blocks"] for failure in pool["failures"]]
        lines = [frame["line"] for failure in refused for frame in answer["stacks"][failure["stack"]]["frames"] if frame["file"] == "<string>"]
        said.append(f"{answer['dry_run']['verdict']}, {[failure['request'] for failure in refused]} at lines {lines}")
        if answer["dry_run"]["verdict"] != verdict or len(refused) != 1 or refused[0]["request"] >> 30 != 37 or lines != [3]:
            problems.append(f"exit code {status}, {said[-1]}")
    return problems, "; ".join(said)


def fit(allocator):
    """The largest batch that fits does so in a dry run of its own; the next one does not."""
    where = ["--json", "--device", "h100", "--memory", "1G"]
    program = ["--", sys.executable, os.path.join(HERE, "jax_batch.py")]
    status, answer = gpumem_json(["fit", *where, "--jobs", "1", "--over", "BATCH=1..64", *program, "{BATCH}"], ALLOCATORS["jax"][allocator])
    best = answer["fit"]["best"]
    if status or not best:
        return [f"exit code {status}, {answer['fit']}"], ""
    batch = int(best["values"]["BATCH"])
    verdicts = [gpumem_json(["dry-run", *where, *program, str(value)], ALLOCATORS["jax"][allocator])[1]["dry_run"]["verdict"]
                for value in (batch, batch + 1)]
    return ([] if verdicts == ["fits", "does-not-fit"] and batch < 64 else [f"alone: {verdicts}"],
            f"{batch} fits, the next does not; {answer['fit']['runs']} runs")


def totals(name, allocator):
    return framework_check.totals(build, command(name), allocators[allocator])


def same_bytes(name):
    """Without a pool, the framework's figure is that of the trace."""
    pairs = held(record(name, "async")[1])
    problems = [f"the framework holds {said}, {lived} live" for said, lived in pairs if said != lived]
    if not pairs:
        return ["no marks"], ""
    return problems, f"{len(pairs)} times the bytes that the framework says, at last {pairs[-1][0]}"


def pieces(name):
    """A pool taken in pieces holds at least the bytes in use, and is smaller than one taken at once."""
    pairs = held(record(name, "pieces")[1])
    whole = {lived for _, lived in held(record(name, "default")[1])}
    if len(whole) != 1:
        return [f"not one size from the first to the last mark: {whole}"], ""
    [at_once] = whole
    problems = [f"the framework holds {said}, {lived} live" for said, lived in pairs if not said <= lived < at_once]
    return problems, f"{at_once} bytes at once; in pieces {pairs[-1][1]} for {pairs[-1][0]} in use"


def place(allocator):
    return framework_check.place(record("kept_results", allocator)[0], scenarios, LIBRARIES[framework])


def program_checks(wanted=()):
    return [(f"{name}/program", lambda name=name, what=what: program(name, *what))
            for name, what in programs().items() if not wanted or name in wanted]


def main():
    if sys.argv[2] == "jax-programs":
        return framework_check.run_all(program_checks(sys.argv[3:]))
    names = NAMES[framework] + (COMPILED if framework == "jax" else ())
    checks = [(f"{name}/{allocator}", lambda name=name, allocator=allocator: totals(name, allocator))
              for name in names for allocator in allocators]
    checks += [(f"{name}/same bytes", lambda name=name: same_bytes(name)) for name in NAMES[framework]]
    if framework == "jax":
        checks += [(f"{name}/arrays, {allocator}", lambda name=name, allocator=allocator: arrays(name, allocator))
                   for name in names for allocator in allocators]
    if framework == "jax":
        checks += program_checks() + [("dry run", dry_run), ("late refusal", late_refusal)]
        checks += [("fit/pieces", lambda: fit("pieces"))] if COMPILED else []
    checks += [("arrays/pieces of a pool", lambda: pieces("arrays"))]
    checks += [(f"kept_results/place, {allocator}", lambda allocator=allocator: place(allocator))
               for allocator in allocators]
    return framework_check.run_all(checks)


if __name__ == "__main__":
    sys.exit(main())
