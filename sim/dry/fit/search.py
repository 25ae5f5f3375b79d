"""The largest value of an axis that fits, by few runs.

A run is honest where the device has the memory that it has; its verdict counts. A run without limit tells the whole
need of a value that does not fit: it guides the search and decides nothing. What is needed mostly grows with the
value: the search estimates by interpolation where the need passes the capacity, tries that value and the next, and
halves what is left where the estimate is off. The answer always stands on two honest runs: the value found fits, the
next does not. Whether the need grows is checked by all that was measured; where it does not, the values above the
one found are tried one by one, as far as the bound on runs allows.
"""
import itertools

from runs import UNLIMITED
from values import number_of

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

    def __init__(self, values, measure, capacity, runs_most, jobs=lambda: 1):
        """`jobs`: how many runs there are at a time."""
        self.values, self.measure, self.capacity, self.jobs = list(values), measure, capacity, jobs
        self.numbers = {value: number_of(value) for value in values}
        self.points, self.failed = {}, []
        self.runs_left = runs_most
        self.is_monotone, self.untried = True, 0
        self.best = self.next = None
        self.stride, self.lessons = 1, 2

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

    def known(self, name):
        pairs = [(self.numbers[value], point.need(name)) for value, point in self.points.items()
                 if point.need(name) is not None]
        return sorted(pairs)

    # ---- the search ----

    def estimate(self, inside, name):
        """Of values that are not known, the largest whose need is estimated to be within the capacity; None."""
        known = self.known(name)
        if len(known) < 2:
            return inside[0] if len(inside) == 1 else inside[len(inside) // 2]
        curve = curve_through(nearest(known, self.capacity))
        within = [value for value in inside if curve(self.numbers[value]) <= self.capacity]
        return within[-1] if within else None

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
        # Three estimates find the boundary of a line and of a parabola. What they miss has steps: halving is bounded.
        guesses = itertools.chain(["most", "without_cache", "most"], itertools.repeat(None))
        while self.runs_left > 0:
            best = max((value for value in self.values if self.fits(value)), key=self.numbers.get, default=None)
            above = self.values[self.values.index(best) + 1:]
            if not above or (self.is_above(above[0]) and self.is_known(above[0], False)):
                break
            walls = [value for value in above if self.is_above(value)]
            inside = above[:above.index(walls[0])] if walls else above
            if not walls:
                self.try_all([(above[-1], False)])
            elif not inside:
                self.try_all([(above[0], False)])
            else:
                self.narrow(inside, above, next(guesses))

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

    def narrow(self, inside, above, guess):
        """Between a value that fits and one that does not."""
        value = self.estimate(inside, guess) if guess else inside[(len(inside) - 1) // 2]
        if value is None: # none is estimated to fit: the next one, and where it does, further and further
            value = inside[min(self.stride, len(inside)) - 1]
            self.try_all([(value, False)])
            self.stride = 2 * self.stride if self.fits(value) else 1
            return
        following = above[above.index(value) + 1]
        self.try_all([(value, False), (following, False)] if guess and self.jobs() > 1 else [(value, False)])
        if guess and self.fits(value):
            self.try_all([(following, False)])
        if guess and self.fits(value) is False and len(inside) > 8 and self.lessons:
            self.lessons -= 1
            self.try_all([(value, True)])

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
