"""The largest value of an axis that fits, by few runs.

A run is honest where the device has the memory that it has; its verdict counts. A run without limit tells the whole
need of a value that does not fit: it guides the search and decides nothing. Where runs have told their requests, these
say which value to try (forecast.py). Else, where all that is known lies on a simple curve (a line, a parabola, a root,
steps of one width) the search tries the value that fits by it, and the next. Where it does not, it estimates from the
nearest points, and halves what is left where that narrows too slowly. The answer always stands on two honest runs: the
value found fits, the next does not. Whether the need grows is checked by all that was measured; where it does not, the
values above the one found are tried one by one, as far as the bound on runs allows.
"""
from curves import confirmed
from runs import UNLIMITED
from values import number_of

NEAR = 6          # values beside one whose need is known: there a run that decides is worth more than one that tells the need
SLACK = 3         # steps that may narrow less than halving would
MISSES_MOST = 12  # values in a row that fail by something else than memory


class Point:
    """What is known of one value."""

    def __init__(self, value):
        self.value, self.honest, self.unlimited = value, None, None

    def result(self):
        return self.honest or self.unlimited

    def need(self, name="most"):
        """Bytes needed, the cache with them (most) or not (without_cache); None: not known."""
        for result in (self.unlimited, self.honest):
            if result and not result.has_failed and not result.dry["failed_at"]:
                return getattr(result, name)
        return None


class Search:
    """Along one axis. `measure`: called with [(value, memory)], and what is to be called with the number and the result of
    each; memory None: what the device has."""

    def __init__(self, values, measure, capacity, runs_most, jobs=lambda: 1, forecast=None):
        """`jobs`: how many runs there are at a time. `forecast`: a Forecast, for results that have recordings."""
        self.values, self.measure, self.capacity, self.jobs = list(values), measure, capacity, jobs
        self.numbers = {value: number_of(value) for value in values}
        self.points, self.failed = {}, []
        self.runs_left = runs_most
        self.is_monotone, self.untried = True, 0
        self.best = self.next = None
        self.stride, self.forecast = 2, forecast

    # ---- what is known ----

    def try_all(self, wanted):
        """Measures [(value, is without limit)]; what failed by something else leaves the search."""
        wanted = [(value, is_unlimited) for value, is_unlimited in wanted if not self.is_known(value, is_unlimited)]
        wanted = wanted[:max(0, self.runs_left)]
        self.runs_left -= len(wanted)

        def take(number, result):
            value, is_unlimited = wanted[number]
            point = self.points.setdefault(value, Point(value))
            setattr(point, "unlimited" if is_unlimited else "honest", result)
            if self.forecast:
                self.forecast.note(self.numbers[value], result.recordings, result.beside_pytorch(), result.peak)
            if result.has_failed and value in self.values:
                self.values.remove(value)
                self.failed.append(value)

        self.measure([(value, UNLIMITED if unlimited else None) for value, unlimited in wanted], take)

    def is_known(self, value, is_unlimited):
        point = self.points.get(value)
        return bool(point and (point.unlimited if is_unlimited else point.honest))

    def fits(self, value):
        """True, False; None: not known, and also where a run cannot tell."""
        point = self.points.get(value)
        if not point or not point.honest:
            return None
        return {"fits": True, "does-not-fit": False}.get(point.honest.verdict)

    def is_above(self, value):
        """Whether a value is known not to fit, or not to be told, or by its whole need surely does not."""
        point = self.points.get(value)
        if not point:
            return False
        if point.honest:
            return point.honest.verdict != "fits"
        return point.unlimited.without_cache > self.capacity or point.unlimited.verdict != "fits"

    def is_below(self, value):
        """Whether a value is known to fit, or by its whole need surely does."""
        point = self.points.get(value)
        if not point or point.honest:
            return bool(point) and point.honest.verdict == "fits"
        return point.unlimited.verdict == "fits" and point.unlimited.most <= self.capacity

    def known(self, name):
        pairs = [(self.numbers[value], point.need(name)) for value, point in self.points.items()
                 if point.need(name) is not None]
        return sorted(pairs)

    # ---- the search ----

    def run(self):
        """Until the largest is found. What is known is concluded in any case, also after an interruption."""
        try:
            if self.start():
                self.approach()
        finally:
            self.conclude()
        if not self.is_monotone:
            self.try_above()
            self.conclude()

    def approach(self):
        """Until nothing is between the largest value that fits and the smallest that does not."""
        sizes = []
        while self.runs_left > 0:
            best = max((value for value in self.values if self.is_below(value)), key=self.numbers.get, default=None)
            above = self.values[self.values.index(best) + 1:] if best else self.values
            wall = next((at for at, value in enumerate(above) if self.is_above(value)), None)
            if above and wall is None:
                self.try_all([(above[-1], False)])
            elif wall:
                sizes.append(wall)
                self.narrow([best, *above[:wall]], above[wall], sizes)
            else:
                ends = [(value, False) for value in [best, *above[:1]] if value and not self.is_known(value, False)]
                if not ends:
                    break
                self.try_all(ends if self.jobs() > 1 else ends[:1])

    def start(self):
        """Both ends. False: the search is over."""
        while self.values and len(self.failed) < MISSES_MOST:
            ends = [(self.values[0], False)]
            if len(self.values) > 1:
                ends.append((self.values[-1], True))
            before = len(self.values)
            self.try_all(ends)
            if len(self.values) == before:
                break
        if not self.values or self.runs_left <= 0:
            return False
        if not self.fits(self.values[0]) and not self.is_above(self.values[-1]):
            self.try_all([(self.values[-1], False)])
        return any(self.fits(value) for value in self.values)

    def narrow(self, below, wall, sizes):
        """One step. `below`: a value that fits, and those that may up to `wall`, which does not; `sizes`: how many these
        were at each step until now."""
        inside, known = below[1:], self.known("without_cache")
        is_slow = len(inside) > sizes[0] / 2 ** (len(sizes) - 1 - SLACK)
        guesses = [] if is_slow else self.foretold(below) or self.guesses(known, below, wall)
        if guesses:
            guess = guesses[(len(guesses) - 1) // 2]
            following = [*below, wall][below.index(guess) + 1]
            wanted = [(value, False) for value in (guess, following) if not self.is_known(value, False)]
            self.try_all(wanted if self.jobs() > 1 and len(guesses) == 1 else wanted[:1])
            return
        middle = (len(inside) - 1) // 2
        if len(known) < 2: # the largest value needs more than a run without limit tells
            self.try_all([(inside[middle if is_slow else middle // 2], not is_slow)])
            return
        curve = curve_through(around(known, self.capacity, len(sizes)))
        at = max((at for at, value in enumerate(inside) if curve(self.numbers[value]) <= self.capacity), default=0)
        if is_slow:
            self.stride *= 2
            at = min(middle, self.stride * (at + 1))
        is_near = at < NEAR or (at >= len(inside) - NEAR and self.points[wall].need() is not None)
        tells_need = not is_slow and not is_near and len(sizes) > 1 and not self.is_known(inside[at], True)
        self.try_all([(inside[at], tells_need)])

    def foretold(self, below):
        """The last value that fits by the requests that others made, if that can be told."""
        at = self.forecast and self.forecast.last([self.numbers[value] for value in below[1:]], self.capacity)
        return [] if at is None else [below[at + 1]]

    def guesses(self, known, below, wall):
        """The last value that fits, by each of the most likely curves that runs have confirmed."""
        for curves in confirmed(known, self.capacity):
            guesses = {self.last_within(below, curve, wall) for curve in curves} - {None}
            if guesses:
                return sorted(guesses, key=self.numbers.get)
        return []

    def last_within(self, below, curve, wall):
        """The last value that fits by this curve; None: the curve says that `wall` does, or that none does."""
        within = [value for value in below if curve(self.numbers[value]) <= self.capacity]
        return within[-1] if within and curve(self.numbers[wall]) > self.capacity else None

    def conclude(self):
        order = sorted(self.points, key=self.numbers.get)
        honest = [value for value in order if self.fits(value)]
        needs = [need for _, need in self.known("without_cache")]
        falls = any(later < earlier * 0.99 for earlier, later in zip(needs, needs[1:]))
        self.best = honest[-1] if honest else None
        refused = [value for value in order if self.is_known(value, False) and self.fits(value) is False]
        crosses = bool(honest and refused and self.numbers[refused[0]] < self.numbers[honest[-1]])
        self.is_monotone = self.is_monotone and not falls and not crosses
        above = [value for value in self.values if self.best is None or
                 self.numbers[value] > self.numbers[self.best]]
        self.next = above[0] if above else None

    def try_above(self):
        """One by one from the top, for the largest that fits where a larger value may need less."""
        above = [value for value in self.values if self.best is None or
                 self.numbers[value] > self.numbers[self.best]]
        for value in reversed(above):
            if self.runs_left <= 0:
                break
            self.try_all([(value, False)])
            if self.fits(value):
                above = above[above.index(value) + 1:]
                break
        self.untried = sum(not self.is_known(value, False) for value in above)

    # ---- the need as a line ----

    def line(self):
        """(fixed bytes, bytes per unit, largest error) of the least squares through all known needs; None: of two
        values or more none are known, or the values are equal."""
        known = self.known("without_cache")
        count = len(known)
        if count < 2:
            return None
        mean_x, mean_y = sum(x for x, _ in known) / count, sum(y for _, y in known) / count
        spread = sum((x - mean_x) ** 2 for x, _ in known)
        if not spread:
            return None
        slope = sum((x - mean_x) * (y - mean_y) for x, y in known) / spread
        fixed = mean_y - slope * mean_x
        return round(fixed), round(slope), round(max(abs(fixed + slope * x - y) for x, y in known))


def around(known, capacity, step):
    """The points for an estimate: of the third two that are above, of the fourth two below, for needs that bend there."""
    above = [point for point in known if point[1] > capacity]
    if step == 3 and len(above) > 1:
        return above[:2]
    below = [point for point in known if point[1] <= capacity]
    if step == 4 and len(below) > 1:
        return below[-2:]
    return nearest(known, capacity)


def nearest(known, capacity):
    """The two points around the capacity, or the last ones below; and a third beside them that is not too near to tell
    how the need bends."""
    at = next((i for i, (_, need) in enumerate(known) if need > capacity), len(known) - 1)
    at = max(1, at)
    low, high = known[at - 1], known[at]
    far = [point for point in known if min(abs(point[0] - low[0]), abs(point[0] - high[0])) >= max(2, abs(low[0]) / 4)]
    others = sorted(far, key=lambda point: abs(point[1] - capacity))
    return [low, high] + others[:1]


def curve_through(points):
    """The line through two points, or the parabola through three if it rises between the first two."""
    (x0, y0), (x1, y1) = points[0], points[1]
    first, second = (y1 - y0) / (x1 - x0), 0.0
    if len(points) > 2:
        x2, y2 = points[2]
        second = ((y2 - y1) / (x2 - x1) - first) / (x2 - x0)
        if first - second * (x1 - x0) < 0 or first + second * (x1 - x0) < 0:
            second = 0.0
    return lambda x: y0 + first * (x - x0) + second * (x - x0) * (x - x1)
