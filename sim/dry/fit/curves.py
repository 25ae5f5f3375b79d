"""Curves through measured needs: how much a value needs that was not run."""
import math

SMOOTH = 1 / 4096    # of the capacity: how far a need can be from a curve that it confirms
WIDTHS_MOST = 256    # of steps
OFFSETS_MOST = 32    # of steps that do not begin at a multiple of their width


def rounded_up(width, offset=0):
    return lambda x: -(-(x + offset) // width) * width


def steps_of(widths):
    """Multiples of a width from which on more is needed, and those up to which the same is."""
    return [rounded_up(width, offset) for width in widths for offset in (0, 1 - width)]


def shapes():
    """Lists of (functions whose weighted sum a need can be, runs beyond their number that must agree), the most likely
    first; one list has those that are as likely."""
    yield [([lambda x: x], 1)]
    yield [([lambda x: math.sqrt(max(x, 0))], 1)]
    yield [([lambda x: x, lambda x: x * x], 1)]
    powers = [1 << power for power in range(1, 9)]
    others = [width for width in range(3, WIDTHS_MOST) if width not in powers]
    for widths in (powers, others):
        yield [([step], 1) for step in steps_of(widths)]
        yield [([step, lambda x, step=step: step(x) ** 2], 1) for step in steps_of(widths)]
        yield [([step, lambda x: x], 1) for step in steps_of(widths)]
    yield [([rounded_up(width, offset)], 2) for width in range(2, OFFSETS_MOST + 1) for offset in range(1, width - 1)]


def solved(functions, points):
    """The sum of 1 and the functions that goes through as many points; None: they do not say."""
    rows = [[1.0, *(function(x) for function in functions), y] for x, y in points]
    count = len(rows)
    for at in range(count):
        pivot = max(range(at, count), key=lambda row: abs(rows[row][at]))
        rows[at], rows[pivot] = rows[pivot], rows[at]
        if abs(rows[at][at]) < 1e-9:
            return None
        for row in range(count):
            if row != at:
                factor = rows[row][at] / rows[at][at]
                rows[row] = [one - factor * other for one, other in zip(rows[row], rows[at])]
    weights = [row[-1] / row[at] for at, row in enumerate(rows)]
    return lambda x: weights[0] + sum(weight * function(x) for weight, function in zip(weights[1:], functions))


def spread(functions, points):
    """As many points as there are weights, which differ in the first function: the ends, and one between."""
    distinct = list({functions[0](x): (x, y) for x, y in points}.values())
    if len(distinct) <= len(functions):
        return None
    return [distinct[0], distinct[-1], distinct[len(distinct) // 2]][:len(functions) + 1]


def confirmed(points, capacity):
    """Lists of curves through a part of the points that all others lie on, the most likely list first."""
    for likely in shapes():
        curves = [curve_of(functions, points, capacity * SMOOTH) for functions, others in likely
                  if len(points) > len(functions) + others]
        yield [curve for curve in curves if curve]


def curve_of(functions, points, ceiling):
    chosen = spread(functions, points)
    curve = chosen and solved(functions, chosen)
    return curve if curve and all(abs(curve(x) - y) <= ceiling for x, y in points) else None
