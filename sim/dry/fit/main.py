"""gpumem fit: main.py GPUMEM LIBRARIES [NAME=VALUE]... -- COMMAND [ARGUMENT]...

`gpumem fit` (report/commands/cmd_fit.c) reads the command line and starts this with its options. The exit codes are
those of its help.
"""
import itertools
import os
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import answer  # noqa: E402
import page  # noqa: E402
from cards import Cards, bytes_of  # noqa: E402
from forecast import Forecast  # noqa: E402
from remedies import Remedies  # noqa: E402
from runs import ENDS, UNLIMITED, Result, Runner  # noqa: E402
from search import Point, Search  # noqa: E402
from serving import Serving  # noqa: E402
from values import Wrong, axis_of  # noqa: E402

COMBINATIONS_MOST = 256
RUNS_MOST = 64  # of one search along an axis


class Options:
    """What the command line says."""

    FLAGS = ("json", "fresh", "once", "values", "serve")

    def __init__(self, words):
        at = words.index("--")
        self.command = words[at + 1:]
        self.axes, self.cards, self.given = [], [1], {}
        self.jobs = None
        self.max_steps = "auto"
        for word in words[:at]:
            name, _, value = word.partition("=")
            if name in ("over", "over-env"):
                self.axes.append(axis_of(value, name == "over-env", self.command))
            else:
                self.given[name] = value
        names = [axis.name for axis in self.axes]
        if len(set(names)) < len(names):
            raise Wrong("--over: one name twice")
        if "jobs" in self.given:
            self.jobs = self.count_of("jobs")
        if self.given.get("max-steps", "auto") != "auto":
            self.max_steps = str(self.count_of("max-steps", least=0))
        has_count = any("{N}" in part for part in self.command)
        self.counts = [1, 2, 4, 8] if has_count else [1]
        if "cards" in self.given:
            try:
                self.counts = sorted({int(part) for part in self.given["cards"].split(",")})
            except ValueError:
                raise Wrong(f"--cards: '{self.given['cards']}' is no list such as 1,2,4,8") from None
        self.memory = bytes_of(self.given["memory"]) if "memory" in self.given else None
        self.leave = bytes_of(self.given.get("leave", "1G"))

    def count_of(self, name, least=1):
        text = self.given[name]
        if not text.isdigit() or int(text) < least:
            raise Wrong(f"--{name}: '{text}' is not a positive number")
        return int(text)

    def __getitem__(self, name):
        return name in self.given if name in self.FLAGS else self.given.get(name)

    @property
    def fresh(self):
        return self["fresh"]


class Progress:
    """One line on a terminal, written over and over."""

    def __init__(self):
        self.is_shown, self.begin = sys.stderr.isatty(), time.monotonic()

    def __call__(self, text):
        if self.is_shown:
            sys.stderr.write(f"\r\033[K{text} ({time.monotonic() - self.begin:.0f} s)"[:200])
            sys.stderr.flush()

    def end(self):
        if self.is_shown:
            sys.stderr.write("\r\033[K")


class Row:
    """One card and one combination of the axes that are not searched; with a search along the first axis, or one
    point for each of its values."""

    def __init__(self, card, fixed, capacity):
        self.card, self.fixed, self.capacity = card, fixed, capacity
        self.search, self.points = None, {}

    def best(self):
        """The value found, with its point; None, None: nothing fits."""
        if self.search:
            found = self.search.best
            return (found, self.search.points[found]) if found is not None else (None, None)
        fitting = [(value, point) for value, point in self.points.items() if point.result().verdict == "fits"]
        return fitting[-1] if fitting else (None, None)

    def all_points(self):
        return self.search.points if self.search else self.points

    def cannot_tell(self):
        """Nothing that was tried fits, and something could not be told."""
        results = [point.result() for point in self.all_points().values()]
        return self.best()[1] is None and (not results or any(one.verdict == "undecided" for one in results))


class Fit:
    def __init__(self, options, runner, cards):
        self.options, self.runner, self.cards = options, runner, cards
        self.rows, self.unlimited, self.remedies = [], {}, None
        self.is_interrupted = False

    def plan(self):
        others = [axis.values for axis in self.options.axes[1:]]
        count = len(self.cards)
        for values in others:
            count *= len(values)
        if count > COMBINATIONS_MOST:
            raise Wrong(f"--over: {count} combinations; {COMBINATIONS_MOST} at most besides the first axis")
        if self.options.axes and not self.is_searched() and len(self.options.axes[0].values) > COMBINATIONS_MOST:
            raise Wrong("--over: too many values that are no numbers")
        for card in self.cards:
            for chosen in itertools.product(*others):
                fixed = dict(zip((axis.name for axis in self.options.axes[1:]), chosen))
                self.rows.append(Row(card, fixed, self.options.memory or card.memory))

    def is_searched(self):
        return bool(self.options.axes) and self.options.axes[0].is_numeric

    def request(self, card, values, memory):
        """What Runner.run takes, for values of all axes."""
        command, environment = self.options.command, dict(os.environ)
        for axis in self.options.axes:
            command, environment = axis.filled(command, environment, values[axis.name])
        return command, environment, card, memory or self.options.memory

    def named_request(self, row, value, memory):
        values = dict(row.fixed)
        if self.options.axes:
            values[self.options.axes[0].name] = value
        label = " ".join([f"{name}={one}" for name, one in values.items()] + [f"on {row.card.key()}"])
        return label, self.request(row.card, values, memory)

    def measure(self, row, wanted, take):
        """Measures [(value, memory)]; what another card of the same architecture told is not run again."""
        requests, numbers = [], []
        for number, (value, memory) in enumerate(wanted):
            key = (row.card.architecture, tuple(row.fixed.items()), value) if memory == UNLIMITED else None
            if key in self.unlimited:
                take(number, for_card(*self.unlimited[key], row.card))
            else:
                requests.append(self.named_request(row, value, memory))
                numbers.append((number, key))

        def take_and_share(number, result):
            number, key = numbers[number]
            if key:
                self.unlimited[key] = result, row.card
            take(number, result)

        self.runner.run_all(requests, take_and_share)

    def try_remedies(self):
        """On the first card, with the largest value of each axis."""
        card, values = self.cards[0], {axis.name: axis.values[-1] for axis in self.options.axes}
        self.remedies = Remedies(self.runner, lambda values, memory: self.request(card, values, memory), self.options,
                                 values, self.options.memory or card.memory)
        self.remedies.run()

    def run(self):
        if self.options["remedies"] is not None:
            self.try_remedies()
            return
        self.runner.records = self.is_searched()
        for row in self.rows:
            if self.is_searched():
                row.search = Search(self.options.axes[0].values,
                                    lambda wanted, take, row=row: self.measure(row, wanted, take), row.capacity,
                                    RUNS_MOST, self.runner.jobs, Forecast(self.runner.gpumem))
                row.search.run()
            else:
                self.try_each(row)

    def try_each(self, row):
        """All values of the first axis, which are no numbers, or the one point that there is. Cards that differ in memory
        alone share a run without limit, as far as it tells."""
        of_kind = [card for card in self.cards if card.architecture == row.card.architecture]
        is_shared = not self.options.memory and len(of_kind) > 1
        values = self.options.axes[0].values if self.options.axes else [None]

        def take(number, result):
            told = judged(result, row.capacity) if is_shared else result
            if told:
                row.points[values[number]] = Point(values[number])
                row.points[values[number]].honest = told

        self.measure(row, [(value, UNLIMITED if is_shared else None) for value in values], take)
        values, is_shared = [value for value in values if value not in row.points], False
        self.measure(row, [(value, None) for value in values], take)
        refused = [value for value, point in row.points.items() if point.honest.dry["failed_at"]]
        if len(self.rows) == 1: # what they need in all
            self.measure(row, [(value, UNLIMITED) for value in refused], lambda number, result: setattr(
                row.points[refused[number]], "unlimited", result))


def for_card(result, of, card):
    """What a run on a device of the same architecture says of another: all but its context."""
    dry = dict(result.dry, parts=[dict(part) for part in result.parts], device=card.name)
    for part in dry["parts"]:
        if part["name"] == "context and modules":
            for name in ("bytes", "least", "most"):
                part[name] += card.context - of.context
            dry["peak"] += card.context - of.context
            dry["most"] += card.context - of.context
    told = Result(dry, result.seconds, result.is_kept, result.told)
    told.of, told.recordings = of.key(), result.recordings
    return told


def judged(result, capacity):
    """The verdict of a run without limit, for a device of a certain memory; None: what PyTorch would give back of its
    cache decides."""
    if result.has_failed:
        return result
    if result.verdict == "fits" and result.most <= capacity and result.most - result.peak <= capacity // 10:
        verdict = "fits"
    elif result.verdict == "fits" and result.without_cache > capacity:
        verdict = "does-not-fit"
    else:
        return None
    told = Result(dict(result.dry, capacity=capacity, verdict=verdict), result.seconds, result.is_kept, result.told)
    told.of = result.of
    return told


def exit_code(fit):
    if fit.remedies:
        if not fit.remedies.base or fit.remedies.base.verdict != "fits":
            return 5
        return 0 if fit.remedies.does_fit_as_it_is() or fit.remedies.chosen else 1
    if any(row.best()[1] for row in fit.rows):
        return 0
    return 5 if any(row.cannot_tell() for row in fit.rows) else 1


def write_budget(path, fit):
    """What `gpumem check $(cat FILE)` holds later runs against: the most that the best point needs."""
    best = next((row.best()[1] for row in fit.rows if row.best()[1]), None)
    if best:
        result = best.result()
        tracked = result.most - result.bytes_of("context and modules", "NCCL's buffers")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"--max-peak {tracked}\n")


def cards_of(options, known):
    if options["devices"]:
        cards = known.listed(options["devices"], options.counts)
    else:
        cards = [known.find(options["device"] or "h100").times(count) for count in options.counts]
    if options["prices"]:
        known.read_prices(options["prices"], cards)
    return cards


def serve(gpumem, libraries, options, progress):
    """--serve: not a search, but the starts of a server."""
    with tempfile.TemporaryDirectory(prefix="gpumem-fit.") as scratch:
        serving = Serving(gpumem, options, cards_of(options, Cards(libraries + "/devices", scratch)), progress)
        try:
            serving.run()
        finally:
            progress.end()
    if options["json"]:
        serving.print_json()
    else:
        serving.print_text()
    return serving.exit_code()


def work(words):
    gpumem, libraries = words[:2]
    options = Options(words[2:])
    progress = Progress()
    if options["serve"]:
        return serve(gpumem, libraries, options, progress)
    runner = Runner(gpumem, libraries, options, progress)
    try:
        known = Cards(libraries + "/devices", runner.scratch)
        fit = Fit(options, runner, cards_of(options, known))
        fit.plan()
    except BaseException:
        runner.end()
        raise
    try:
        fit.run()
    except KeyboardInterrupt:
        fit.is_interrupted = True
    finally:
        for number in ENDS:  # what is left takes milliseconds, and half an answer is none
            signal.signal(number, signal.SIG_IGN)
        progress.end()
        runner.end()
    if options["json"]:
        answer.print_json(fit)
    else:
        answer.print_text(fit)
    if options["html"]:
        page.write(options["html"], fit)
    if options["budget"]:
        write_budget(options["budget"], fit)
    return 130 if fit.is_interrupted else exit_code(fit)


def interrupt(_number, _frame):
    raise KeyboardInterrupt


if __name__ == "__main__":
    try:
        for end in ENDS:
            if signal.getsignal(end) != signal.SIG_IGN:  # as nohup has it
                signal.signal(end, interrupt)
        sys.exit(work(sys.argv[1:]))
    except KeyboardInterrupt:  # before the search, or while a server was sized
        sys.exit(130)
    except Wrong as error:
        print("gpumem: fit:", error, file=sys.stderr)
        sys.exit(2)
