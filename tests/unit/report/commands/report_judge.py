#!/usr/bin/env python3
"""Checks what gpumem says about traces with a known truth, and that it says the same everywhere.

    report_judge.py GPUMEM JUDGE_TRACES SOURCE

For each story of judge_traces.c: the exit code of check, and what the text of report must and must not contain, and
what the JSON must. Then, for these and for all of tests/corpus: exit code, verdict, notes and the numbers of the text
are those of the JSON, and the numbers of the verdict are those of its own totals.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

problems = 0
MIB = 1 << 20


def expect(good, text):
    global problems
    if not good:
        problems += 1
        print("FAIL: " + text, file=sys.stderr)


def run(gpumem, *arguments, folder=None):
    done = subprocess.run([gpumem, *arguments], capture_output=True, text=True, cwd=folder, timeout=60, check=False,
                          env=dict(os.environ, LC_ALL="C.UTF-8"))
    return done.returncode, done.stdout, done.stderr


def flat(text):
    return " ".join(text.split())


# ---- the stories: exit code of check, text that must be there, text that must not, members of the JSON

STORIES = {
    "clean": (0, ["No leaks"], ["INCOMPLETE", "Notes"], {"gaps": []}),
    "lost-free": (3, ["INCOMPLETE: 1 address was allocated again"], ["No leaks"], {"lost_frees": 1}),
    "unknown-free": (3, ["INCOMPLETE: 1 free succeeded of memory"], ["No leaks"], {"unknown_frees": 1}),
    "refused-free": (0, ["No leaks"], ["INCOMPLETE"], {"unknown_frees": 0}),
    "malformed": (3, ["INCOMPLETE: 1 record makes no sense"], ["No leaks"], {"malformed": 1}),
    "huge": (3, ["INCOMPLETE: 1 record makes no sense", "peak 1.00 MiB"], ["No leaks"], {"malformed": 1}),
    "newer-record": (3, ["INCOMPLETE: 1 record is of a kind"], ["No leaks"], {"not_understood": 1}),
    "newer-counter": (3, ["INCOMPLETE: 1 trouble was counted by a newer recorder"], ["No leaks"], {}),
    "unwritten": (3, ["5 records could not be written"], ["No leaks"], {}),
    "one-stack-cut": (0, ["No leaks", "Notes", "1 stack is cut"], ["1 stacks", "INCOMPLETE"], {}),
    "young": (3, ["2.00 MiB live in 2 allocations at that moment"], ["eaked"], {}),
    "cut": (3, ["110 MiB live in 2 allocations at that moment, peak 110 MiB on device 0",
                "5.00 MiB of host memory live in 1 allocation"], ["15.0 MiB live in"], {}),
    "skew": (1, ["10.0 MiB leaked in 1 allocation, peak 10.0 MiB"], ["INCOMPLETE"], {"lost_frees": 0}),
    "skew-of-a-birth": (0, ["No leaks, peak 10.0 MiB"], ["INCOMPLETE"], {"unknown_frees": 0}),
    "skew-of-a-failed-free": (1, ["10.0 MiB leaked in 1 allocation"], ["INCOMPLETE"], {"unknown_frees": 0}),
    "late-free": (3, ["allocated again without a free on record"], ["No leaks"], {"lost_frees": 1}),
    "one-thread": (3, ["allocated again without a free on record"], ["No leaks"], {"lost_frees": 1}),
    "launches": (1, ["4.00 MiB leaked in 1 allocation"], ["INCOMPLETE"], {"lost_frees": 0}),
    "launches-apart": (3, ["allocated again without a free on record"], ["No leaks"], {"lost_frees": 1}),
    "full": (1, ["The driver refused 300 MiB when the process had 900 MiB"], ["fragmentation"], {}),
    "full-of-others": (1, ["The driver refused 300 MiB when the process had 900 MiB"], ["fragmentation"], {}),
    "fragmented": (1, ["in holes of at most 156 MiB: fragmentation."], ["cannot be told"], {}),
    "of-unknown-size": (1, ["whether fragmentation refused it cannot be told"],
                        ["fragmentation alone", "MiB: fragmentation"], {}),
    "ipc": (0, ["No leaks"], ["another owner"], {}),
    "ipc-open": (0, ["No leaks", "8.00 MiB of another owner, or held by a vendor's library"], [], {}),
    "without-stacks": (1, ["1.00 MiB 0% (no stack was recorded) 1 x cudaMalloc ", "300 MiB 100% (no stack was recorded) 3 x cudaMallocAsync"],
                       ["4 x cudaMalloc", "2 x cudaMemcpy"], {}),
    "setup": (0, ["No leaks"], ["Temporaries", "a second"], {}),
    "temporaries": (0, ["Temporaries", "400 of 400 x cudaMalloc"], ["a second"], {}),
    "managed": (1, ["Peak of device 0 3.00 GiB, the device has 2.00 GiB"], ["3.00 GiB of 2.00 GiB"], {}),
    "paths": (1, [".../way/down/to/training.py:12"], [], {}),
}


def check_story(gpumem, name, path):
    code, said, unsaid, members = STORIES[name]
    got, judged, _ = run(gpumem, "check", path)
    expect(got == code, f"{name}: check ended with {got}, not {code}")
    _, text, _ = run(gpumem, "report", "-v", path)
    for words in said:
        expect(words in flat(text), f"{name}: not said: {words}\n{text}")
    for words in unsaid:
        expect(words not in flat(text) and words not in flat(judged), f"{name}: wrongly said: {words}\n{text}")
    report = json.loads(run(gpumem, "report", "--json", path)[1])
    for member, value in members.items():
        expect(report[member] == value, f"{name}: {member} is {report[member]}, not {value}")


def check_spelling(gpumem, path):
    """One file has one spelling, however much room there is."""
    text = run(gpumem, "report", path)[1] + run(gpumem, "report", "-v", path)[1]
    spellings = set(re.findall(r"\S*training\.py", text))
    expect(len(spellings) == 1, f"one file is spelled as {spellings}")


# ---- which traces are the newest run: written in this order, the last one the newest

SECOND = 1000000000
RUNS = {
    "ranks of one run": ([("cut", "r3", "run=a pid=3"), ("clean", "r7", "run=a pid=7")], ["r3", "r7"], 3),
    "an older run": ([("cut", "old", "run=a pid=3"), ("clean", "new", "run=b pid=3")], ["new"], 0),
    "with and without an id": ([("cut", "old", "run=a pid=3"), ("clean", "new", "pid=4")], ["new"], 0),
    "ranks without an id": ([("cut", "r3", "pid=3 parent=2"), ("clean", "r7", "pid=7 parent=2")], ["r3", "r7"], 3),
    "ranks of a lost launcher": ([("cut", "r3", "pid=3"), ("clean", "r7", "pid=7")], ["r3", "r7"], 3),
    "one after another": ([("lost-free", "old", "pid=3 parent=2"),
                           ("clean", "new", f"pid=7 parent=2 start={SECOND}")], ["new"], 0),
    "one right after another": ([("lost-free", "old", f"pid=3 parent=2 began=99 start={SECOND}"),
                                 ("clean", "new", f"pid=7 parent=2 began=100 start={SECOND + 5000000}")], ["new"], 0),
    "an exec": ([("lost-free", "first", "pid=3 began=1"),
                 ("clean", "second", f"pid=3 began=1 generation=1 start={SECOND}")], ["first", "second"], 3),
    "a copy": ([("lost-free", "old", "pid=3"), ("clean", "new", "pid=3")], ["new"], 0),
    "another machine": ([("lost-free", "old", "pid=3 boot=x"), ("clean", "new", "pid=4 boot=y")], ["new"], 0),
    "a helper": ([("lost-free", "rank", "pid=3"), ("nothing", "helper", "pid=4 parent=99")], ["helper", "rank"], 3),
    "a helper alone": ([("clean", "old", "pid=3"), ("nothing", "new", f"pid=4 start={SECOND}")], ["new"], 4),
    "a rank that died before a helper began": (
        [("lost-free", "r3", "pid=3 parent=2"), ("running", "r7", "pid=7 parent=2"),
         ("nothing", "helper", f"pid=9 parent=8 start={SECOND}")], ["r3", "r7", "helper"], 3),
}


def write_run(writer, folder, traces):
    for number, (story, name, members) in enumerate(traces):
        path = os.path.join(folder, name + ".trace")
        subprocess.run([writer, story, path, *members.split()], check=True)
        os.utime(path, (1000 + number, 1000 + number))


def check_run(gpumem, writer, name):
    traces, members, code = RUNS[name]
    with tempfile.TemporaryDirectory() as folder:
        write_run(writer, folder, traces)
        got, _, said = run(gpumem, "check", folder=folder)
        expect(got == code, f"{name}: check ended with {got}, not {code}")
        shown = json.loads(run(gpumem, "report", "--json", folder=folder)[1])
        found = [report["trace"][:-6] for report in shown.get("traces", [shown])]
        expect(found == members or sorted(found) == sorted(members) == found, f"{name}: {found}, not {members}")
        left_out = len(traces) - len(members)
        expect((f"{len(members)} trace{plural(len(members))}; left out: {left_out}" in said) == (left_out > 0),
               f"{name}: said {said!r}")


# ---- text, verdict and JSON of any trace


def size_text(size):
    """As report/base/size.c rounds."""
    value, unit = float(size), 0
    while value >= (1023.5 if unit == 0 else 1023.5) and unit < 5:
        value, unit = value / 1024, unit + 1
    digits = 0 if unit == 0 else 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f} {('B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB')[unit]}"


def plural(count):
    return "" if count == 1 else "s"


def living(tallies):
    tallies = list(tallies)
    return {"bytes": sum(tally["live"] for tally in tallies),
            "count": sum(tally["allocs"] - tally["frees"] - tally["implicit_frees"] for tally in tallies)}


def recompute(report):
    """The verdict, from the totals elsewhere in the JSON."""
    kinds = [tally for device in report["devices"] for kind, tally in device["kinds"].items() if kind != "external"]
    leaks = [leak for leak in report["leaks"] if leak["class"] == "leak"]
    leaked = {"bytes": sum(leak["bytes"] for leak in leaks), "count": sum(leak["count"] for leak in leaks)}
    verdict = {"on_devices": living(kinds), "on_host": living(report["host"].values()), "leaked": leaked}
    if report["verdict"]["state"] == "nothing":  # the JSON does not have all blocks and copies that decide this
        expect(not report["devices"], "nothing recorded, and yet devices")
        state = "nothing"
    elif report["ending"] != "normal":
        state = "live"
    elif leaked["count"]:
        state = "leaks"
    else:
        state = "no leaks" if report["complete"] else "no leaks seen"
    return dict(verdict, state=state)


def sentence(report):
    """The expected first line."""
    verdict = report["verdict"]
    if verdict["state"] == "live":
        place = verdict["on_devices"]
        return f"{size_text(place['bytes'])} live in {place['count']:,} allocation{plural(place['count'])} at that moment"
    if verdict["state"] == "leaks":
        place = verdict["leaked"]
        return f"{size_text(place['bytes'])} leaked in {place['count']:,} allocation{plural(place['count'])}"
    sound = not any(finding["severity"] != "note" for finding in report["findings"]) and not report["failed"] and not any(
        pool["out_of_memory"] for pool in report.get("framework_blocks", []))
    return {"nothing": "Nothing was recorded", "no leaks": "No leaks" if sound else "Nothing was left at the end",
            "no leaks seen": "Nothing live at the end, in what could be read"}[verdict["state"]]


def check_agreement(gpumem, name, path):
    code, shown, _ = run(gpumem, "report", "--json", path)
    if code:
        return
    report = json.loads(shown)
    for option in ([], ["-v"]):
        check_page(name, report, flat(run(gpumem, "report", *option, path)[1]))
    judged, said, _ = run(gpumem, "check", path)
    check_judgement(name, report, judged, said)


def check_page(name, report, text):
    expect(report["verdict"] == recompute(report), f"{name}: verdict {report['verdict']}, not {recompute(report)}")
    expect(sentence(report) in text, f"{name}: not said: {sentence(report)}")
    expect(report["complete"] == (not any(gap["loss"] for gap in report["gaps"])), f"{name}: complete and gaps differ")
    for gap in report["gaps"]:
        expect(flat(gap["text"]) in text, f"{name}: not in the text: {gap['text']}")
        if gap["count"] == 1:
            expect(not re.search(r"\b1 (addresses|calls|frames|frees|names|nodes|parts|records|stacks)\b", gap["text"]),
                   f"{name}: one is no plural: {gap['text']}")
    sound = not any(finding["severity"] != "note" for finding in report["findings"])
    expect(sound or "No leaks" not in text, f"{name}: 'No leaks' above a finding")
    for device in report["devices"]:
        if device["peak"] and device["id"] >= 0:
            expect(f"Peak of device {device['id']} {size_text(device['peak'])}" in text, f"{name}: another peak")


def check_judgement(name, report, judged, said):
    leaks = f"leaks {size_text(report['verdict']['leaked']['bytes'])} in {report['verdict']['leaked']['count']:,} "
    if not report["complete"]:
        expect(judged == 3, f"{name}: incomplete, and check ends with {judged}")
    elif report["verdict"]["state"] == "nothing":
        expect(judged == 4, f"{name}: nothing recorded, and check ends with {judged}")
    else:
        expect(judged == (report["verdict"]["leaked"]["bytes"] > 0), f"{name}: check ends with {judged}")
        expect(leaks in flat(said), f"{name}: check does not say: {leaks}")
    for gap in report["gaps"]:
        expect(flat(gap["text"]) in flat(said), f"{name}: check does not say: {gap['text']}")


def main():
    gpumem, writer, source = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
    with tempfile.TemporaryDirectory() as folder:
        for name in STORIES:
            path = os.path.join(folder, name + ".trace")
            subprocess.run([writer, name, path], check=True)
            check_story(gpumem, name, path)
            check_agreement(gpumem, name, path)
        check_spelling(gpumem, os.path.join(folder, "paths.trace"))
    for name in RUNS:
        check_run(gpumem, writer, name)
    corpus = os.path.join(source, "tests/corpus")
    for name in sorted(os.listdir(corpus)):
        if name.endswith(".trace"):
            check_agreement(gpumem, name, os.path.join(corpus, name))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
