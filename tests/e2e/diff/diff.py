#!/usr/bin/env python3
"""`gpumem diff`: a run twice is no difference, also with moved lines; what changed is named to the byte, in each format.

    diff.py BUILD CORPUS

`go tool pprof` and a browser are not needed: the profile is decoded here, the page is read as text.
"""
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

MIB = 1 << 20
BUILD, CORPUS = (os.path.abspath(path) for path in sys.argv[1:3])
GPUMEM = BUILD + "/report/gpumem"
failed = []


def expect(condition, text):
    if not condition:
        failed.append(text)
        print("FAIL:", text[:2000])


def environment(**more):
    return dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim", LC_ALL="C.UTF-8", **more)


def record(name, program, *arguments, **more):
    subprocess.run([GPUMEM, "run", "-q", "-o", name, "--", f"{BUILD}/tests/{program}", *arguments], check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(**more))
    expect(os.path.exists(name), f"{program} left no trace")


def diff(code, *arguments):
    done = subprocess.run([GPUMEM, "diff", *arguments], capture_output=True, check=False, timeout=120, env=environment())
    text = done.stdout.decode("utf-8", "replace")
    expect(done.returncode == code, f"diff {arguments}: exit code {done.returncode}, not {code}: {text}{done.stderr}")
    return text


def compared(*arguments):
    return json.loads(diff(0, "--json", *arguments))


def changes(answer, section):
    """Function that tells most -> (change, bytes before, bytes after); what callers differ in is united."""
    return {place["function"]: (place["change"], place["bytes_base"], place["bytes_new"])
            for place in answer["places"][section]}


def stacks(answer, section):
    """The frame behind `take` -> the same."""
    return {place["stack"][1]["function"]: (place["change"], place["bytes_base"] // MIB, place["bytes_new"] // MIB)
            for place in answer["places"][section]}


def row(answer, table, name):
    found = [(one["base"], one["new"]) for one in answer[table] if one["name"] == name]
    return found[0] if found else None


def expect_none(what, *arguments):
    answer = compared(*arguments)
    expect(not answer["differs"], f"{what}: {answer}")
    expect("No difference." in diff(0, "--exit-code", *arguments), f"{what}: the text has a difference")


def try_no_difference():
    expect_none("the same trace", "base.trace", "base.trace")
    expect_none("the same program twice", "base.trace", "again.trace")
    expect_none("lines that moved, and another folder", "base.trace", "moved.trace")
    expect_none("no debug info", "base.trace", "bare.trace")
    expect_none("without symbols", "--no-symbols", "base.trace", "again.trace")
    expect_none("a demo that leaks and runs out of memory", "demo.trace", "demo-again.trace")
    expect_none("a summary and its trace", "base.sum", "base.trace")
    for name in sorted(os.listdir(CORPUS)):
        path = os.path.join(CORPUS, name)
        if name.endswith((".trace", ".pickle")):
            done = subprocess.run([GPUMEM, "diff", "--json", path, path], capture_output=True, check=False, timeout=120)
            expect(done.returncode in (0, 3, 4), f"{name}: exit code {done.returncode}")
            expect(not done.stdout or not json.loads(done.stdout)["differs"], f"{name} differs from itself")


EXPECTED_AT_PEAK = {"make_weights": ("grew", 64, 96), "make_mask": ("shrank", 8, 4), "cache_old": ("went", 16, 0),
                    "cache_new": ("came", 0, 20), "forget": ("grew", 2, 5)}


def try_changes():
    for base, new in (("base.trace", "changed.trace"), ("moved.trace", "changed.trace"),
                      ("base.trace", "moved-changed.trace")):
        answer = compared(base, new)
        expect(answer["differs"], f"{base} {new}: no difference")
        expect(stacks(answer, "at_peak") == EXPECTED_AT_PEAK, f"{base} {new} at the peak: {stacks(answer, 'at_peak')}")
        expect(stacks(answer, "leaked") == {"forget": ("grew", 2, 5)}, f"{base} {new}: {stacks(answer, 'leaked')}")
        expect(row(answer, "totals", "peak of device 0") == (90 * MIB, 125 * MIB), f"peak: {answer['totals']}")
        expect(row(answer, "totals", "pinned memory, peak") == (3 * MIB, 3 * MIB), f"pinned: {answer['totals']}")
        expect(row(answer, "phases", "load") == (88 * MIB, 120 * MIB), f"phases: {answer['phases']}")
        expect(row(answer, "libraries", "application") == (90 * MIB, 125 * MIB), f"libraries: {answer['libraries']}")
    back = compared("changed.trace", "base.trace")
    expect(stacks(back, "at_peak")["cache_new"] == ("went", 20, 0), f"backwards: {stacks(back, 'at_peak')}")
    text = diff(1, "--exit-code", "base.trace", "changed.trace")
    expect(max(len(line) for line in text.split("\n")) <= 80, "the text is wider than 80 columns")
    expect(re.search(r"\+32\.0 MiB to 96\.0 MiB +take", text) and re.search(r"-16\.0 MiB went +take", text), text)
    for user in ("make_weights", "cache_new", "cache_old", "make_mask"): # of one function that allocates
        expect(re.search(rf"take .*\n +by {user} ", text), f"{user} is not told from the others: {text}")
    answer = compared("--min-size", "17M", "base.trace", "changed.trace")
    expect(set(stacks(answer, "at_peak")) == {"make_weights", "cache_new"}, f"--min-size: {answer['places']}")
    expect(diff(0, "--exit-code", "--min-size", "100M", "base.trace", "changed.trace").count("No difference."), "100M")


def try_renamed_callers():
    """Who calls a place was renamed: it is still the same place, as its own frames are."""
    answer = compared("base.trace", "callers.trace")
    expect(not answer["differs"], f"renamed callers: {answer['places']}")


def try_formats():
    diff(0, "--html", "out.html", "base.trace", "changed.trace")
    with open("out.html", encoding="utf-8") as file:
        page = file.read()
    expect(page.count('<article class="run"') == 2 and 'data-base="0"' in page, "the page lacks a run or its base")
    expect("What changed" in page and "cache_new" in page and "+32.0 MiB" in page, "the page lacks the difference")
    for user in ("make_weights", "cache_new", "cache_old", "make_mask"):
        expect(re.search(rf"<summary>[^\n]*take[^\n]* by [^\n]*{user}[^\n]*</summary>", page), f"the page does not tell {user}")
    expect("http://" not in page and "https://" not in page, "the page asks for another file")
    diff(0, "--format", "pprof", "-o", "out.pb.gz", "base.trace", "changed.trace")
    samples, strings = profile("out.pb.gz")
    sums = {}
    for values, labels in samples:
        is_base = any(strings[key] == "pprof::base" and strings[text] == "true" for key, text in labels)
        expect(all(value <= 0 for value in values) if is_base else all(value >= 0 for value in values),
               f"pprof: {values} of the {'base' if is_base else 'new run'}")
        sums[is_base] = sums.get(is_base, 0) + values[3]
    expect(sums == {True: -93 * MIB, False: 128 * MIB}, f"pprof: in use {sums}") # with 3 MiB pinned
    diff(2, "--format", "yaml", "base.trace", "changed.trace")


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 2:
            size, at = varint(data, at)
            yield key >> 3, data[at:at + size]
            at += size
        else:
            value, at = varint(data, at)
            yield key >> 3, value


def profile(name):
    """(values, labels as pairs of string numbers) of each sample, and the strings."""
    with gzip.open(name) as file:
        message = list(fields(file.read()))
    strings = [value.decode() for field, value in message if field == 6]
    samples = []
    for field, value in message:
        if field == 2:
            parts = list(fields(value))
            values = [one - (1 << 64) if one >> 63 else one for key, one in parts if key == 2]
            labels = [dict(fields(one)) for key, one in parts if key == 3]
            samples.append((values, [(label.get(1, 0), label.get(2, 0)) for label in labels]))
    return samples, strings


def try_ranks():
    """Ranks are matched by number, whatever their order and files are called."""
    for folder, modes in (("job-base", ("base", "base", "base")), ("job-new", ("base", "changed", "base"))):
        os.mkdir(folder)
        ranks = "".join(f"RANK={rank} WORLD_SIZE=3 {BUILD}/tests/diff_program {mode} & "
                        for rank, mode in reversed(list(enumerate(modes))))
        subprocess.run([GPUMEM, "run", "-q", "-o", folder + "/%r.trace", "--", "/bin/sh", "-c", ranks + "wait"], check=True,
                       env=environment())
    answer = compared("job-base/*.trace", "job-new/*.trace")
    expect(len(answer["base"]["traces"]) == 3 and len(answer["new"]["traces"]) == 3, f"ranks: {answer['new']}")
    expect([(one["name"], one["base"], one["new"]) for one in answer["processes"]] == [("rank 1", 90 * MIB, 125 * MIB)],
           f"ranks: {answer['processes']}")
    expect(stacks(answer, "at_peak")["make_weights"] == ("grew", 192, 224), f"ranks: {stacks(answer, 'at_peak')}")
    expect_none("a job with itself", "job-base/*.trace", "job-base/*.trace")
    shutil.copytree("job-base", "job-less")
    os.remove("job-less/2.trace")
    answer = compared("job-base/*.trace", "job-less/*.trace")
    expect(row(answer, "processes", "rank 2") == (90 * MIB, 0), f"a rank that went: {answer['processes']}")
    for folder in ("job-base", "job-new"):
        subprocess.run([GPUMEM, "summarize", "-o", folder + ".sum", folder],
                       check=True)
    answer = compared("job-base.sum", "job-new.sum")
    expect([one["name"] for one in answer["processes"]] == ["rank 1"], f"summaries: {answer['processes']}")
    expect(changes(answer, "at_peak") == {"take": ("grew", 270 * MIB, 305 * MIB)}, f"summaries: {changes(answer, 'at_peak')}")


def try_exit_codes():
    diff(0, "base.trace", "changed.trace")
    diff(1, "--exit-code", "base.trace", "changed.trace")
    diff(2)
    diff(2, "base.trace")
    diff(2, "base.trace", "changed.trace", "again.trace")
    diff(2, "--min-size", "much", "base.trace", "changed.trace")
    diff(2, "--unknown", "base.trace", "changed.trace")
    diff(3, "base.trace", "missing.trace")
    with open("base.trace", "rb") as whole, open("short.trace", "wb") as file:
        file.write(whole.read()[:100])
    expect(diff(3, "short.trace", "base.trace") == "", "a trace that cannot be read was compared")
    record("cut.trace", "keep", "SIGKILL")
    expect("Incomplete" in diff(0, "cut.trace", "cut.trace"), "nothing says that a trace is incomplete")
    diff(3, "--exit-code", "cut.trace", "cut.trace")
    diff(4, os.path.join(CORPUS, "nothing.trace"), "base.trace")
    os.mkdir("empty")
    diff(3, "empty", "base.trace")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, program, mode in (("base", "diff_program", "base"), ("again", "diff_program", "base"),
                                    ("moved", "diff_moved", "base"), ("bare", "diff_bare", "base"),
                                    ("changed", "diff_program", "changed"), ("moved-changed", "diff_moved", "changed"),
                                    ("callers", "diff_program", "callers")):
            record(name + ".trace", program, mode)
        for name in ("demo", "demo-again"):
            record(name + ".trace", "training_loop", GPUMEM_SIM_MEMORY="2G")
        subprocess.run([GPUMEM, "summarize", "-o", "base.sum", "base.trace"], check=True)
        for part in (try_no_difference, try_changes, try_renamed_callers, try_formats, try_ranks, try_exit_codes):
            part()
        os.chdir("/")
    print("FAILED" if failed else "passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
