#!/usr/bin/env python3
"""Several processes in one report, and summaries of them.

    report_ranks.py GPUMEM PROGRAM LIBRARIES

PROGRAM leaks and runs out of memory on a device of 2 GiB. What must hold: one table whose numbers are those of the
JSON, the one that ran out first, the odd one out with the lines in which it differs, the page of the worst; helpers
are one line. Summaries merge to the same bytes in any order and grouping, a report of them says what one of their
traces says, and hostile ones are left out. A thousand of them take a bounded time and memory.
"""
import itertools
import json
import os
import re
import resource
import subprocess
import sys
import tempfile

from report_judge import size_text

GPUMEM, PROGRAM, LIBRARIES = (os.path.abspath(path) for path in sys.argv[1:4])
problems = 0


def expect(good, text):
    global problems
    if not good:
        problems += 1
        print("FAIL: " + text, file=sys.stderr)


def run(*arguments, folder=None, limit=None, **more):
    environment = dict(os.environ, LD_LIBRARY_PATH=LIBRARIES, **dict({"LC_ALL": "C.UTF-8"}, **more))

    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    done = subprocess.run(arguments, capture_output=True, cwd=folder, timeout=120, check=False, env=environment,
                          preexec_fn=bound if limit else None)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def record(folder):
    """A job of three ranks, of which one has more memory and so holds more, and a helper."""
    for rank, memory in ((0, "2G"), (1, "3G"), (2, "2G")):
        run(GPUMEM, "run", "-q", "-o", "rank%r.trace", PROGRAM, folder=folder, RANK=str(rank), LOCAL_RANK=str(rank),
            WORLD_SIZE="3", SLURM_JOB_ID="4711", GPUMEM_SIM_MEMORY=memory)
    names = sorted(os.listdir(folder))
    expect(names == ["rank0.trace", "rank1.trace", "rank2.trace"], f"%r: {names}")
    return names


def check_table(text, reports):
    rows = {int(row[0]): row for row in re.findall(
        r"^  rank (\d+) +(\d+) +(\S+ \S+) +(-|\S+ \S+) +(-|\S+ \S+) +(-|\S+ \S+)  (first|\+\S+ \S+|-) +(.*)$", text, re.M)}
    peaks = {}
    for report in reports:
        device = report["devices"][0]
        peaks[report["rank"]] = device["peak"]
        row = rows.get(report["rank"])
        expect(row is not None, f"no row of rank {report['rank']}\n{text}")
        if row:
            expect(row[2] == size_text(device["peak"]), f"peak of rank {report['rank']}: {row}")
            expect(row[7] == f"exit code {report['exit_code']}", f"end of rank {report['rank']}: {row}")
    failed = {report["rank"]: report["start_realtime_ns"] + min(one["time_ns"] for one in report["failed_allocations"])
              for report in reports if report["failed_allocations"]}
    first = min(failed, key=failed.get)
    expect([rank for rank, row in rows.items() if row[6] == "first"] == [first], f"first to run out: not {first}\n{text}")
    middle = sorted(peaks.values())[(len(peaks) - 1) // 2]
    said = re.search(r"peaks from (\S+ \S+) to (\S+ \S+), median (\S+ \S+), sum (\S+ \S+)", text)
    expect(said and said.groups() == tuple(map(size_text, (min(peaks.values()), max(peaks.values()), middle, sum(peaks.values())))),
           f"sums: {said and said[0]}")
    odd = max(peaks, key=lambda rank: abs(peaks[rank] - middle))
    expect(f"The odd one out: rank {odd}, peak {size_text(abs(peaks[odd] - middle))} more than the median" in text, f"odd: {odd}\n{text}")
    expect("load_checkpoint" in text.split("The odd one out")[1].split("\nThe worst")[0], f"its lines:\n{text}")


def check_job(folder, names):
    reports = json.loads(run(GPUMEM, "report", "--json", *names, folder=folder)[1])["traces"]
    expect([(one["rank"], one["local_rank"], one["world_size"], one["job"]) for one in reports] ==
           [(rank, rank, 3, "4711") for rank in range(3)], "ranks of the JSON")
    code, text, _ = run(GPUMEM, "report", *names, folder=folder)
    expect(code == 0 and "job 4711" in text and text.count("gpumem report of ") == 2, f"{code}\n{text}")
    expect(all(len(line) <= 80 for line in text.splitlines()), f"wide:\n{text}")
    check_table(text, reports)
    helper = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../corpus/nothing.trace")
    text = run(GPUMEM, "report", names[0], helper, folder=folder)[1]
    expect("1 helper process used no GPU memory: 4242\n" in text and "dev      peak" not in text, f"a helper:\n{text}")
    expect("gpumem report of " + PROGRAM in text, f"a helper hides the page:\n{text}")


def check_summaries(folder, names):
    for name in names:
        expect(run(GPUMEM, "summarize", name, "-o", name[:-6] + ".sum", folder=folder)[0] == 0, f"summarize {name}")
    sums = [name[:-6] + ".sum" for name in names]
    whole = {run(GPUMEM, "summarize", *order, folder=folder)[1] for order in itertools.permutations(sums)}
    expect(len(whole) == 1 and next(iter(whole)).count("\n") == 3, "merging depends on the order")
    for pair in itertools.combinations(sums, 2):
        run(GPUMEM, "summarize", *pair, "-o", "pair.sum", folder=folder)
        whole.add(run(GPUMEM, "summarize", "pair.sum", *sums, folder=folder)[1])
    expect(len(whole) == 1, "merging depends on the grouping")
    expect(run(GPUMEM, "summarize", *names, folder=folder)[1] in whole, "traces at once")
    of_traces = run(GPUMEM, "report", *names, folder=folder, LC_ALL="C")[1]
    of_sums = run(GPUMEM, "report", *sums, folder=folder, LC_ALL="C")[1]
    expect(of_traces.split("\nThe worst")[0] == of_sums.split("\nThe worst")[0], f"the table of summaries:\n{of_sums}")
    one = json.loads(run(GPUMEM, "summarize", names[0], folder=folder)[1])
    page = run(GPUMEM, "report", names[0], folder=folder, LC_ALL="C")[1]
    expect(one["page"] == page and run(GPUMEM, "report", sums[0], folder=folder)[1] == page, "the page of a summary")
    return one


def check_identity(folder, names, one):
    """A process is its host, namespace, pid, start and generation: however often and wherever it is told of."""
    running = dict(one, as_of_ns=5, ending="still running", events=1, trace="elsewhere/" + one["trace"])
    later = dict(running, as_of_ns=7, events=2)
    for order in itertools.permutations((one, running, later)):
        with open(folder + "/told.sum", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(each) + "\n" for each in order)
        told = run(GPUMEM, "summarize", "told.sum", folder=folder)[1].splitlines()
        expect([json.loads(line)["events"] for line in told] == [one["events"]], f"a process and itself while it ran: {told}")
    with open(folder + "/told.sum", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(each) + "\n" for each in (running, later))
    told = run(GPUMEM, "summarize", "told.sum", folder=folder)[1].splitlines()
    expect([json.loads(line)["events"] for line in told] == [2], f"the later of two: {told}")
    for change in ({"pid_namespace": 9}, {"generation": 1}, {"pid": 77}, {"host": "other"}, {"start_realtime_ns": 9}):
        with open(folder + "/told.sum", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(each) + "\n" for each in (one, dict(one, **change)))
        expect(run(GPUMEM, "summarize", "told.sum", folder=folder)[1].count("\n") == 2, f"two processes are one: {change}")
    single = run(GPUMEM, "report", names[0], folder=folder)[1]
    os.symlink(names[0], folder + "/link.trace")
    expect(run(GPUMEM, "report", names[0], "link.trace", folder=folder)[1] == single, "a link to a trace is another process")
    os.unlink(folder + "/link.trace")
    both = run(GPUMEM, "report", names[0][:-6] + ".sum", names[0], folder=folder)[1]
    expect("processes" not in both.split("\n")[0] or " of 1 " in both.split("\n")[0], f"a summary and its trace are two: {both[:200]}")
    of_all = run(GPUMEM, "report", *(name[:-6] + ".sum" for name in names), folder=folder)
    expect(run(GPUMEM, "report", "rank*.sum", folder=folder) == of_all, "a quoted pattern of summaries")
    os.mkdir(folder + "/sums")
    for name in names:
        os.rename(f"{folder}/{name[:-6]}.sum", f"{folder}/sums/{name[:-6]}.sum")
    expect(run(GPUMEM, "report", "sums", folder=folder)[:2] == of_all[:2], "a folder of summaries")
    for words in (("report", "--json"), ("report", "-v"), ("check",), ("info",)):
        code, text, said = run(GPUMEM, *words, "sums/" + names[0][:-6] + ".sum", folder=folder)
        expect(code in (2, 3) and not text.startswith("{") and "summary" in said, f"{words} of a summary: {code} {said}")


def check_hostile(folder, one):
    good = json.dumps(one)
    deep = '{"gpumem_summary": 1, "x": ' + "[" * 5000 + "]" * 5000 + "}"
    bad = ["", "{", good[:-1], deep, '{"gpumem_summary": 2}', "[1]", good + good, '{"gpumem_summary": 1, "job": "\\ud800"}',
           '{"gpumem_summary": 1, "job": "\x00', '{"gpumem_summary": 1e5}', '{"gpumem_summary": 1, "rank": --1}']
    for number, line in enumerate(bad):
        with open(folder + "/bad.sum", "w", encoding="utf-8") as file:
            file.write(good + "\n" + line + "\n")
        code, text, said = run(GPUMEM, "report", "bad.sum", folder=folder)
        expect(code == 3 and said.count("\n") == 1 and "no summar" in said and one["page"] in text, f"bad line {number}: {code} {said}")
    nasty = dict(one, job="\x1b[31m\u202e\nx", page="a\x1b]0;x\x07\nb\n", devices=[dict(id=99999, peak=-(2**63))] * 3,
                 lines=[dict(place="\x1b", bytes=2**70, count=-1)], gravity=99, rank=2**70)
    with open(folder + "/nasty.sum", "w", encoding="utf-8") as file:
        file.write(json.dumps(nasty) + "\n" + good + "\n")
    code, text, _ = run(GPUMEM, "report", "nasty.sum", folder=folder)
    expect(code == 0 and not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text), f"control characters: {code} {text!r}")


def check_many(folder, one):
    """Synthetic: a thousand ranks."""
    lines = []
    for rank in range(1000):
        device = dict(one["devices"][0], peak=10**9 + (rank == 500) * 10**9 + rank)
        lines.append(json.dumps(dict(one, rank=rank, world_size=1000, pid=rank + 1, devices=[device])))
    for part in range(10):
        with open(f"{folder}/many{part}.sum", "w", encoding="utf-8") as file:
            file.write("\n".join(lines[part * 100:part * 100 + 100]) + "\n")
    code, text, said = run(GPUMEM, "report", *(f"many{part}.sum" for part in range(10)), folder=folder, limit=512 << 20)
    expect(code == 0 and "of 1,000 processes" in text and "... and 984 less remarkable" in text, f"many: {code} {said}\n{text[:3000]}")
    expect("The odd one out: rank 500" in text, f"the odd one of many:\n{text[:3000]}")
    expect(len(text.splitlines()) < 100, f"many: {len(text.splitlines())} lines")


with tempfile.TemporaryDirectory() as work:
    traces = record(work)
    check_job(work, traces)
    summary = check_summaries(work, traces)
    check_identity(work, traces, summary)
    check_hostile(work, summary)
    check_many(work, summary)
sys.exit(1 if problems else 0)
