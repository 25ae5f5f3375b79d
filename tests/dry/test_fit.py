#!/usr/bin/env python3
"""gpumem fit on a program in C: test_fit.py BUILD FOLDER"""
import html.parser
import itertools
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types

BUILD, FOLDER = (os.path.abspath(path) for path in sys.argv[1:3])
HERE = os.path.dirname(os.path.abspath(__file__))
GPUMEM = BUILD + "/report/gpumem"
PROGRAM = FOLDER + "/dry_program"
CARD = "name = Mine\ncc = 8.0\nsms = 7\nmemory = {}M\ncontext = 100M\n"
scratch = tempfile.mkdtemp(prefix="gpumem-test-fit.")
MIB = 1 << 20


def needs(formula):
    """A command that needs so many MiB by the shell's arithmetic, and notes each of its runs."""
    return ["sh", "-c", f'echo run >> "$1/runs"; exec "$0" keep $((({formula}) << 20))', PROGRAM, scratch]


def fit(*options, command, code=0, **environment):
    done = subprocess.run([GPUMEM, "fit", *options, "--", *command], capture_output=True, text=True, timeout=300,
                          cwd=scratch, check=False, env=dict(os.environ, XDG_CACHE_HOME=scratch + "/cache", **environment))
    assert done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done


def answer(*options, command, code=0, **environment):
    return json.loads(fit("--json", *options, command=command, code=code, **environment).stdout)["fit"]


def runs():
    """How often a command of needs() has run since the last call."""
    path = scratch + "/runs"
    if not os.path.exists(path):
        return 0
    with open(path, encoding="utf-8") as file:
        count = len(file.readlines())
    os.unlink(path)
    return count


def verdict_of(found, **values):
    return next((point["verdict"] for point in found["points"] if point["values"] == values), None)


def card(name, memory):
    path = f"{scratch}/{name}.device"
    with open(path, "w", encoding="utf-8") as file:
        file.write(CARD.format(memory))
    return path


# ---- serving programs -----------------------------------------------------------------------------------

SERVER = """#!/bin/sh
# Prints what vLLM prints, and takes as much memory as it is told to.
while [ $# -gt 0 ]; do
    case $1 in
    --max-model-len) length=$2; shift ;;
    --max-model-len=*) length=${1#*=} ;;
    esac
    shift
done
echo 'INFO [core.py:1] Initializing a V1 LLM engine (v0.32.0) with config: model=m'
echo 'INFO [model_runner.py:1] Model loading took 0.25 GiB memory and 1.5 seconds'
if [ "$length" -gt 4096 ]; then
    echo "ValueError: To serve at least one request with the model's max seq len ($length), (1.00 GiB KV cache is needed," \
         "which is larger than the available KV cache memory (0.50 GiB). Based on the available memory, the estimated" \
         "maximum model length is 4096. Try increasing gpu_memory_utilization" >&2
    exit 1
fi
compiled=$VLLM_CACHE_ROOT/compiled tokens=4,096
[ -z "$COMPILES" ] || echo 'INFO [monitor.py:1] torch.compile took 1.50 s in total'
[ -e "$compiled" ] && tokens=8,192
mkdir -p "$compiled"
echo 'INFO [gpu_worker.py:1] Available KV cache memory: 0.50 GiB'
echo "INFO [kv_cache_utils.py:1] GPU KV cache size: $tokens tokens, Maximum concurrency for $length tokens per request: 2.00x"
echo 'INFO [gpu_worker.py:2] Free memory on device (0.99/1.00 GiB) on startup. Desired GPU memory utilization is (0.8,' \
     '0.80 GiB). Actual usage is 0.25 GiB for consumed memory (weights + non-torch), 0.05 GiB for peak activation, and' \
     '0.0 GiB for CUDAGraph memory.'
exec "$PROGRAM" keep $((820 << 20))
"""


SGLANG = """#!/bin/sh
# Prints what SGLang prints.
echo "[2026-11-28 19:31:13] server_args={'model_path': 'm', 'mem_fraction_static': 0.8, 'max_running_requests': None}"
echo '[2026-11-28 19:31:39] Load weight begin. avail mem=0.90 GB'
echo '[2026-11-28 19:31:39] Load weight end. elapsed=0.06 s, type=M, avail mem=0.65 GB, mem usage=0.25 GB.'
echo '[2026-11-28 19:31:40] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 4096, K size: 0.25 GB, V size: 0.25 GB'
echo '[2026-11-28 19:31:41] Capture target decode CUDA graph end. bs=[1], elapsed=8.53 s, mem usage=0.12 GB, avail mem=0.03 GB.'
echo '[2026-11-28 19:37:18] max_total_num_tokens=4096, chunked_prefill_size=4096, context_len=2048, available_gpu_mem=0.03 GB'
exec "$PROGRAM" keep $((820 << 20))
"""


def serving(*command, code=0, options=(), **environment):
    found = fit("--serve", "--json", "--device", card("one", 1024), *options, command=command, code=code, PROGRAM=PROGRAM,
                **environment)
    return json.loads(found.stdout)["fit"]["serving"][0]


def server(text):
    path = scratch + "/server"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o700)
    return path


def a_server_of_another_engine_says_it_in_its_own_words():
    path = server(SGLANG)
    found = serving(path, "--context-length", "2048", options=("--leave", "100M"))
    assert found["serves"] and found["tokens"] == 4096 and found["cache_bytes"] == 512 * MIB, found
    assert found["cold"]["engine"]["weights"] == 256 * MIB and found["cold"]["engine"]["name"] == "SGLang", found
    assert found["concurrency"] == 2 and found["length"] == 2048 and found["max_model_len"] == 4096, found
    # The share is of the 921.6 MiB that were free before the weights: 920 MiB were taken, 182.7 above 0.8 of it.
    assert found["utilization"] == 0.804, found
    text = fit("--serve", "--leave", "100M", "--device", card("one", 1024), command=[path], PROGRAM=PROGRAM).stdout
    assert "Largest --context-length: 4,096" in text and "--mem-fraction-static 0.804 leaves" in text and "activations" not in text, text


def a_server_says_how_large_its_cache_is():
    path = server(SERVER)
    os.makedirs(scratch + "/model", exist_ok=True)
    with open(scratch + "/model/config.json", "w", encoding="utf-8") as file:
        file.write('{"max_position_embeddings": 3000}')
    found = serving(path, "serve", "model", "--max-model-len", "2048", options=("--leave", "100M"))
    assert found["serves"] and found["tokens"] == 4096 and found["cache_bytes"] == 512 * MIB, found
    assert found["cold"]["engine"]["weights"] == 256 * MIB and found["cold"]["engine"]["version"] == "0.32.0", found
    assert found["concurrency"] == 2 and found["length"] == 2048 and found["warm"] is None, found
    assert found["max_model_len"] == 3000, found  # the model's own limit
    # 920 MiB with the context, 100.8 above the share asked for; so 1024 - 100 - 100.8 MiB are left to ask for.
    assert found["cold"]["seen"]["peak"] == 920 * MIB and found["utilization"] == 0.803, found
    assert found["tokens_then"] == 4096 + int(0.003 * 1024 * 8), found
    # A start that has compiled before.
    found = serving(path, "serve", "elsewhere", "--max-model-len=2048", COMPILES="1")
    assert found["cold"]["engine"]["tokens"] == 4096 and found["warm"]["engine"]["tokens"] == 8192, found
    assert found["tokens"] == 8192 == found["max_model_len"] and found["cold"]["engine"]["compiled"] == 1.5, found
    # What does not hold the length that was asked for is started with the one that the engine names.
    found = serving(path, "serve", "model", "--max-model-len", "9000", code=1)
    assert not found["serves"] and found["shortened_to"] == 4096 and found["tokens"] == 4096, found
    text = fit("--serve", "--device", card("one", 1024), command=[path, "serve", "--max-model-len", "9000"], code=1,
               PROGRAM=PROGRAM).stdout
    assert "with --max-model-len 4096" in text and "KV cache on a Mine: 512 MiB, 4,096 tokens" in text, text
    # Of a program whose options are not known, the refusal is the answer.
    found = serving(path, "--max-model-len", "9000", code=1)
    assert not found["serves"] and found["why_not"].startswith("To serve at least one request"), found
    found = serving("true", code=5)
    assert not found["serves"] and found["why_not"], found
    done = fit("--serve", "--over", "B=1..2", command=["true", "{B}"], code=2)
    assert "--serve goes without" in done.stderr, done.stderr


# ---- the search -----------------------------------------------------------------------------------------

def the_largest_is_found_and_the_next_does_not_fit():
    for formula, memory, best, most in (
            ("50 + {B} * 7", 1000, 121, 4), ("850 + {B} / 8", 1000, 407, 12), ("{B} * {B} / 4", 3000, 107, 8),
            ("1 + {B} * 899", 1000, 1, 4), ("{B} + ({B} / 64) * 64", 600, 255, 12)):
        found = answer("--device", card("one", memory), "--over", "B=1..512", command=needs(formula))
        assert runs() == found["runs"] <= most, (formula, found["runs"])
        assert found["best"]["values"] == {"B": str(best)} and found["best"]["verdict"] == "fits", (formula, found["best"])
        assert verdict_of(found, B=str(best + 1)) == "does-not-fit", (formula, found["points"])
        assert found["searches"][0]["is_monotone"], formula


def the_first_line_says_it():
    done = fit("--device", card("one", 1000), "--over", "B=1..512", command=needs("50 + {B} * 7"))
    with open(HERE + "/program.c", encoding="utf-8") as file:
        line = next(i for i, text in enumerate(file, 1) if "cudaMalloc(&memory, piece)" in text)
    first = done.stdout.splitlines()[0]
    assert first.startswith("Largest B that fits a Mine: 121 (997 of 1000 MiB; 122 is short by at least "), first
    assert first.endswith(f" at program.c:{line})."), first
    assert "Each one takes 7.00 MiB beside 150 MiB that are fixed, without PyTorch's cache (within 0 B " in done.stdout, done.stdout


def an_estimate_that_is_off_is_not_believed():
    """Steps, and a need that is the same for long: the answer is right, with more runs."""
    for formula, best in (("{B} < 300 ? 100 : 5000", 299), ("{B} < 7 ? 10 : 890 + {B} / 100", 512), ("100 * ({B} / 50)", 499)):
        found = answer("--device", card("one", 1000), "--over", "B=1..512", command=needs(formula))
        runs()
        assert found["best"]["values"] == {"B": str(best)}, (formula, found["best"]["values"], found["runs"])


def ceiling(x, width):
    return -(-x // width) * width


# (what, needs, the most runs that a search may take): one run at a time, and up to four.
NEEDS = (
    ("lines", [lambda x, b=b: 20 + b * x for b in (1.95, 2, 3.7, 7, 20, 41, 300)], 4),
    ("parabolas", [lambda x, b=b, c=c: 20 + b * x + c * x * x for b in (0, 1, 7) for c in (0.004, 0.03, 0.3)], 7),
    ("roots", [lambda x, b=b: 40 + b * x ** 0.5 for b in (45, 60, 90, 200)], 7),
    ("x log x", [lambda x, b=b: 40 + b * x * math.log(x + 1) for b in (0.4, 0.9, 2, 5)], 9),
    ("steps of powers of two", [lambda x, w=w, b=b: 50 + b * ceiling(x, w) for w in (2, 4, 8, 16, 32, 64, 128)
                                for b in (1.9, 2.7, 5)], 8),
    ("parabolas in steps of 8", [lambda x, b=b: 50 + b * ceiling(x, 8) + 0.01 * ceiling(x, 8) ** 2 for b in (1, 3)], 12),
    ("steps of any width", [lambda x, w=w, h=h: 50 + h * -(-x // w) for w in range(2, 62, 6) for h in range(3, 93, 9)], 17),
    ("more than a run tells", [lambda x, b=b, c=c: 20 + b * x + c * x * x for b, c in ((700, 0), (400, 0), (3, 1), (9, 4))], 8),
    ("one step anywhere", [lambda x, k=k: 100 if x < k else 3000 for k in range(2, 512, 17)], 17))


TOLD_MOST = 160000  # MiB that a run without limit can have


def search_of(need, jobs):
    """(largest that is found, runs of (value, memory)): the search alone, of needs in MiB of 1000."""
    from search import Search

    made = []

    def measure(wanted, take):
        for number, (value, memory) in enumerate(wanted):
            made.append((int(value), memory))
            size = need(int(value))
            is_refused = size > (1000 if memory is None else TOLD_MOST)
            take(number, types.SimpleNamespace(
                has_failed=False, most=size, without_cache=size, dry={"failed_at": "here" if is_refused else None},
                verdict="does-not-fit" if is_refused else "fits"))

    search = Search([str(value) for value in range(1, 513)], measure, 1000, 64, lambda: jobs)
    search.run()
    return int(search.best), made


def needs_of_many_forms_take_few_runs():
    sys.path.insert(0, HERE + "/../../sim/dry/fit")
    for what, forms, most in NEEDS:
        for number, jobs in itertools.product(range(len(forms)), (1, 4)):
            found, made = search_of(forms[number], jobs)
            assert found == max(value for value in range(1, 513) if forms[number](value) <= 1000), (what, number, found)
            assert found == 512 or {(found, None), (found + 1, None)} <= set(made), (what, number, made)
            assert len(made) <= most, (what, number, jobs, made)


def training(value, steps=3, wide=40):
    """The requests of a program that trains: weights, then activations of each layer, gradients, and an optimizer's step,
    whose temporary blocks are larger than the activations of a small value. `wide`: from there on a sum takes scratch."""
    from forecast import Recording

    recording, live = Recording([], [], [], []), {}

    def make(key, size):
        live[key] = len(recording.sizes)
        recording.order.append(len(recording.sizes))
        recording.keys.append(hash(key) & 0xffffffff)
        recording.sizes.append(size)
        recording.streams.append(0)

    def drop(key):
        recording.order.append(-1 - live.pop(key))

    for layer in range(8):
        make(("weight", layer), 8 * MIB)
    for step in range(steps):
        for layer in range(8):
            make(("activation", layer), value * (2 + layer) * 4096)
            if value > wide:
                make("scratch", value * 2048)
                drop("scratch")
        for layer in reversed(range(8)):
            make(("gradient", layer), 8 * MIB)
            drop(("activation", layer))
        for layer in range(8 if step == 0 else 0):
            make(("state", layer), 16 * MIB)
        for layer in range(8):
            make(("temporary", layer), 8 * MIB)
        for kind in ("temporary", "gradient"):
            for layer in range(8):
                drop((kind, layer))
    return recording


def what_was_not_run_is_foretold():
    """By the requests of two other values, of which one made a step more: the last that fits, as the replica says of its own
    requests."""
    sys.path.insert(0, HERE + "/../../sim/dry/fit")
    from forecast import Forecast, replay

    for low, high, capacity in ((1, 4096, 500), (1, 2048, 560), (300, 3000, 700)):
        forecast = Forecast(GPUMEM)
        assert forecast.last([low], 1 << 40) is None
        forecast.note(low, [training(low, 4)], 100 * MIB)
        forecast.note(high, [training(high)], 100 * MIB)
        values = list(range(low, high + 1, 16))
        at = forecast.last(values, capacity * MIB)
        fits = [replay(GPUMEM, one.sizes, one, (capacity - 100) * MIB)[0] for one in map(training, values[at:at + 2])]
        assert 0 <= at < len(values) - 1 and fits == [True, False], (low, high, at, fits)
        assert forecast.last(values, 100 * MIB) == -1 and forecast.last(values, 1 << 40) == len(values) - 1

    # With workspaces of cuDNN's a second recording of each: here that of a third more.
    forecast = Forecast(GPUMEM)
    for value in (300, 3000):
        forecast.note(value, [training(value), training(value * 4 // 3)], 100 * MIB)
    values, ends = list(range(300, 3001, 3)), []
    for capacity in (550 * MIB, 700 * MIB):
        ends.append(forecast.last(values, capacity))
        for value, is_wanted in zip(values[ends[-1]:ends[-1] + 2], (True, False)):
            memory, both = capacity - 100 * MIB, (training(value), training(value * 4 // 3))
            told = [replay(GPUMEM, one.sizes, one, memory) for one in both]
            wide = told[1][1] - told[0][1]
            does = told[0][0] and told[1][0] and (wide <= capacity // 10 or told[1][1] + wide <= memory)
            assert does == is_wanted, (value, told, capacity)
    assert 0 <= ends[0] < ends[1] < len(values) - 1, ends
    forecast.note(1000, [training(1000)], 100 * MIB)
    assert forecast.last(values, 1 << 40) is None


def each_run_compiles_anew():
    folder = scratch + "/compiled before"
    os.makedirs(folder + "/code")
    found = answer("--device", card("one", 1000), "--over", "NEED=300,600", PYTHONPATH=HERE + "/torch_replica",
                   TORCHINDUCTOR_CACHE_DIR=folder, command=[sys.executable, HERE + "/torch_replica/compiles.py", "{NEED}"])
    assert [point["need"] // MIB for point in found["points"]] == [400, 700], found
    assert os.listdir(folder) == ["code"]


def all_fit_and_nothing_fits():
    found = answer("--device", card("one", 1000), "--over", "B=1..512", command=needs("{B}"))
    assert found["best"]["values"] == {"B": "512"} and found["searches"][0]["next"] is None, found
    done = fit("--device", card("one", 1000), "--over", "B=100..512", command=needs("{B} * 10"), code=1)
    assert done.stdout.startswith("No B fits a Mine: 100 is short by at least "), done.stdout
    assert answer("--device", card("one", 1000), "--over", "B=100..512", command=needs("{B} * 10"), code=1)["best"] is None
    runs()


def one_program_is_told_what_it_needs():
    done = fit("--device", card("one", 1000), command=needs("2000"), code=1)
    assert done.stdout.startswith("Does not fit a Mine: needs 2.05 GiB of 1000 MiB, refused at program.c:"), done.stdout
    done = fit("--device", card("one", 1000), command=needs("200"))
    assert done.stdout.startswith("Fits a Mine: 300 of 1000 MiB."), done.stdout
    runs()


def a_need_that_falls_is_noticed():
    """From 45 to 52 it is higher than at the end."""
    command = needs("{B} > 44 && {B} < 53 ? 3000 : 100 + {B} * {B} / 4")
    found = answer("--device", card("one", 1000), "--over", "B=1..64", command=command)
    assert found["best"]["values"] == {"B": "56"} and not found["searches"][0]["is_monotone"], found["best"]
    found = answer("--device", card("one", 1000), "--over", "B=1..100", command=needs("2000 / {B}"))
    assert found["best"]["values"] == {"B": "100"} and not found["searches"][0]["is_monotone"], found["best"]
    runs()


def values_can_be_steps_powers_and_lists():
    for spec, best, beyond in (("8..512:8", "120", "128"), ("1..512:x2", "64", "128"), ("200,10,121,50", "121", "200")):
        found = answer("--device", card("one", 1000), "--over", "B=" + spec, command=needs("50 + {B} * 7"))
        assert found["best"]["values"] == {"B": best} and found["searches"][0]["next"] == beyond, (spec, found["searches"])
    found = answer("--device", card("one", 1000), "--over", "HOW=keep,device,less",
                   command=[PROGRAM, "{HOW}", str(2000 * MIB)])
    assert [point["verdict"] for point in found["points"]] == ["does-not-fit", "does-not-fit", "fits"], found["points"]
    runs()


def a_value_can_go_into_the_environment():
    command = ["sh", "-c", f'exec "{PROGRAM}" keep $(((50 + B * 7) << 20))']
    found = answer("--device", card("one", 1000), "--over-env", "B=1..512", command=command)
    assert found["best"]["values"] == {"B": "121"}, found["best"]


def a_grid_has_its_best_in_each_row():
    found = answer("--device", card("one", 1000), "--over", "B=1..64", "--over", "LENGTH=1,2,4",
                   command=needs("50 + {B} * 20 * {LENGTH}"))
    best = {search["fixed"]["LENGTH"]: search["best"] for search in found["searches"]}
    assert best == {"1": "42", "2": "21", "4": "10"}, best
    done = fit("--device", card("one", 1000), "--over", "B=1..64", "--over", "LENGTH=1,2,4",
               command=needs("50 + {B} * 20 * {LENGTH}"))
    assert done.stdout.startswith("Largest B that fits a Mine: 42 with LENGTH=1; 21 with LENGTH=2; 10 with LENGTH=4."), \
        done.stdout
    # What is no better than another row is not on the front.
    done = fit("--device", card("one", 1000), "--over", "B=1..64", "--over", "LENGTH=1,2,4",
               command=needs("50 + {B} * 20 + 0 * {LENGTH}"))
    assert done.stdout.startswith("Largest B that fits a Mine: 42 with LENGTH=4."), done.stdout
    runs()


def a_program_that_fails_cannot_be_told():
    done = fit("--device", card("one", 1000), "--over", "B=1..8", command=["sh", "-c", "exit {B}"], code=5)
    assert done.stdout.startswith("Cannot be told whether anything fits a Mine: the command ended with exit code "), done.stdout
    # Some values are none that the program takes.
    command = ["sh", "-c", f'test $(({{B}} % 4)) = 0 || exit 7; exec "{PROGRAM}" keep $(((50 + {{B}} * 7) << 20))']
    found = answer("--device", card("one", 1000), "--over", "B=1..512", command=command)
    assert found["best"]["values"] == {"B": "120"}, found["best"]
    assert found["searches"][0]["failed"] and verdict_of(found, B="124") == "does-not-fit", found["searches"]


# ---- cards ------------------------------------------------------------------------------------------------

def the_cheapest_card_is_found():
    small, middle, large = card("small", 500), card("middle", 1000), card("large", 2000)
    with open(scratch + "/prices", "w", encoding="utf-8") as file:
        file.write("# per hour\nsmall 1\nmiddle, 9.5\nlarge 3\n")
    devices = f"{small},{middle},{large}"
    done = fit("--devices", devices, "--prices", scratch + "/prices", command=needs("700"))
    assert done.stdout.startswith("Cheapest card that fits: a Mine at 3 (800 MiB of 1.95 GiB, 1.17 GiB to spare)."), done.stdout
    done = fit("--devices", devices, command=needs("700"))
    assert done.stdout.startswith("Smallest card that fits: a Mine (800 of 1000 MiB"), done.stdout
    found = answer("--devices", devices, command=needs("700"))
    assert {point["device"]: point["verdict"] for point in found["points"]} == \
        {"small": "does-not-fit", "middle": "fits", "large": "fits"}, found
    done = fit("--devices", devices, command=needs("7000"), code=1)
    assert done.stdout.startswith("Fits none of 3 cards."), done.stdout
    runs()


def slices_are_cards():
    found = answer("--devices", "mig", command=[PROGRAM, "keep", str(9000 * MIB)])
    verdicts = {point["device"]: point["verdict"] for point in found["points"]}
    assert len(verdicts) == 25, verdicts
    assert (verdicts["a100-40-1g.5gb"], verdicts["h100-1g.10gb"], verdicts["h200-1g.18gb"]) == \
        ("does-not-fit", "fits", "fits"), verdicts
    found = answer("--device", "h100-3g.40gb", command=[PROGRAM, "device", "4096"])
    assert found["best"]["capacity"] < 40 << 30 and found["best"]["device"] == "h100-3g.40gb", found["best"]


def several_of_a_kind_are_rows():
    found = answer("--device", card("one", 1000), "--cards", "1,2,4", command=[PROGRAM, "device", "4096"])
    assert [point["count"] for point in found["points"]] == [1, 2, 4], found
    found = answer("--device", card("one", 1000), command=needs("2400 / {N}"))
    assert [(point["count"], point["verdict"]) for point in found["points"]] == \
        [(1, "does-not-fit"), (2, "does-not-fit"), (4, "fits"), (8, "fits")], found
    runs()


# ---- remedies ---------------------------------------------------------------------------------------------

def remedied(memory, mib, *options, code=0):
    """(document, remedies by name) of the program that stands for one of PyTorch."""
    done = fit("--json", "--device", card("one", memory), *options, "--remedies", code=code,
               command=[sys.executable, HERE + "/remedied.py", mib])
    document = json.loads(done.stdout)
    return document["fit"], {remedy["name"]: remedy for remedy in document["remedies"]}


def each_remedy_says_what_it_saves():
    found, remedies = remedied(1000, "1000")
    saves = {name: remedy["saves"] // MIB for name, remedy in remedies.items() if remedy["verdict"] not in (None, "failed")}
    expected = {"checkpoint": 210, "checkpoint 6 of 12": 150, "autocast bf16": 200, "autocast fp16": 200, "save_on_cpu": 290,
                "torch.compile": 0, "foreach=False": 0, "fused=True": 0, "loss in pieces": 50, "FSDP2 over 2": 50,
                "FSDP2 over 4": 75, "FSDP2 over 8": 88, "save_on_cpu + autocast bf16": 490,
                "save_on_cpu + autocast bf16 + loss in pieces": 540}
    assert saves == expected, saves
    assert found["base"]["most"] == 1100 * MIB and remedies["checkpoint"]["verdict"] == "fits", found
    assert remedies["checkpoint"]["applied_to"] == [f"layers.{i}" for i in range(12)]
    assert "for block in net.layers[:6]: " in remedies["checkpoint 6 of 12"]["write"][1], remedies["checkpoint 6 of 12"]
    assert remedies["fused=True"]["write"] == ["torch.optim.AdamW(net.parameters(), lr=0.1, fused=True)"]
    assert all(len(remedy["write"]) <= 3 for remedy in remedies.values() if len(remedy["parts"]) == 1)
    # Why some do nothing, and what failed.
    why = {name: remedy["why_not"] for name, remedy in remedies.items()}
    assert why["fused=True"] == "the peak is not in the optimizer's step" and why["checkpoint"] is None, why
    assert why["channels_last"] == "there is no convolution" and why["accumulation"] == "--over names no batch", why
    assert remedies["in backward"]["verdict"] == "failed" and "no hook for this parameter" in why["in backward"], why
    assert remedies["8-bit state"]["saves"] == 60 * MIB and "not installed" in why["8-bit state"], why


def the_gentlest_remedy_that_fits_is_recommended():
    for memory, chosen, code in ((1100, None, 0), (1000, "checkpoint 6 of 12", 0), (800, "save_on_cpu + autocast bf16", 0),
                                 (400, None, 1)):
        found, remedies = remedied(memory, "1000", code=code)
        assert found["fits_with"] == chosen, (memory, found)
        assert not chosen or remedies[chosen]["verdict"] == "fits", remedies[chosen]
    done = fit("--device", card("one", 1070), "--remedies", command=[sys.executable, HERE + "/remedied.py", "1000"])
    assert done.stdout.startswith("Does not fit a Mine as it is: needs 1.07 of 1.04 GiB. Fits with loss in pieces: "), done.stdout


def a_smaller_batch_is_accumulated():
    found, remedies = remedied(1000, "{BATCH}", "--over", "BATCH=10,1000")
    assert found["values"] == {"BATCH": "1000"} and remedies["accumulation over 4"]["saves"] == 750 * MIB, remedies.keys()


# ---- runs -------------------------------------------------------------------------------------------------

def what_was_answered_is_not_run_again():
    script = scratch + "/script.sh"
    with open(script, "w", encoding="utf-8") as file:
        file.write(f'echo run >> "{scratch}/runs"\nexec "{PROGRAM}" keep $((($1 * 7) << 20))\n')
    command = ["sh", script, "{B}"]
    first = answer("--device", card("one", 1000), "--over", "B=1..100", command=command)
    assert runs() == first["runs"] > 0 and first["kept"] == 0, first
    again = answer("--device", card("one", 1000), "--over", "B=1..100", command=command)
    assert runs() == again["runs"] == 0 and again["best"]["values"] == first["best"]["values"], again
    for change in ({"environment": {"MINE": "1"}}, {"device": 900}, {"options": ["--fresh"]}, {"script": "\n"}):
        if "script" in change:
            with open(script, "a", encoding="utf-8") as file:
                file.write(change["script"])
        answer("--device", card("one", change.get("device", 1000)), "--over", "B=1..100", *change.get("options", []),
               command=command, **change.get("environment", {}))
        assert runs() > 0, change


def interrupted_it_says_what_it_knows_and_leaves_nothing():
    temporary = scratch + "/temporary"
    # The second end of the range never ends by itself.
    command = ["sh", "-c", f'test {{B}} = 1 || sleep 1000; exec "{PROGRAM}" keep 1000000', "named-sleeper"]
    for name, code in ((signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)):
        shutil.rmtree(temporary, ignore_errors=True)
        os.mkdir(temporary)
        child = subprocess.Popen([GPUMEM, "fit", "--fresh", "--json", "--device", card("one", 1000), "--over", "B=1..9",
                                  "--", *command], stdout=subprocess.PIPE, text=True, cwd=scratch, start_new_session=True,
                                 env=dict(os.environ, XDG_CACHE_HOME=scratch + "/cache", TMPDIR=temporary))
        wait_until(lambda: any(text.startswith("sleep 1000") for text in commands_with(temporary)))
        os.kill(child.pid, name)
        said, _ = child.communicate(timeout=60)
        assert child.returncode == code, (name, child.returncode, said)
        if code == 130:
            found = json.loads(said)["fit"]
            assert found["is_interrupted"] and found["runs"] == 1, found
            assert verdict_of(found, B="1") == "fits" and len(found["points"]) == 1, found
        wait_until(lambda: not commands_with(temporary) and not os.listdir(temporary))


def interrupted_before_the_first_run_it_ends_alike():
    """While it reads the prices, which are a pipe here: the exit code is that of a search which was interrupted."""
    prices = scratch + "/prices-of-nobody"
    os.mkfifo(prices)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        child = subprocess.Popen([GPUMEM, "fit", "--prices", prices, "--over", "B=1..4", "--", PROGRAM, "keep", "{B}"],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        writer = writer_of(prices)
        child.send_signal(number)
        said, _ = child.communicate(timeout=60)
        os.close(writer)
        assert (child.returncode, said) == (130, ""), (number, child.returncode, said)


def writer_of(pipe):
    """Our end of a pipe, once a process has opened it to read."""
    found = []

    def is_open():
        try:
            found.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True

    wait_until(is_open)
    return found[0]


def contents(folder):
    """{path: (size, time of change, bytes)} of a folder's files."""
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                found[path] = (os.path.getmtime(path), file.read())
    return found


def ended_at_any_moment_it_leaves_nothing():
    """From the start of Python to the end of the last run: nothing runs on, nothing lies about, no file is another one."""
    home, temporary = scratch + "/user", scratch + "/temporary"
    shutil.rmtree(temporary, ignore_errors=True)
    os.mkdir(temporary)
    os.mkdir(home)
    for name in ("train.py", "data.bin"):
        with open(f"{home}/{name}", "w", encoding="utf-8") as file:
            file.write("import sys  # never run\n")
    before, ends = contents(home), {}
    searched = ["--over", "B=1..64", "--", PROGRAM, "keep", "{B}0000000", "train.py", "data.bin"]
    remedied = ["--remedies", "--", sys.executable, HERE + "/remedied.py", "900", "train.py"]
    for arguments, moments in ((searched, 12), (remedied, 12)):
        command = [GPUMEM, "fit", "--fresh", "--json", "--device", card("one", 300), *arguments]
        environment = dict(os.environ, XDG_CACHE_HOME=scratch + "/cache", TMPDIR=temporary)
        begin = time.monotonic()
        done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False)
        whole = time.monotonic() - begin
        assert done.returncode in (0, 1), done
        for number in range(moments):
            name = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)[number % 4]
            child = subprocess.Popen(command, cwd=home, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                     text=True, start_new_session=True)
            time.sleep(whole * number / moments)
            child.send_signal(name)
            said, _ = child.communicate(timeout=60)
            # Before Python listens the signal ends it; 0 and 1: it was over.
            assert child.returncode in (130, -name, 0, 1), (name, number, child.returncode, said)
            if child.returncode == 130 and said:
                assert json.loads(said)["fit"]["is_interrupted"], said
            ends[child.returncode] = ends.get(child.returncode, 0) + 1
            wait_until(lambda: not commands_with(temporary) and not os.listdir(temporary),
                       lambda at=(name, number): (at, commands_with(temporary), os.listdir(temporary)))
            assert contents(home) == before, (name, number)
    assert ends.get(130, 0) >= 6, ends


def commands_with(temporary):
    """Command lines of the processes that have this folder as TMPDIR."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                if b"TMPDIR=" + temporary.encode() not in file.read().split(b"\0"):
                    continue
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                found.append(file.read().decode().replace("\0", " ").strip())
        except OSError:
            pass
    return found


def wait_until(holds, why=lambda: "waited in vain"):
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, why()
        time.sleep(0.05)


def a_budget_is_for_check():
    fit("--device", card("one", 1000), "--over", "B=1..100", "--budget", scratch + "/budget",
        command=needs("50 + {B} * 10"))
    with open(scratch + "/budget", encoding="utf-8") as file:
        assert file.read() == f"--max-peak {900 * MIB}\n"
    runs()


class Page(html.parser.HTMLParser):
    """Counts what a page has, and wants each element to be closed."""

    def __init__(self, path):
        super().__init__()
        self.open, self.counts = [], {}
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())
        assert self.open == ["html"] or not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


def the_page_shows_the_curve_and_the_remedies():
    path = scratch + "/page.html"
    found = answer("--device", card("one", 1000), "--over", "B=1..512", "--html", path, command=needs("50 + {B} * 7"))
    counts = Page(path).counts
    # The point that is far beyond the device stands in the table alone.
    assert counts["svg"] == 1 and counts["circle"] == len(found["points"]) - 1 and counts["tr"] == len(found["points"]) + 1, counts
    answer("--device", card("one", 1000), "--over", "B=<b>,&lt;,\x1b[31m", "--html", path, command=["true", "{B}"])
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert "b" not in Page(path).counts and "&lt;b&gt;" in text and "&amp;lt;" in text and "\x1b" not in text, text
    fit("--device", card("one", 1000), "--remedies", "--html", path, command=[sys.executable, HERE + "/remedied.py", "1000"])
    counts = Page(path).counts
    assert counts["svg"] == 1 and counts["rect"] > 10 and counts["pre"] > 5, counts
    runs()


def what_is_wrong_is_said_in_one_line():
    for options, command in ((["--over", "B=1..9"], ["true"]), (["--over", "B=9..1"], ["true", "{B}"]),
                             (["--over", "B"], ["true", "{B}"]), (["--over", "B=1", "--over", "B=2"], ["true", "{B}"]),
                             (["--device", "gtx1"], ["true"]), (["--prices", "/nonexistent"], ["true"]),
                             (["--jobs", "none"], ["true"]), (["--max-steps", "-1"], ["true"]), (["--frobnicate"], ["true"]),
                             (["--memory", "12 apples"], ["true"]), (["--cards", "1,x"], ["true"]), ([], [])):
        done = fit(*options, command=command, code=2)
        assert len(done.stderr.strip().splitlines()) == 1 and done.stderr.startswith("gpumem: "), (options, done.stderr)


try:
    for test in [t for t in (a_server_says_how_large_its_cache_is, a_server_of_another_engine_says_it_in_its_own_words,
                 the_largest_is_found_and_the_next_does_not_fit,
                 the_first_line_says_it, an_estimate_that_is_off_is_not_believed, needs_of_many_forms_take_few_runs,
                 what_was_not_run_is_foretold, each_run_compiles_anew, all_fit_and_nothing_fits, one_program_is_told_what_it_needs,
                 a_need_that_falls_is_noticed,
                 values_can_be_steps_powers_and_lists, a_value_can_go_into_the_environment,
                 a_grid_has_its_best_in_each_row, a_program_that_fails_cannot_be_told, the_cheapest_card_is_found,
                 slices_are_cards, several_of_a_kind_are_rows, each_remedy_says_what_it_saves,
                 the_gentlest_remedy_that_fits_is_recommended, a_smaller_batch_is_accumulated, what_was_answered_is_not_run_again,
                 interrupted_before_the_first_run_it_ends_alike,
                 interrupted_it_says_what_it_knows_and_leaves_nothing, ended_at_any_moment_it_leaves_nothing,
                 a_budget_is_for_check, the_page_shows_the_curve_and_the_remedies,
                 what_is_wrong_is_said_in_one_line) if not sys.argv[3:] or t.__name__ in sys.argv[3:]]:
        test()
        print("ok  ", test.__name__.replace("_", " "))
finally:
    shutil.rmtree(scratch)
