"""gpumem fit --serve: how large the KV cache of a serving program is on a card, by dry runs of the program itself.

The engine's own lines are read and set beside what the dry run saw: vLLM's, by patterns that allow for the wordings of its
versions since 0.6, and SGLang's.
"""
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

from answer import clean, say, size, table
from values import Wrong

GIB = 1 << 30


class Engine:
    """One whose lines are known: patterns by what they tell. Numbers of several groups are summed. `share_of`: which of them
    its share is of; None: of the device's memory."""

    def __init__(self, name, length_option, share_option, share_of, **lines):
        self.name, self.length_option, self.share_option, self.share_of = name, length_option, share_option, share_of
        self.lines = {told: re.compile(pattern) for told, pattern in lines.items()}

    def told(self, text):
        """What the engine said, by the names of `lines`; bytes are bytes. Of several lines the last one counts."""
        found = {}
        for name, pattern in self.lines.items():
            hits = [[one for one in hit.groups() if one] for hit in pattern.finditer(text)]
            if hits and name == "version":
                found[name] = hits[-1][0]
            elif hits:
                number = sum(float(one.replace(",", "")) for one in hits[-1])
                found[name] = round(number * GIB) if name in BYTES else number if "." in hits[-1][0] else int(number)
        if found.get("length") and "tokens" in found:
            found.setdefault("concurrency", round(found["tokens"] / found["length"], 2))
        return found


VLLM = Engine(
    "vLLM", "--max-model-len", "--gpu-memory-utilization", None,
    version=r"(?:v|version )(\d+\.\d+[\w.+]*)\) with config|vLLM (?:API server )?version (\d+\.\d+[\w.+]*)",
    weights=r"[Mm]odel (?:loading|weights) (?:took|take) ([\d.]+) ?(?:GiB|GB)",
    cache=r"Available KV cache memory: (-?[\d.]+) GiB|the rest of the memory reserved for KV Cache is (-?[\d.]+) ?GiB",
    tokens=r"KV cache size: ([\d,]+) tokens",
    length=r"Maximum concurrency for ([\d,]+) tokens per request",
    concurrency=r"Maximum concurrency for [\d,]+ tokens per request: ([\d.]+)x",
    requested=r"Desired GPU memory utilization is \([\d.]+, ([\d.]+) GiB\)",
    utilization=r"Desired GPU memory utilization is \(([\d.]+), [\d.]+ GiB\)",
    total=r"Free memory on device \S*?\([\d.]+/([\d.]+) GiB\) on startup",
    activations=r"([\d.]+) GiB for peak activation",
    graphs=r"Graph capturing finished in [\d.]+ secs?, took (-?[\d.]+) GiB",
    graphs_estimated=r"CUDA graph pool memory: [\d.]+ GiB \(actual\), ([\d.]+) GiB \(estimated\)",
    compiled=r"torch\.compile (?:took|takes) ([\d.]+) s in total",
    too_long=r"estimated maximum model length is (\d+)")
# Its GB are 2^30 bytes, and its total what is free before the weights are loaded.
SGLANG = Engine(
    "SGLang", "--context-length", "--mem-fraction-static", "total",
    weights=r"Load weight end\.[^\n]*mem usage=([\d.]+) GB",
    cache=r"KV Cache is allocated\.[^\n]*?(?:K size: ([\d.]+) GB, V size: ([\d.]+) GB|KV size: ([\d.]+) GB)",
    tokens=r"max_total_num_tokens=(\d+)",
    length=r"max_total_num_tokens=[^\n]*context_len=(\d+)",
    utilization=r"mem_fraction_static['\"]?[=:] ?([\d.]+)",
    total=r"Load weight begin\. avail mem=([\d.]+) GB",
    graphs=r"Capture [^\n]*graph end\.[^\n]*mem usage=(-?[\d.]+) GB")
REFUSED = re.compile(r"(?:To serve at least one request with|No available memory for the cache blocks|"
                     r"is less than desired GPU memory utilization|OutOfMemoryError|Not enough memory\. Please)[^\n]*")
BYTES = ("weights", "cache", "requested", "total", "activations", "graphs", "graphs_estimated")
STAGES = {"parameter": "weights", "kv-cache": "cache", "cuda-graph": "graphs"}


def engine_of(text):
    """(the engine whose lines these are, what it told)"""
    return max(((engine, engine.told(text)) for engine in (VLLM, SGLANG)), key=lambda one: len(one[1]))


def document_of(text):
    """The JSON after what the command printed."""
    for begin in re.finditer(r"^\{", text, re.M):
        try:
            document = json.loads(text[begin.start():])
            if "dry_run" in document:
                return document
        except ValueError:
            pass
    return None


def stages_of(document):
    """The most of each stage that lived at a moment that the report has, on the fullest device of one process."""
    most = {}
    for trace in document.get("traces", [document]):
        for pool in trace.get("framework_blocks", []):
            for moment in pool.values():
                for one in moment.get("categories", []) if isinstance(moment, dict) else []:
                    most[one["category"]] = max(most.get(one["category"], 0), one["bytes"])
    return most


def with_length(command, length):
    """The command with --max-model-len; None: it has no options that are known."""
    if "serve" not in command and not any("api_server" in part for part in command):
        return None
    kept, skips = [], False
    for part in command:
        if not skips and not part.startswith("--max-model-len=") and not part.startswith("--max_model_len="):
            skips = part in ("--max-model-len", "--max_model_len")
            kept += [] if skips else [part]
        else:
            skips = False
    return kept + ["--max-model-len", str(length)]


def own_limit(command):
    """The longest text that the model was made for, by its config.json; None: not known."""
    for part in command:
        try:
            with open(os.path.join(part.partition("=")[2] or part, "config.json"), encoding="utf-8") as file:
                facts = json.load(file)
            return int(facts.get("text_config", facts)["max_position_embeddings"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
    return None


class Start:
    """One start of the engine on a simulated card. In new `caches` it is a cold one, and the next in them is warm."""

    def __init__(self, serving, card, command, caches):
        arguments = ["dry-run", "--json", "--once", "--no-keep", "--no-whole", "--until-ready", "--device", card.path,
                     "--devices", str(card.count)]
        if serving.options.memory:
            arguments += ["--memory", str(serving.options.memory)]
        begin = time.monotonic()
        with tempfile.TemporaryFile(dir=caches) as errors:
            done = subprocess.run([serving.gpumem, *arguments, "--", *command], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=errors, check=False,
                                  env=dict(os.environ, GPUMEM_DRY_CACHES=caches))
            errors.seek(0)
            text = done.stdout.decode("utf-8", "replace")
            said = errors.read().decode("utf-8", "replace")
        self.seconds = time.monotonic() - begin
        self.of, self.engine = engine_of(text + said)
        document = document_of(text) or {}
        self.dry = document.get("dry_run")
        stages = stages_of(document)
        self.stages = {name: stages.get(category, 0) for category, name in STAGES.items()}
        self.refusal = REFUSED.search(text + said)
        self.last = next((line for line in reversed(said.splitlines()) if line.strip()), "")
        self.is_served = bool(self.dry and self.dry["verdict"] == "fits" and {"tokens", "cache"} <= set(self.engine))

    def json(self):
        return {"engine": dict(self.engine, name=self.of.name), "seen": dict(self.stages, peak=self.dry and self.dry["peak"]),
                "verdict": self.dry["verdict"] if self.dry else "undecided", "seconds": round(self.seconds, 3)}


class Row:
    """One card: its starts and what follows from them."""

    def __init__(self, card):
        self.card, self.cold, self.warm, self.shortened = card, None, None, None

    @property
    def best(self):
        return self.warm or self.cold

    @property
    def capacity(self):
        return self.best.dry["capacity"] if self.best.dry else self.card.memory

    def per_token(self):
        return self.best.engine["cache"] / self.best.engine["tokens"]

    def longest(self, limit):
        """The largest length of a request: of the cache, or the model's own."""
        tokens = int(self.best.engine["tokens"])
        return min(tokens, limit) if limit else tokens

    def leaving(self, rest):
        """(the share of the memory, tokens) with which so many bytes are free at the engine's fullest; None: not
        known. What it takes above what it was told to take stays the same."""
        engine = self.best.engine
        if "utilization" not in engine or "total" not in engine:
            return None
        total = self.capacity / self.card.count
        of = engine.get(self.best.of.share_of, total)
        above = self.best.dry["peak"] / self.card.count - engine["utilization"] * of
        share = int((total - rest - above) / of * 1000) / 1000  # rounded down
        tokens = int(engine["tokens"] + (share - engine["utilization"]) * of / self.per_token())
        return (share, tokens) if share > 0 and tokens > 0 else None


class Serving:
    def __init__(self, gpumem, options, cards, progress):
        self.gpumem, self.options, self.progress = gpumem, options, progress
        self.rows = [Row(card) for card in cards]
        if options.axes or options["remedies"] is not None:
            raise Wrong("--serve goes without --over and --remedies")

    def start(self, row, command, caches, kind):
        self.progress(f"{kind} start on {row.card.key()}")
        return Start(self, row.card, [part.replace("{N}", str(row.card.count)) for part in command], caches)

    def run(self):
        for row in self.rows:
            caches, command = tempfile.mkdtemp(prefix="gpumem-serving."), self.options.command
            try:
                row.cold = self.start(row, command, caches, "cold")
                longest = row.cold.engine.get("too_long")
                shorter = with_length(command, longest) if longest else None
                if not row.cold.is_served and shorter:
                    command, row.shortened = shorter, longest
                    shutil.rmtree(caches)
                    os.mkdir(caches, 0o700)
                    row.cold = self.start(row, command, caches, "cold")
                if row.cold.is_served and "compiled" in row.cold.engine:
                    row.warm = self.start(row, command, caches, "warm")
                    row.warm = row.warm if row.warm.is_served else None
            finally:
                shutil.rmtree(caches, ignore_errors=True)

    def exit_code(self):
        if any(row.cold and row.cold.is_served and not row.shortened for row in self.rows):
            return 0
        return 1 if all(row.cold and (row.shortened or row.cold.refusal) for row in self.rows) else 5

    # ---- the answer ----

    def row_json(self, row):
        start, leave = row.best, self.options.leave
        found = {"device": row.card.stem, "count": row.card.count, "capacity": row.capacity,
                 "serves": start.is_served and not row.shortened, "cold": row.cold.json(),
                 "warm": row.warm and row.warm.json(), "shortened_to": row.shortened,
                 "why_not": None if start.is_served else why_not(start)}
        if start.is_served:
            leaving = row.leaving(leave)
            found.update(cache_bytes=start.engine.get("cache"), tokens=start.engine["tokens"],
                         concurrency=start.engine.get("concurrency"), length=start.engine.get("length"),
                         max_model_len=row.longest(own_limit(self.options.command)), leave=leave,
                         utilization=leaving and leaving[0], tokens_then=leaving and leaving[1])
        return found

    def print_json(self):
        print(json.dumps({"format": 1, "simulated": True, "fit": {
            "serving": [self.row_json(row) for row in self.rows if row.cold]}}, indent=1))

    def print_text(self):
        for number, row in enumerate(row for row in self.rows if row.cold):
            if number:
                say()
            self.print_row(row)

    def print_row(self, row):
        start, title = row.best, row.card.title()
        if not start.is_served:
            say(f"Does not serve on {title}: {why_not(start)}")
            return
        engine = start.engine
        if row.shortened:
            say(f"Does not serve at the length asked on {title}; with --max-model-len {row.shortened}:")
        say(f"KV cache on {title}: {size(engine['cache'])}, {int(engine['tokens']):,} tokens; "
            f"{engine['concurrency']:.2f} requests of {int(engine['length']):,} tokens at once.\n")
        rows = [[name, size(one.engine["cache"]), f"{int(one.engine['tokens']):,}",
                 f"{one.engine['concurrency']:.2f}", f"{one.seconds:.0f} s"]
                for name, one in (("cold", row.cold), ("warm", row.warm)) if one]
        table(["start", "KV cache", "tokens", "at once", "dry run"], rows)
        if row.warm:
            more = row.warm.engine["tokens"] - row.cold.engine["tokens"]
            say(f"\nA cold start compiles while it measures, and what that takes counts as activations: "
                f"{int(more):,} tokens." if more else "\nCompiling cold costs no tokens here.")
        say()
        says = f"{start.of.name} {engine.get('version', 'says')}"
        lines = [[name, shown(engine.get(key)), shown(start.stages.get(key)), ""]
                 for name, key in (("weights", "weights"), ("KV cache", "cache"))]
        if "activations" in engine:
            lines.append(["activations", shown(engine["activations"]), "", "at their peak"])
        if engine.get("graphs"):
            lines.append(["CUDA graphs", shown(engine["graphs"]), shown(start.stages["graphs"]),
                          f"estimated as {shown(engine['graphs_estimated'])}" if "graphs_estimated" in engine else ""])
        lines.append(["all", shown(engine.get("requested")), shown(start.dry["peak"]),
                      difference(engine.get("requested"), start.dry["peak"] // row.card.count)])
        table(["", says, "gpumem saw", ""], lines)
        limit = own_limit(self.options.command)
        longest = row.longest(limit)
        say(f"\nLargest {start.of.length_option}: {longest:,}"
            + (", the model's own limit." if longest == limit else ", what the cache holds."))
        leaving = row.leaving(self.options.leave)
        if leaving:
            say(f"{start.of.share_option} {leaving[0]:.3f} leaves {size(self.options.leave)}: {leaving[1]:,} tokens.")


def shown(count):
    return "" if count is None else size(count) if count >= 0 else "-" + size(-count)


def difference(asked, used):
    if not asked:
        return ""
    return f"{size(abs(used - asked))} {'more' if used > asked else 'less'} than asked for"


def why_not(start):
    if start.refusal:
        return clean(start.refusal[0])[:300]
    if start.dry and start.dry["reason"]:
        return start.dry["reason"]
    if start.dry and start.dry["verdict"] == "does-not-fit":
        return "out of memory"
    return clean(start.last)[:300] or "it told of no KV cache"
