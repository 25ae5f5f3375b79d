"""What --over and --over-env name: axes of values that a command is tried with."""
import re

MOST_VALUES = 1000000
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)(?::(?:(\d+)|[x*](\d+)))?")


class Wrong(Exception):
    """What the user asked for cannot be done; the text says why in one line."""


class Axis:
    """A name and its values: ascending if all are numbers, else as given."""

    def __init__(self, name, values, is_env):
        self.name, self.is_env = name, is_env
        numbers = [number_of(value) for value in values]
        self.is_numeric = None not in numbers
        if self.is_numeric:
            values = [value for _, value in sorted(zip(numbers, values), key=lambda pair: pair[0])]
        self.values = list(dict.fromkeys(values))

    def filled(self, command, environment, value):
        """The command and the environment with a value of this axis."""
        if self.is_env:
            return command, dict(environment, **{self.name: value})
        return [part.replace("{" + self.name + "}", value) for part in command], environment


def number_of(text):
    """An int where it is one, else a float; None: no number."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return None


def values_of(spec, option):
    values = []
    for part in spec.split(","):
        found = RANGE.fullmatch(part)
        if not found:
            values.append(part)
            continue
        first, last = int(found[1]), int(found[2])
        step, factor = int(found[3] or 1), int(found[4] or 0)
        if last < first or step < 1 or (found[4] and (factor < 2 or first < 1)):
            raise Wrong(f"{option}: '{part}' is no range such as 1..512, 8..512:8 or 1..512:x2")
        if factor:
            while first <= last:
                values.append(str(first))
                first *= factor
        elif (last - first) // step >= MOST_VALUES:
            raise Wrong(f"{option}: '{part}' has more than {MOST_VALUES} values")
        else:
            values.extend(map(str, range(first, last + 1, step)))
    if "" in values:
        raise Wrong(f"{option}: an empty value in '{spec}'")
    return values


def axis_of(text, is_env, command):
    """The axis of one --over or --over-env NAME=VALUES."""
    option = "--over-env" if is_env else "--over"
    name, equals, spec = text.partition("=")
    if not equals or not NAME.fullmatch(name):
        raise Wrong(f"{option}: '{text}' is not NAME=VALUES")
    if not is_env and name == "N":
        raise Wrong("--over: {N} stands for the number of GPUs: see --cards")
    if not is_env and not any("{" + name + "}" in part for part in command):
        raise Wrong(f"--over: no {{{name}}} in the command")
    return Axis(name, values_of(spec, option), is_env)
