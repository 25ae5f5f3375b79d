#!/usr/bin/env python3
"""`gpumem report --html`, as a user of Chromium meets it.

    test_html.py GPUMEM SOURCE EXPORT_TRACES [--figures] [--pictures FOLDER]

What must hold (each broken promise is one line on stderr, and exit code 1):
  - the page asks for nothing but itself and its console stays empty, with names of any kind in it;
  - what it shows are the figures of `gpumem report --json`: totals, peaks, owners, with and without a script;
  - every view works by mouse and by keyboard, and comes back from the address;
  - the same trace gives the same bytes.
--figures measures a trace of 1,000,000 events (no test: they depend on the machine); --pictures saves what it sees.
"""
import argparse
import bisect
import csv
import html.parser
import io
import itertools
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

import browser

problems = 0


def expect(good, text):
    global problems
    if not good:
        problems += 1
        print("FAIL: " + text, file=sys.stderr)


def size_text(size):
    """As page and report write sizes, to three digits."""
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    unit = 0
    while size >= 1024 and unit < 4:
        size /= 1024
        unit += 1
    return f"{size:.{0 if unit == 0 or size >= 100 else 1 if size >= 10 else 2}f} {units[unit]}"


def make_page(arguments, trace, folder, *options):
    path = os.path.join(folder, os.path.basename(trace) + ".html")
    for _ in range(2):
        before = open(path, "rb").read() if os.path.exists(path) else None
        done = subprocess.run([arguments.gpumem, "report", "--html", path, *options, trace], capture_output=True, timeout=120, check=False)
        expect(done.returncode == 0 and not done.stdout, f"{trace}: exit code {done.returncode}, {done.stdout[:80]!r}")
        expect(done.stderr.decode().strip().endswith(f"page written to {path}"), f"{trace}: says {done.stderr!r}")
    with open(path, "rb") as file:
        expect(file.read() == before, f"{trace}: two pages differ")
    return path


def report_of(arguments, trace):
    return json.loads(subprocess.run([arguments.gpumem, "report", "--json", trace], capture_output=True, check=True).stdout)


def quiet(page, what):
    expect(not page.messages, f"{what}: the console says {page.messages}")
    expect([url for url in page.requests if url != page.url.split("#")[0]] == [], f"{what}: asked for {page.requests}")
    page.messages.clear()


class Elements(html.parser.HTMLParser):
    """The elements and the attributes of a page without what its script makes."""

    def __init__(self):
        super().__init__()
        self.found, self.attributes, self.text, self.inside = set(), set(), "", None

    def handle_starttag(self, tag, attrs):
        self.found.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.inside = tag

    def handle_data(self, data):
        if self.inside not in ("script", "style"):
            self.text += data


TAGS = set("html head meta link title style body article header h1 h2 p section ul li b br span i small div figure figcaption svg path "
           "noscript script table thead tbody tr th td details summary ol".split())
ATTRIBUTES = set("lang charset http-equiv content name rel href class viewbox preserveaspectratio role aria-label d type".split())


def check_static(path, report, what):
    """Readable without a script; no name of the trace became markup."""
    with open(path, "rb") as file:
        data = file.read().decode()
    expect(re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", data[data.index("<body>"):data.rindex("<script>")]) is None,
           f"{what}: a control character")
    elements = Elements()
    elements.feed(data)
    expect(elements.found <= TAGS and elements.attributes <= ATTRIBUTES,
           f"{what}: elements {elements.found - TAGS}, attributes {elements.attributes - ATTRIBUTES}")
    for finding in report["findings"]:
        expect(finding["cause"] in elements.text, f"{what}: not said: {finding['cause']}")
    for device in report["devices"]:
        if device["peak"]:
            expect(f"Device {device['id']} at its peak, {size_text(device['peak'])}" in elements.text, f"{what}: no peak of a device")
    left = sum(of["bytes"] for of in report["leaked"].values())
    expect(("Left at the end" in elements.text) == (left > 0), f"{what}: what was left")
    if report["simulated"]:
        expect("imulated" in elements.text, f"{what}: simulated, not said")
    for other in re.findall(r'(?:src|href)="([^"]*)"', data):
        expect(other == "data:,", f"{what}: refers to {other}")


def choose(page, name, value):
    page.value(f"(() => {{ const s = document.querySelector('select[name={name}]'); s.value = {json.dumps(value)}; "
               "s.dispatchEvent(new Event('change')); })()")
    page.settle()


def groups_of(report):
    found = {f"device {device['id']}": (device["peak"], device["live"]) for device in report["devices"] if device["peak"]}
    pinned = report["host"]["pinned"]
    if pinned["peak"]:
        found["host pinned"] = pinned["peak"], pinned["live"]
    for pool in report.get("framework_blocks", []):
        found[f"blocks on device {pool['device']}"] = pool["peak"], pool["live"]
    return found


def check_sums(page, report, what):
    """Each group's peak, and what was never freed, as the report has them."""
    page.key("1")
    shown = page.value("[...document.querySelectorAll('select[name=group] option')].map(o => o.value)")
    for group, (peak, live) in groups_of(report).items():
        expect(group in shown, f"{what}: no {group} among {shown}")
        choose(page, "group", group)
        for metric, size in (("peak", peak), ("leaked", live)):
            choose(page, "metric", metric)
            text = page.text(".sum")
            expect(text.startswith(f"{group}, {metric}, ") and f": {size_text(size)} of" in text,
                   f"{what}: {group} {metric} is {text!r}, not {size_text(size)}")
    choose(page, "metric", "live")


def check_views(page, what):
    """Each view draws, tells, and has a table; by keys."""
    for key, canvas in (("2", ".flame"), ("4", ".addresses"), ("5", ".blocks")):
        page.key(key)
        inked = page.value(f"(() => {{ const c = document.querySelector('canvas{canvas}'), d = c.getContext('2d')"
                           ".getImageData(0, 0, c.width, c.height).data; return new Set(new Uint32Array(d.buffer)).size; })()")
        expect(inked > 2, f"{what}: view {key} shows {inked} colours")
        label = page.value(f"document.querySelector('canvas{canvas}').getAttribute('aria-label')")
        expect(len(label) > 20, f"{what}: view {key} has no name")
    rows = page.value("new Promise(done => { const look = () => document.querySelector('[role=tabpanel] > div > div table tbody tr') ? done(1) : "
                      "requestAnimationFrame(look); look(); })")
    expect(rows == 1, f"{what}: no table of blocks")
    page.key("4")
    expect(page.value("document.querySelectorAll('[role=tabpanel] table tbody tr').length") > 0, f"{what}: no table of segments")
    page.key("3")
    expect(page.value("document.querySelectorAll('[role=tabpanel] tbody tr').length") > 0, f"{what}: no table of functions")


def focus(page, selector):
    page.value(f"document.querySelector('{selector}').focus()")


def address(page):
    """Once the page has written it: it does not do so at each redraw."""
    page.value("new Promise(done => { const look = () => document.documentElement.dataset.address !== 'waits' ? done(1) : "
               "requestAnimationFrame(look); look(); })")
    return page.value("Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")


def check_keys(page, path, what):
    page.open(path)
    focus(page, "canvas.curve")
    whole = page.text(".sum")
    page.key("Home")
    expect(address(page)["time"] == "0", f"{what}: Home leads to {address(page)}")
    expect(": 0 B of" in page.text(".sum"), f"{what}: something lives at the start: {page.text('.sum')}")
    page.key("p")
    expect(page.text(".sum") == whole, f"{what}: p leads to {page.text('.sum')!r}, not {whole!r}")
    page.key("+")
    page.key("+")
    zoomed = address(page)
    expect(0 < float(zoomed["to"]) - float(zoomed["from"]) and "from" in zoomed, f"{what}: + leads to {zoomed}")
    page.key("]")
    page.key("ArrowRight", shift=True)
    page.key("2")
    page.key("m")
    expect(address(page)["metric"] == "peak" and address(page)["tab"] == "flame", f"{what}: keys lead to {address(page)}")
    focus(page, "canvas.flame")
    root = page.text(".flame + .status")
    page.key("ArrowDown")
    expect(page.text(".flame + .status") != root, f"{what}: ArrowDown stays at {root}")
    page.key("Enter")
    page.key("x")
    expect(address(page)["tab"] == "sandwich" and "frame" in address(page), f"{what}: x leads to {address(page)}")
    page.key("?")
    expect(page.value("document.querySelector('dialog').open"), f"{what}: no help")
    page.key("Escape")
    page.key("/")
    page.type("no such name")
    expect(page.value("document.activeElement.name") == "filter", f"{what}: / is not in the filter")
    page.key("Escape")
    page.key("1")
    expect("0 B of 0 places" in page.text(".sum"), f"{what}: the filter leaves {page.text('.sum')}")
    quiet(page, what)
    address(page)
    state = page.value("location.hash")
    before = page.text(".sum"), page.text(".legend")
    page.open(path, state)
    expect((page.text(".sum"), page.text(".legend")) == before, f"{what}: {state} shows {page.text('.sum')}, not {before}")
    page.open(path, "#filter=(&time=x&from=9&to=1&tab=none&group=%3Cb%3E&frame=99999&first=5&last=1")
    quiet(page, f"{what}, a wrong address")


def check_axis(page, path, what):
    """Times of a simulated run mean nothing: its curve goes by calls, and the same is there by time."""
    page.open(path)
    by_calls = page.text(".sum")
    expect(page.value("document.querySelector('select[name=axis]').value") == "calls" and ", at call " in by_calls, f"{what}: {by_calls}")
    page.open(path, "#axis=time")
    by_time = page.text(".sum")
    expect(re.search(r", at \d[\d.]* (ns|us|ms|s|min)", by_time), f"{what}, by time: {by_time}")
    expect(by_calls.split(": ", 1)[1] == by_time.split(": ", 1)[1], f"{what}: {by_calls} by calls, {by_time} by time")


def check_mouse(page, path, what):
    page.open(path)
    page.click("canvas.curve", 0.5)
    middle = page.text(".sum")
    page.click("canvas.curve", 0.95)
    expect(page.text(".sum") != middle, f"{what}: a click changes nothing")
    page.drag("canvas.curve", (0.3, 0.5), (0.6, 0.5))
    expect("first" in address(page), f"{what}: a drag makes no range: {address(page)}")
    page.wheel("canvas.curve", 0.5, -200)
    expect("from" in address(page), f"{what}: the wheel does not zoom")
    page.click("canvas.curve", 0.5, times=2)
    page.click("[data-tab=flame]")
    page.click("canvas.flame", 0.3, 0.9)
    page.click("[data-tab=blocks]")
    page.click("canvas.blocks", 0.7)
    quiet(page, what)


def check_difference(arguments, page, traces, folder):
    """A run compared with another: what grew comes first, by how much; so by the address alone."""
    path = os.path.join(folder, "difference.html")
    clean = os.path.join(arguments.source, "tests/corpus/clean.trace")
    subprocess.run([arguments.gpumem, "report", "--html", path, clean, traces["leak"]], capture_output=True, timeout=60, check=True)
    page.open(path, "#base.1=0&metric.1=leaked&time=0")
    panel = "document.querySelectorAll('article')[1].querySelector('[role=tabpanel]')"
    expect("compared with process" in page.value(f"{panel}.innerText"), f"difference: {page.value(f'{panel}.innerText')}")
    rows = page.value(f"[...{panel}.querySelectorAll('tbody tr')].map(r => r.children[0].textContent)")
    expect(rows == ["+1.00 MiB"], f"difference of what was never freed: {rows}")
    page.value("document.querySelectorAll('article')[1].querySelector('[data-tab=flame]').click()")
    page.settle()
    expect("; 0 B before" in page.value(f"{panel}.innerText"), f"difference, flame graph: {page.value(f'{panel}.innerText')}")
    shown = {}
    for tab, words in (("sandwich", "compared with process"), ("addresses", "in segments, "), ("blocks", "of addresses in use")):
        page.value(f"document.querySelectorAll('article')[1].querySelector('[data-tab={tab}]').click()")
        page.value(f"new Promise(done => {{ const look = () => {panel}.innerText.includes({json.dumps(words)}) ? done(1) : requestAnimationFrame(look); look(); }})")
        shown[tab] = page.value(f"{panel}.innerText")
    page.value("document.querySelectorAll('article')[1].querySelector('[data-tab=sandwich]').click()")
    page.settle()
    rows = page.value(f"[...{panel}.querySelectorAll('tbody tr')].map(r => r.children[0].textContent)")
    expect(rows and set(rows) == {"+1.00 MiB"}, f"difference, functions: {rows}")
    expect(": 9.00 MiB in 1 segment;" in shown["addresses"] and ": +9.00 MiB in segments, +4.00 MiB free" in shown["addresses"] and
           "Before, at call 0: 0 B in 0 segments" in shown["addresses"],
           f"difference, address map: {shown['addresses']}")
    expect("Before: process" in shown["blocks"] and "lifetimes, " in shown["blocks"], f"difference, block map: {shown['blocks']}")
    page.value(f"{panel}.querySelector('tbody tr').click()")
    page.settle()
    expect("; 0 B before" in page.value(f"{panel}.innerText"), f"difference, a function: {page.value(f'{panel}.innerText')}")
    quiet(page, "difference")


def check_several(arguments, page, traces, folder):
    """Several traces make one page; one that is unreadable is missing there, and told by the exit code."""
    path = os.path.join(folder, "several.html")
    paths = [traces["leak"], traces["hostile"], os.path.join(arguments.source, "tests/corpus/text.trace")]
    done = subprocess.run([arguments.gpumem, "report", "--html", path, *paths], capture_output=True, timeout=60, check=False)
    expect(done.returncode == 3 and not done.stdout, f"several: exit code {done.returncode}, {done.stdout[:80]!r}")
    page.open(path)
    expect(page.value("document.querySelectorAll('article.run canvas.curve').length") == 2, "several: no two curves")
    page.value("document.querySelectorAll('canvas.curve')[1].focus()")
    page.key("2")
    expect(address(page).get("tab.1") == "flame" and address(page).get("tab") == "owners", f"several: {address(page)}")
    quiet(page, "several")
    expect(page.value("document.querySelectorAll('.ranks canvas').length") == 2, "several: not side by side")
    expect(page.value("document.querySelectorAll('.all tbody tr').length") == 2, "several: no table of them")
    check_difference(arguments, page, traces, folder)
    missing = os.path.join(folder, "missing.html")
    done = subprocess.run([arguments.gpumem, "report", "--html", missing, paths[2]], capture_output=True, timeout=60, check=False)
    expect(done.returncode == 3 and not os.path.exists(missing), "a page of no trace")


BLOCKS_HIGH = 420 # rows of the block map
SCALE_WIDE = 64 # what stands left of it


def rows_of_map(arguments, trace, group):
    """For each row of the block map, from the export of the trace: begin, end, address, size of what lies there."""
    text = subprocess.run([arguments.gpumem, "export", "-f", "csv", trace], capture_output=True, check=True).stdout.decode()
    lives = [(int(row["begin_ns"]), int(row["end_ns"] or 1 << 62), int(row["address"], 16), int(row["bytes"]))
             for row in csv.DictReader(io.StringIO(text)) if row["is_block"] == "1" and group.endswith(f"device {row['device']}")]
    regions = []
    for _, _, address, size in sorted(lives, key=lambda life: life[2]):
        if regions and address <= regions[-1][1]:
            regions[-1][1] = max(regions[-1][1], address + size)
        else:
            regions.append([address, address + size])
    starts = [start for start, _ in regions]
    above = list(itertools.accumulate((end - start for start, end in regions), initial=0))
    rows = [[] for _ in range(BLOCKS_HIGH)]
    for life in lives:
        region = bisect.bisect_right(starts, life[2]) - 1
        offset, scale = above[region] + life[2] - starts[region], BLOCKS_HIGH / above[-1]
        top = min(int(offset * scale), BLOCKS_HIGH - 1)
        for row in range(top, min(max(int((offset + life[3]) * scale), top + 1), BLOCKS_HIGH)):
            rows[row].append(life)
    return rows


def check_pixels(page, rows, what):
    """At points of the map it tells of what touches them; of what covers a pixel, of the one that began last."""
    wide = page.value("document.querySelector('canvas.blocks').width") - SCALE_WIDE
    names = json.loads(page.value("document.querySelector('script.names').textContent"))
    view = address(page)
    start, end = float(view.get("from", 0)), float(view.get("to", names["duration"]))
    points = [(x * 37 % wide, x * 101 % BLOCKS_HIGH) for x in range(300)]
    told = page.value(f"""(() => {{ const canvas = document.querySelector('canvas.blocks'), box = canvas.getBoundingClientRect();
        return {json.dumps(points)}.map(([x, y]) => {{
          canvas.dispatchEvent(new PointerEvent('pointermove', {{ clientX: box.left + {SCALE_WIDE} + x + 0.5, clientY: box.top + y + 0.5 }}));
          return document.querySelector('.blocks + .status').textContent; }}); }})()""")
    pixel = (end - start) / wide
    for (x, y), text in zip(points, told):
        left = start + x * pixel
        near = [life for life in rows[y] if life[0] < left + 2 * pixel and life[1] > left - pixel]
        over = [life for life in near if life[0] <= left and life[1] >= left + pixel]
        texts = {f"0x{life[2]:x}: {size_text(life[3])}, ": life for life in sorted(near)}
        found = next((life for start_of, life in texts.items() if text.startswith(start_of)), None)
        good = found and found[0] >= max((life[0] for life in over), default=0) if text != "free" else not over
        expect(good, f"{what}: at {x}, {y} it tells {text!r}; there are {near}")


def check_map(arguments, page, folder):
    """More lifetimes than are drawn one by one, at several zooms."""
    trace = os.path.join(folder, "many.trace")
    subprocess.run([arguments.export_traces, "training", trace, "300000"], check=True)
    page.open(make_page(arguments, trace, folder), "#axis=time")
    page.key("5")
    focus(page, "canvas.blocks")
    rows = rows_of_map(arguments, trace, address(page)["group"])
    for zoom in ("", "+", "++", "++++++"):
        for key in zoom:
            page.key(key)
        check_pixels(page, rows, f"block map, zoomed by {zoom!r}")
    quiet(page, "block map")


def check_thin(arguments, page, folder):
    """A trace too large for its page: it says what was merged, and its totals are exact all the same."""
    trace = os.path.join(folder, "large.trace")
    subprocess.run([arguments.export_traces, "training", trace, "60000"], check=True)
    report, sizes = report_of(arguments, trace), {}
    for size in ("100M", "100K", "20K"):
        path = make_page(arguments, trace, folder, "--html-size", size)
        sizes[size] = os.path.getsize(path)
        page.open(path)
        note = page.value("[...document.querySelectorAll('.note')].some(e => e.textContent.startsWith('To fit the page'))")
        expect(note == (size != "100M"), f"large, {size}: the page says {note} of what was merged")
        check_sums(page, report, f"large, {size}")
        allocated = set()
        for group in groups_of(report):
            choose(page, "group", group)
            choose(page, "metric", "allocated")
            allocated.add((group, page.text(".sum")))
        expect(sizes.setdefault("allocated", allocated) == allocated, f"large, {size}: {allocated}, not {sizes['allocated']}")
        choose(page, "metric", "live")
        if size != "20K": # there nothing is left to draw on the maps
            check_views(page, f"large, {size}")
        quiet(page, f"large, {size}")
    expect(sizes["20K"] < sizes["100K"] < 350_000 < sizes["100M"], f"large: sizes {sizes}")


def check_escapes(page, what):
    """Names of the trace stand in the page as text; none of them ran."""
    expect(page.value("document.querySelectorAll('img, iframe, object, embed, form:not(dialog form)').length") == 0, f"{what}: elements")
    expect(page.value("document.title") == "gpumem report", f"{what}: the title is {page.value('document.title')}")
    expect("<img src=x onerror=alert(1)>" in page.value("document.body.textContent"), f"{what}: a name is missing")


def figures(arguments, folder):
    trace = os.path.join(folder, "million.trace")
    subprocess.run([arguments.export_traces, "training", trace, "1000000"], check=True)
    path = trace + ".html"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    subprocess.run([arguments.gpumem, "report", "--html", path, trace], check=True, stderr=subprocess.DEVNULL)
    wall = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"written in {wall:.2f} s ({after.ru_utime - before.ru_utime:.2f} s of CPU), {os.path.getsize(path) / 1e6:.1f} MB")
    with browser.Browser() as page:
        page.open(path)
        entries = "performance.getEntriesByName({}).map(e => e.duration || e.startTime)"
        print(f"first paint {page.value(entries.format(json.dumps('first-contentful-paint')))[0]:.0f} ms, "
              f"all views ready {page.value(entries.format(json.dumps('gpumem-load')))[0]:.0f} ms")
        for key, name in (("1", "owners"), ("2", "flame graph"), ("3", "functions"), ("4", "address map"), ("5", "block map")):
            page.key(key)
            page.value("performance.clearMeasures()")
            taken = page.cpu()
            for turn in range(20):
                page.wheel("canvas.curve", 0.2 + turn / 30, -120 if turn < 12 else 200)
            zoom = sorted(page.value(entries.format(json.dumps("gpumem-redraw"))))
            taken = (page.cpu() - taken) / len(zoom)
            page.value("performance.clearMeasures()")
            for turn in range(20):
                page.click("canvas.curve", 0.1 + turn / 25)
            click = sorted(page.value(entries.format(json.dumps("gpumem-redraw"))))
            print(f"{name}: a redraw while zooming {zoom[len(zoom) // 2]:.0f} ms, at most {zoom[-1]:.0f} "
                  f"({1e3 * taken:.0f} ms of CPU with all that the browser does for it); "
                  f"another moment {click[len(click) // 2]:.0f} ms, at most {click[-1]:.0f}")


def pictures(folder, name, path):
    for dark in (False, True):
        for width in (1280, 420):
            with browser.Browser(width=width, dark=dark) as page:
                page.open(path)
                for tab in "12345":
                    page.key(tab)
                    page.screenshot(os.path.join(folder, f"{name}-{tab}-{'dark' if dark else 'light'}-{width}.png"))


def main():
    parser = argparse.ArgumentParser()
    for name in ("gpumem", "source", "export_traces"):
        parser.add_argument(name)
    parser.add_argument("--figures", action="store_true")
    parser.add_argument("--pictures")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if not browser.find():
            print("SKIP: no Chromium on this machine")
            return 0
        if arguments.figures:
            figures(arguments, folder)
            return 0
        traces = {name: os.path.join(arguments.source, f"tests/corpus/{name}.trace")
                  for name in ("leak", "pool", "phases", "hostile-text", "nothing", "deep", "graphs", "flight")}
        for name, *more in (("hostile",), ("training", "5000")):
            traces[name] = os.path.join(folder, name + ".trace")
            subprocess.run([arguments.export_traces, name, traces[name], *more], check=True)
        with browser.Browser() as page:
            for name, trace in traces.items():
                path, report = make_page(arguments, trace, folder), report_of(arguments, trace)
                check_static(path, report, name)
                page.open(path)
                if any(peak for peak, _ in groups_of(report).values()):
                    check_sums(page, report, name)
                    check_views(page, name)
                quiet(page, name)
                if name == "hostile":
                    check_escapes(page, name)
                if name == "training":
                    check_keys(page, path, name)
                    check_axis(page, path, name)
                    check_mouse(page, path, name)
                if arguments.pictures and name in ("training", "pool", "hostile"):
                    pictures(arguments.pictures, name, path)
            check_several(arguments, page, traces, folder)
            check_thin(arguments, page, folder)
            check_map(arguments, page, folder)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
