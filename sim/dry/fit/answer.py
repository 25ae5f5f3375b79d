"""How the answer of `gpumem fit` reads."""
import json
import os
import sys

import remedies

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size(count):
    """As gpumem prints bytes everywhere (report/base/size.c)."""
    value, unit = float(count), 0
    while value >= 1023.995 and unit + 1 < len(UNITS):
        value /= 1024
        unit += 1
    if unit == 0:
        return f"{count} B"
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {UNITS[unit]}"


def of(part, whole):
    """"22.9 of 23.6 GiB" """
    one, other = size(part), size(whole)
    if one.split()[1] == other.split()[1]:
        one = one.split()[0]
    return f"{one} of {other}"


def clean(text):
    """Without control characters, which come from programs."""
    return "".join(character if character.isprintable() else "?" for character in text)


def say(text=""):
    """One line or several: what is in them came from programs and from the user."""
    print("\n".join(clean(line) for line in text.split("\n")))


def place(line):
    return f" at {os.path.basename(line['file'])}:{line['line']}" if line and line["file"] else ""


def shortage(result, capacity):
    """Why a point does not fit."""
    if result.verdict == "undecided":
        return "cannot be told: " + result.why()
    where = place(result.dry["failed_at"])
    if result.peak > capacity:
        least = "at least " if result.dry["failed_at"] else ""
        return f"is short by {least}{size(result.peak - capacity)}{where}"
    limit = result.dry["failed_at"] and result.dry["failed_at"]["limit"]
    if limit:
        return f"does not fit{where}: XLA may take {size(limit)} (XLA_PYTHON_CLIENT_MEM_FRACTION)"
    return f"does not fit{where}: what is free is in pieces"


def verdict_of(point, row):
    result = point.result()
    if not point.honest:
        return "does-not-fit" if result.without_cache > row.capacity else "undecided"
    return result.verdict


# ---- sentences --------------------------------------------------------------------------------------------

def best_of(row, axis):
    """What the first line says of one row."""
    value, point = row.best()
    if point is None:
        return None
    result = point.result()
    used = of(result.most, row.capacity)
    if not row.search:
        return f"{value} ({used})" if axis else used
    following = row.search.next
    if following is None:
        return f"{value}, the largest that was asked for ({used})"
    beyond = row.search.points.get(following)
    if not beyond or not beyond.honest:
        return f"{value} ({used}; {following} was not tried)"
    return f"{value} ({used}; {following} {shortage(beyond.honest, row.capacity)})"


def fixed_text(row):
    return ", ".join(f"{name}={value}" for name, value in row.fixed.items())


def first_line(fit):
    axes, rows = fit.options.axes, fit.rows
    first = axes[0] if axes else None
    if len(fit.cards) > 1:
        return first_line_of_cards(fit)
    card, found = fit.cards[0].title(), [row for row in rows if row.best()[1]]
    if not found:
        failed = next((point.result() for row in rows for point in row.all_points().values()
                       if point.result().verdict == "undecided"), None)
        if failed or not any(row.all_points() for row in rows):
            return f"Cannot be told whether anything fits {card}: " + (failed.why() if failed else "nothing was run") + "."
        if not first:
            point = rows[0].points[None]
            if point.need() and point.need() > rows[0].capacity:
                where = place(point.honest.dry["failed_at"])
                return f"Does not fit {card}: needs {of(point.need(), rows[0].capacity)}{where and ', refused' + where}."
            return f"Does not fit {card}: it {shortage(point.result(), rows[0].capacity)}."
        smallest = rows[0].search.values[0] if rows[0].search and rows[0].search.values else first.values[0]
        point = rows[0].all_points()[smallest]
        return f"No {first.name} fits {card}: {smallest} {shortage(point.result(), rows[0].capacity)}."
    if not first:
        return f"Fits {card}: {best_of(found[0], None)}."
    if not first.is_numeric:
        fitting = [value for value, point in found[0].points.items() if point.result().verdict == "fits"]
        return f"{first.name} that fits {card}: {', '.join(fitting)}."
    if len(rows) == 1:
        return f"Largest {first.name} that fits {card}: {best_of(found[0], first)}."
    said = "; ".join(f"{row.best()[0]} with {fixed_text(row)}" for row in front(fit))
    return f"Largest {first.name} that fits {card}: {said}."


def first_line_of_cards(fit):
    fitting = [row for row in fit.rows if row.best()[1]]
    if not fitting:
        return f"Fits none of {len(fit.cards)} cards."
    first = fit.options.axes[0] if fit.options.axes else None
    priced = [row for row in fitting if row.card.price is not None]
    if first and first.is_numeric:
        row = max(fitting, key=lambda one: float(one.best()[0]))
        if priced:
            row = max(priced, key=lambda one: float(one.best()[0]) / one.card.price)
            return f"Most {first.name} for its price: {row.card.title()}, {best_of(row, first)}, at {row.card.price:g}."
        return f"Largest {first.name}: on {row.card.title()}, {best_of(row, first)}."
    row = min(priced, key=lambda one: one.card.price) if priced else min(fitting, key=lambda one: one.capacity)
    price = f" at {row.card.price:g}" if priced else ""
    kind = "Cheapest" if priced else "Smallest"
    result = row.best()[1].result()
    return (f"{kind} card that fits: {row.card.title()}{price} ({of(result.most, row.capacity)}, "
            f"{size(row.capacity - result.most)} to spare).")


def front(fit):
    """The rows that no other row beats in all axes: the Pareto front. Only numbers can be compared."""
    axes = [axis for axis in fit.options.axes[1:]]

    def beats(one, other):
        pairs = [(float(one.best()[0]), float(other.best()[0]))]
        for axis in axes:
            mine, theirs = one.fixed[axis.name], other.fixed[axis.name]
            if not axis.is_numeric:
                if mine != theirs:
                    return False
                continue
            pairs.append((float(mine), float(theirs)))
        return all(a >= b for a, b in pairs) and any(a > b for a, b in pairs)

    found = [row for row in fit.rows if row.best()[1]]
    return [row for row in found if not any(other.card is row.card and beats(other, row) for other in found)]


# ---- the page -----------------------------------------------------------------------------------------------

def table(heads, lines):
    widths = [max(len(line[i]) for line in [heads, *lines]) for i in range(len(heads))]
    for line in [heads, *lines]:
        say("  " + "  ".join(text.rjust(width) if i < len(heads) - 1 else text
                               for i, (text, width) in enumerate(zip(line, widths))).rstrip())


WORDS = {"fits": "fits", "does-not-fit": "does not fit", "undecided": "cannot be told"}


def point_line(point, row):
    result, verdict = point.result(), verdict_of(point, row)
    need = size(point.need()) if point.need() is not None else "at least " + size(result.peak)
    notes = []
    if verdict == "fits":
        notes.append(size(row.capacity - result.most) + " to spare")
    elif not point.honest:
        notes.append("estimated by a run without limit")
    else:
        notes.append(shortage(result, row.capacity))
    if result.of:
        notes.append("as on " + result.of)
    return [WORDS[verdict], need, ", ".join(notes)]


def print_points(fit, row):
    points = row.all_points()
    names = [axis.name for axis in fit.options.axes]
    if not points or names == []:
        return
    order = sorted(points, key=row.search.numbers.get) if row.search else list(points)
    if row.fixed:
        say(f"\nWith {fixed_text(row)}:")
    else:
        say()
    table([names[0], "verdict", "needs", ""], [[value, *point_line(points[value], row)] for value in order])


STRAIGHT = 0.05  # of the capacity: how far a need can be from a straight line that is worth telling


def print_line(row):
    """The need as fixed part and slope."""
    line = row.search.line() if row.search else None
    if line and line[2] <= row.capacity * STRAIGHT:
        fixed, slope, error = line
        say(f"Each one takes {size(abs(slope))}{' less' if slope < 0 else ''} beside "
              f"{size(max(0, fixed))} that are fixed, without PyTorch's cache (within {size(error)} of what was measured).")


def print_doubts(fit, row):
    search = row.search
    if search and not search.is_monotone:
        say(f"The need does not rise with {fit.options.axes[0].name}: larger values were tried one by one"
              + (f", {search.untried} of them not." if search.untried else "."))
    elif search and len(search.points) > 2:
        say(f"Of {len(fit.options.axes[0].values)} values {len(search.points)} were tried; their need rises with "
              f"{fit.options.axes[0].name}, and that of the others was taken to do so.")
    if search and search.failed:
        say(f"Failed by something else than memory: {', '.join(search.failed[:8])}: "
              + search.points[search.failed[0]].result().why())


def print_parts(row):
    _, point = row.best()
    if point is None:
        return
    for part in point.result().parts:
        text = f"  {size(part['bytes']):>10}  {part['name']}, {part['kind']}"
        if part["least"] < part["bytes"]:
            text += f": {size(part['least'])} to {size(part['most'])}"
        elif part["most"] > part["bytes"]:
            text += f": up to {size(part['most'])}"
        say(text)


def print_notes(fit):
    runner = fit.runner
    results = [point.result() for row in fit.rows for point in row.all_points().values()]
    steps = {result.dry["ended_after_steps"] for result in results} - {None}
    if steps:
        say(f"The programs were ended after {' or '.join(map(str, sorted(steps)))} steps"
              + (", when the peak had stopped rising." if fit.options.max_steps == "auto" else "."))
    if any(result.dry["uncertain"] for result in results if result.verdict == "fits"):
        say("Programs read values that are not known, as kernels do not run: gpumem dry-run tells the lines.")
    say(f"{runner.runs} run{'s' if runner.runs != 1 else ''} in {runner.seconds:.1f} s"
          + (f", {runner.kept} answers kept from before" if runner.kept else "")
          + (", interrupted" if fit.is_interrupted else "") + ".")


def print_cards(fit):
    say()
    first = fit.options.axes[0] if fit.options.axes else None
    lines = []
    has_prices = any(row.card.price is not None for row in fit.rows)
    for row in sorted(fit.rows, key=lambda one: (one.card.price is None, one.card.price or 0, one.capacity)):
        value, point = row.best()
        shown = point or next(iter(row.all_points().values()), None)
        line = [row.card.key()] + ([f"{row.card.price:g}" if row.card.price is not None else ""] if has_prices else [])
        if row.fixed:
            line.append(fixed_text(row))
        if first:
            line.append(value or "-")
        line += point_line(shown, row) if shown else ["not tried", "", ""]
        lines.append(line)
    table(["card"] + (["price"] if has_prices else []) + ([", ".join(fit.rows[0].fixed)] if fit.rows[0].fixed else [])
          + ([first.name] if first else []) + ["verdict", "needs", ""], lines)


def print_text(fit):
    if fit.remedies:
        print_remedies(fit)
        return
    if fit.is_interrupted:
        say("Interrupted: the answer is of what was run until then.")
    say(first_line(fit))
    if len(fit.cards) > 1:
        print_cards(fit)
    else:
        for row in fit.rows:
            print_points(fit, row)
            print_line(row)
            print_doubts(fit, row)
        if len(fit.rows) == 1:
            say()
            print_parts(fit.rows[0])
    say()
    print_notes(fit)


# ---- JSON -----------------------------------------------------------------------------------------------------

def point_json(fit, row, value, point):
    result = point.result()
    values = dict(row.fixed)
    if fit.options.axes:
        values = {fit.options.axes[0].name: value, **values}
    return {"values": values, "device": row.card.stem, "count": row.card.count, "price": row.card.price,
            "verdict": verdict_of(point, row), "peak": result.peak, "most": result.most, "need": point.need(),
            "capacity": row.capacity, "parts": result.parts, "failed_at": result.dry["failed_at"],
            "reason": result.why() if result.verdict == "undecided" else None,
            "ended_after_steps": result.dry["ended_after_steps"], "seconds": round(result.seconds, 3),
            "kept": result.is_kept}


def best_row(fit):
    """The row that the first line is about."""
    found = [row for row in fit.rows if row.best()[1]]
    if not found:
        return None
    priced = [row for row in found if row.card.price is not None]
    if fit.options.axes and fit.options.axes[0].is_numeric:
        if priced:
            return max(priced, key=lambda one: float(one.best()[0]) / one.card.price)
        return max(found, key=lambda one: float(one.best()[0]))
    return min(priced, key=lambda one: one.card.price) if priced else min(found, key=lambda one: one.capacity)


def document(fit):
    found, best = best_row(fit), None
    points = [point_json(fit, row, value, point) for row in fit.rows for value, point in row.all_points().items()]
    if found:
        best = point_json(fit, found, *found.best())
    searches = []
    for row in fit.rows:
        if not row.search:
            continue
        line = row.search.line()
        searches.append({"device": row.card.stem, "count": row.card.count, "fixed": row.fixed, "best": row.search.best,
                         "next": row.search.next, "is_monotone": row.search.is_monotone,
                         "untried": row.search.untried, "failed": row.search.failed,
                         "line": line and dict(zip(("fixed", "slope", "error"), line))})
    return {"format": 1, "simulated": True, "fit": {
        "best": best, "points": points, "searches": searches, "runs": fit.runner.runs, "kept": fit.runner.kept,
        "seconds": round(fit.runner.seconds, 3), "is_interrupted": fit.is_interrupted}}


def print_json(fit):
    json.dump(remedies_document(fit) if fit.remedies else document(fit), sys.stdout, indent=1)
    say()


# ---- remedies -------------------------------------------------------------------------------------------------

def remedies_line(found, card):
    """The first line."""
    base, capacity = found.base, found.capacity
    if base.has_failed or base.verdict != "fits":
        return f"Cannot be told: {base.why()}."
    best, chosen = found.best(), found.chosen
    with_best = f"with {best.name} {size(best.result.most)}" if best else "no remedy helps"
    if found.does_fit_as_it_is():
        return f"Fits {card} as it is ({of((found.honest_base or base).most, capacity)}); {with_best}."
    text = f"Does not fit {card} as it is: needs {of(base.most, capacity)}"
    if chosen:
        return text + f". Fits with {chosen.name}: {of(chosen.honest.most, capacity)}."
    return text + f"; {with_best}."


def signed(count):
    return size(count) if count >= 0 else "-" + size(-count)


def touched(remedy):
    text = f"{len(remedy.applied_to)} modules" if remedy.applied_to else ""
    where = remedies.place_text(remedy.where)
    return ", ".join(part for part in (text, where) if part)


def why_nothing(found, remedy):
    saves = max(one or 0 for one in found.saves(remedy))
    if remedy.slot == "optimizer" and not found.program.is_peak_in_step():
        reason = "the peak is not in the optimizer's step"
    elif remedy.slot == "settings":
        reason = "little was lost by fragmentation"
    else:
        reason = "the peak is elsewhere"
    return reason if saves >= -found.base.most * 0.01 else f"takes {size(-saves)} more"


def print_remedies(fit):
    found = fit.remedies
    if fit.is_interrupted:
        say("Interrupted: the answer is of what was run until then.")
    if not found.base:
        say("Nothing was run.")
        return
    say(remedies_line(found, fit.cards[0].title()))
    helping = [remedy for remedy in found.tried if found.helps(remedy)]
    helping.sort(key=found.rank)
    lines = [["as it is", size(found.base.most), size(found.base.without_cache), "", "", ""]]
    for remedy in helping:
        result, saves = remedy.result, found.saves(remedy)
        kind = "at most" if remedy.why_not else remedy.kind
        lines.append([remedy.name, size(result.most) if result else "", size(result.without_cache) if result else "",
                      signed(saves[1] if result else saves[0]), kind, remedy.why_not or touched(remedy)])
    say()
    table(["remedy", "needs", "but cache", "saves", "", ""], lines)
    for remedy in helping:
        if remedy.parts != [remedy]:
            continue
        where = remedies.place_text(remedy.where)
        say(f"\n{remedy.name}{' (' + where + ')' if where else ''}: {remedy.cost}.")
        for line in remedy.write:
            say("    " + line)
    rest = [remedy for remedy in found.tried if remedy not in helping]
    if rest:
        say("\nThese do nothing here:")
    for remedy in rest:
        if remedies.is_failed(remedy):
            reason = "failed: " + remedies.failure(remedy)
        else:
            reason = remedy.why_not or (why_nothing(found, remedy) if remedy.is_tried() else "was not tried")
        say(f"  {remedy.name}: {reason}")
    say()
    runner = fit.runner
    say(f"{runner.runs} run{'s' if runner.runs != 1 else ''} in {runner.seconds:.1f} s"
          + (f", {runner.kept} answers kept from before" if runner.kept else "") + ".")


def verdict_without_limit(result, capacity):
    if result.most <= capacity:
        return "fits"
    return "undecided" if result.without_cache <= capacity else "does-not-fit"


def remedy_json(found, remedy):
    result, tried = remedy.result, remedy.is_tried()
    return {"name": remedy.name, "parts": [part.name for part in remedy.parts], "applied_to": remedy.applied_to,
            "place": remedy.where, "peak": result.peak if result else None, "most": result.most if result else None,
            "parts_of_need": result.parts if result else None,
            "saves": found.saves(remedy)[0] if tried else None,
            "saves_without_cache": found.saves(remedy)[1] if tried else None, "kind": remedy.kind,
            "verdict": None if not result else "failed" if remedies.is_failed(remedy) else
            remedy.honest.verdict if remedy.honest else verdict_without_limit(result, found.capacity),
            "why_not": remedies.failure(remedy) if remedies.is_failed(remedy) else remedy.why_not or (
                why_nothing(found, remedy) if tried and not found.helps(remedy) else None),
            "write": remedy.write, "cost": remedy.cost}


def remedies_document(fit):
    found = fit.remedies
    base = found.base and {"verdict": found.base.verdict, "peak": found.base.peak, "most": found.base.most,
                           "capacity": found.capacity, "parts": found.base.parts,
                           "reason": found.base.why() if found.base.verdict == "undecided" else None}
    chosen = found.chosen
    return {"format": 1, "simulated": True, "fit": {
        "base": base, "device": fit.cards[0].stem, "values": found.values, "runs": fit.runner.runs,
        "kept": fit.runner.kept, "seconds": round(fit.runner.seconds, 3), "is_interrupted": fit.is_interrupted,
        "fits_with": chosen and chosen.name},
        "remedies": [remedy_json(found, remedy) for remedy in found.tried]}
