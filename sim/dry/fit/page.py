"""The answer of `gpumem fit` as a page: the need over the values, and remedies side by side. No script, nothing loaded."""
import contextlib
import html
import io

import answer
import remedies
from answer import size

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222; background: #fff }
h1 { font-size: 1.3em } table { border-collapse: collapse } td, th { padding: .2em .8em; text-align: right }
td:last-child, th:last-child { text-align: left } tr:nth-child(even) { background: #f4f4f4 } pre { background: #f4f4f4;
padding: .6em; overflow-x: auto } .fits { fill: #2a7d3f } .no { fill: #b3261e } .line { stroke: #888; fill: none }
.limit { stroke: #b3261e; stroke-dasharray: 6 4 } .bar { fill: #4a78b5 } .cache { fill: #b9cce4 } text { font-size: 12px }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd } tr:nth-child(even), pre { background: #262626 }
text { fill: #ddd } }
"""
WIDTH, HEIGHT, LEFT = 720, 300, 90


def text(value):
    return html.escape(answer.clean(str(value)))


def curve(row, name):
    """Needs over the values of one search; values that were refused stand at what they need at least."""
    search = row.search
    points = [(search.numbers[value], value, point) for value, point in search.points.items()]
    points = sorted(((x, value, point, point.need() if point.need() is not None else point.result().peak)
                     for x, value, point in points), key=lambda one: one[0])
    # What is far beyond the capacity would make all else flat.
    shown = [one for one in points if one[3] <= 2 * row.capacity] or points[:1]
    low, high = shown[0][0], max(shown[-1][0], shown[0][0] + 1)
    top = max([row.capacity, *(one[3] for one in shown)]) * 1.1 or 1

    def at(x, need):
        return LEFT + (x - low) / (high - low) * (WIDTH - LEFT - 30), HEIGHT - 30 - need / top * (HEIGHT - 50)

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="need over {text(name)}">']
    _, y = at(low, row.capacity)
    parts.append(f'<line class="limit" x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}"/>'
                 f'<text x="2" y="{y + 4:.1f}">{size(row.capacity)}</text>')
    path = " ".join("{:.1f},{:.1f}".format(*at(x, need)) for x, _, point, need in shown if point.need() is not None)
    parts.append(f'<polyline class="line" points="{path}"/>')
    for x, value, point, need in shown:
        left, up = at(x, need)
        verdict = answer.verdict_of(point, row)
        parts.append(f'<circle class="{"fits" if verdict == "fits" else "no"}" cx="{left:.1f}" cy="{up:.1f}" r="5"><title>'
                     f'{text(value)}: {size(need)}, {answer.WORDS[verdict]}</title></circle>'
                     f'<text x="{left:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{text(value)}</text>')
    return "".join(parts) + "</svg>"


def table(heads, lines):
    rows = [f"<tr>{''.join(f'<th>{text(head)}</th>' for head in heads)}</tr>"]
    rows += [f"<tr>{''.join(f'<td>{text(cell)}</td>' for cell in line)}</tr>" for line in lines]
    return f"<table>{''.join(rows)}</table>"


def bars(found):
    """The need of each remedy that helps, PyTorch's cache in a lighter colour; and what the device has."""
    lines = [("as it is", found.base)] + [(remedy.name, remedy.result) for remedy in
                                          sorted(filter(found.helps, found.tried), key=found.rank) if remedy.result]
    top = max(found.capacity, *(result.most for _, result in lines)) * 1.02
    scale, wide = (WIDTH - 330) / top, 22
    parts = [f'<svg viewBox="0 0 {WIDTH} {wide * len(lines) + 10}" role="img" aria-label="needs">']
    for number, (name, result) in enumerate(lines):
        y = number * wide
        parts.append(f'<text x="240" y="{y + 15}" text-anchor="end">{text(name[:40])}</text>'
                     f'<rect class="cache" x="250" y="{y + 3}" width="{result.most * scale:.1f}" height="{wide - 6}"/>'
                     f'<rect class="bar" x="250" y="{y + 3}" width="{result.without_cache * scale:.1f}" height="{wide - 6}"/>'
                     f'<text x="{255 + result.most * scale:.1f}" y="{y + 15}">{size(result.most)}</text>')
    x = 250 + found.capacity * scale
    parts.append(f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{wide * len(lines)}"/>')
    return "".join(parts) + "</svg>"


def remedies_body(found):
    if not found.program:
        return ""
    parts = [bars(found)]
    for remedy in sorted(filter(found.helps, found.tried), key=found.rank):
        if remedy.parts == [remedy]:
            where = remedies.place_text(remedy.where)
            parts.append(f"<h3>{text(remedy.name)}</h3><p>Saves {size(max(found.saves(remedy)))}, {remedy.kind}"
                         f"{'; ' + text(where) if where else ''}; {text(remedy.cost)}.</p>"
                         f"<pre>{text_of_lines(remedy.write)}</pre>")
    return "".join(parts)


def text_of_lines(lines):
    return "\n".join(map(text, lines))


def searches_body(fit):
    parts = []
    for row in fit.rows:
        points = row.all_points()
        if not points:
            continue
        name = fit.options.axes[0].name if fit.options.axes else ""
        parts.append(f"<h3>{text(row.card.key())} {text(answer.fixed_text(row))}</h3>")
        if row.search and len(points) > 1:
            parts.append(curve(row, name))
        order = sorted(points, key=row.search.numbers.get) if row.search else list(points)
        parts.append(table([name, "verdict", "needs", ""],
                           [[value or "", *answer.point_line(points[value], row)] for value in order]))
    return "".join(parts)


def write(path, fit):
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        answer.print_text(fit)
    first, _, rest = told.getvalue().partition("\n")
    body = remedies_body(fit.remedies) if fit.remedies else searches_body(fit)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8"><title>gpumem fit</title><style>{STYLE}</style>'
                   f"<h1>{text(first)}</h1>{body}<h2>As text</h2><pre>{html.escape(rest)}</pre></html>\n")
