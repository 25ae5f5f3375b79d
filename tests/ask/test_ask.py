#!/usr/bin/env python3
"""`gpumem ask`: test_ask.py BUILD SOURCE

What must hold (each broken promise is one line on stderr, and exit code 1):
  - every answer follows docs/ask.schema.json, stands on one line and is no longer than asked for;
  - rows come whole and in order, by cursor, whatever the size; each command of `next` has an answer;
  - ids are equal in 20 recordings of a program, after lines were added, and in every other output;
  - what cannot be answered is JSON with a stable code, and the exit code of its kind;
  - an answer that was given before comes from the cache, and only while nothing that decides it has changed;
  - names from a trace stay data.
"""
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

build, source = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, os.path.join(source, "tests", "support"))
from json_schema import violations  # noqa: E402
from walk import places, walk  # noqa: E402

GPUMEM = build + "/report/gpumem"
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
with open(source + "/docs/ask.schema.json", encoding="utf-8") as schema:
    SCHEMA = json.load(schema)
folder = tempfile.mkdtemp()
environment = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", GPUMEM_SIM_MEMORY="1G",
                   XDG_CACHE_HOME=folder + "/cache", PYTHONPATH=source + "/python")
failed = []

NATIVE = """
#include <cuda_runtime_api.h>
/* lines */
static void *kept[64];
static int kept_count;
static void keep_batch(void) /* in a loop */
{
    cudaMalloc(&kept[kept_count++], 1 << 20);
}
static void twins(void)
{
    cudaMalloc(&kept[kept_count++], 2 << 20);
    /* between */
    cudaMalloc(&kept[kept_count++], 3 << 20);
}
static void load(void)
{
    void *pinned, *large;
    cudaMallocHost(&pinned, 4 << 20);
    cudaFreeHost(pinned);
    cudaMalloc(&large, 600 << 20);
    cudaFree(large);
}
static void refused(void)
{
    void *memory;
    cudaMalloc(&memory, 1ull << 40);
}
int main(void)
{
    load();
    for (int i = 0; i < 40; i++)
        keep_batch();
    twins();
    refused();
    cudaDeviceSynchronize();
    return 0;
}
"""
SCRIPT = """
import ctypes
import gpumem
runtime = ctypes.CDLL("libcudart.so.13")
# lines
def take(size):
    memory = ctypes.c_void_p()
    runtime.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(size))
    return memory
kept = []
def keep_batch():
    kept.append(take(1 << 20))
def twins():
    runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(2 << 20))
    # between
    runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(3 << 20))
twins()
for step in range(12):
    keep_batch()
    gpumem.mark("step")
"""


def expect(good, text):
    if not good:
        failed.append(text)
        print("FAIL: " + str(text)[:500], file=sys.stderr)


def run(*command, code=0, cwd=folder):
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, check=False)
    expect(done.returncode == code, f"{shlex.join(command)}: exit code {done.returncode}: {done.stderr[-300:]}")
    return done.stdout


def ask(*words, code=0, size=4096):
    text = run(GPUMEM, "ask", *words, code=code).decode()
    what = "ask " + shlex.join(words)
    expect(text.endswith("\n") and not CONTROL.search(text) and text.count("\n") == 1, f"{what}: not one clean line: {text[:200]!r}")
    expect(len(text.encode()) <= size, f"{what}: {len(text.encode())} bytes")
    answer = json.loads(text)
    for broken in violations(answer, SCHEMA, SCHEMA, what)[:3]:
        expect(False, broken)
    return answer


def record(name, *command):
    run(GPUMEM, "run", "--output", name, "--", *command)
    return name


def compiled(name, text):
    with open(f"{folder}/{name}.c", "w", encoding="utf-8") as file:
        file.write(text)
    with open(build + "/CMakeCache.txt", encoding="utf-8") as file:
        include = re.search(r"^GPUMEM_CUDA_INCLUDE:\w+=(.*)$", file.read(), re.M)[1]
    os.makedirs(f"{folder}/{name}", exist_ok=True)
    binary = f"{folder}/{name}/trainer"
    run("gcc", "-g", "-O0", "-isystem", include, f"{folder}/{name}.c", "-o", binary, build + "/sim/libcudart.so.13")
    return binary


def script(name, text):
    os.makedirs(f"{folder}/{name}", exist_ok=True)
    with open(f"{folder}/{name}/train.py", "w", encoding="utf-8") as file:
        file.write(text)
    return sys.executable, f"{folder}/{name}/train.py"


QUESTIONS = [["verdict"], ["peak"], ["leaks"], ["oom"], ["growth"], ["owners"], ["owners", "--at", "end", "--by", "line"],
             ["owners", "--by", "library"], ["owners", "--by", "kind"], ["owners", "--device", "0"], ["owners", "--at", "1ns"]]


# ---- answers


def all_rows(*words):
    """The rows of all answers, by cursor; the smallest ones."""
    rows, cursor, counts = [], "0", set()
    while cursor is not None:
        answer = ask(*words, "--size", "1K", "--cursor", cursor, size=1024)
        expect(answer["rows"] or not answer["row_count"], f"{words}: no row at {cursor}")
        rows += answer["rows"]
        counts.add(answer["row_count"])
        cursor = answer["cursor"]
    expect(counts == {len(rows)}, f"{words}: {len(rows)} rows of {counts}")
    return rows


def no_texts(rows):
    """What is never cut."""
    return [{name: value for name, value in row.items() if name not in ("cause", "file", "function", "command")} for row in rows]


def check_answers(trace):
    """All questions of a trace, and all that they name; the answers."""
    answers, todo, done = [], [[trace, *question] for question in QUESTIONS], set()
    while todo:
        words = todo.pop(0)
        if tuple(words) in done:
            continue
        done.add(tuple(words))
        answer = ask(*words, code=2 if words[1:4] == ["owners", "--at", "oom"] and "mapped" in trace else 0)
        answers.append(answer)
        for step in answer.get("next", []):
            command = shlex.split(step["command"])
            expect(command[:3] == ["gpumem", "ask", trace], f"{words}: {command}")
            if command[3:] != ["whatif"]:
                todo.append(command[2:])
    for question in (["owners", "--at", "peak"], ["leaks"], ["verdict"]):
        whole = ask(trace, *question, "--size", "1M", size=1 << 20)
        expect(no_texts(all_rows(trace, *question)) == no_texts(whole["rows"]), f"{trace} {question}: rows differ by cursor")
    return answers


# ---- ids


def sites(trace):
    """{id: (function, bytes)} of all that is left, and the findings' {id: code}."""
    owners = ask(trace, "owners", "--at", "end", "--size", "1M", size=1 << 20)["rows"]
    verdict = ask(trace, "verdict")["rows"]
    return ({row["site"]: (row["function"], row["bytes"], row["memory"]) for row in owners},
            {row["id"]: row["code"] for row in verdict})


def check_ids(name, first, again, edited):
    """Ids of 20 recordings, of two places of the program."""
    wanted = sites(record(f"{name}.trace", *first))
    functions = [function for function, _, _ in wanted[0].values()]
    expect(len(functions) == len(set(wanted[0])) >= 3, f"{name}: {wanted[0]}")
    expect(functions.count("twins") == 2, f"{name}: two lines of one function have {functions.count('twins')} ids")
    for number in range(10):
        found = sites(record(f"{name}-{number}.trace", *(again if number % 2 else first)))
        expect(found == wanted, f"{name}, recording {number}: {found} instead of {wanted}")
    found = sites(record(f"{name}-edited.trace", *edited))
    expect(found == wanted, f"{name}, edited: {found} instead of {wanted}")


def check_outputs(trace):
    """The same ids elsewhere."""
    verdict, leaks = ask(trace, "verdict"), ask(trace, "leaks")
    page, verbose, html = folder + "/page.txt", run(GPUMEM, "report", "-v", trace).decode(), folder + "/page.html"
    with open(page, "wb") as file:
        file.write(run(GPUMEM, "report", trace))
    run(GPUMEM, "report", "--html", html, trace)
    report = json.loads(run(GPUMEM, "report", "--json", trace))
    with open(page, encoding="utf-8") as file, open(html, encoding="utf-8") as page_of_html:
        texts = {"page": file.read(), "-v": verbose, "HTML": page_of_html.read()}
    run(GPUMEM, "check", "--format", "sarif=result.sarif", "--max-leak", "0", trace, code=1)
    run(GPUMEM, "check", "--baseline", "base.txt", "--update-baseline", trace, code=0)
    with open(folder + "/result.sarif", encoding="utf-8") as file:
        prints = [list(result.get("partialFingerprints", {"": ""}).values())[0] for result in json.load(file)["runs"][0]["results"]]
    with open(folder + "/base.txt", encoding="utf-8") as file:
        baseline = file.read()
    for row in verdict["rows"]:
        for name, text in texts.items():
            expect(row["id"] in text, f"{name} lacks the finding {row['id']}")
        expect(any(one.startswith(row["id"]) for one in prints), f"SARIF lacks {row['id']}: {prints}")
        expect(row["id"] in [finding["id"] for finding in report["findings"]], f"JSON lacks {row['id']}")
    for code, fingerprint in re.findall(r"^([a-z-]+) ([0-9a-f]{16}) ", baseline, re.M):
        known = {row["id"]: row["code"] for row in verdict["rows"]} if code in {row["code"] for row in verdict["rows"]} else \
            {row["id"]: row["class"] for row in leaks["rows"]}
        expect(code == "peak" or known.get(fingerprint[:8]) == code, f"the baseline's {code} {fingerprint} is none of {known}")
        if code == "out-of-memory":
            expect(ask(trace, "finding", fingerprint)["id"] == fingerprint[:8], "a fingerprint is no id")
    for row in leaks["rows"]:
        site, line = row["site"], f"{os.path.basename(row['file'])}:{row['line']}"
        shown = run(GPUMEM, "report", "--site", site, trace).decode()
        expect(line in shown and f"id {site}" in shown, f"--site {site}: {shown}")
        expect(site in [stack["id"] for stack in report["stacks"]], f"JSON lacks the place {site}")
        expect(site in texts["HTML"], f"HTML lacks the place {site}")
        expect(row["id"] in " ".join(prints), f"SARIF lacks the leak {row['id']}")
    run(GPUMEM, "report", "--site", "00000000", trace, code=2)


# ---- refusals, the cache, several traces


def check_refusals(trace):
    with open(folder + "/garbage.trace", "wb") as file:
        file.write(b"no trace" * 100)
    os.makedirs(folder + "/empty", exist_ok=True)
    for words, code, name in (
            ([trace], 2, "usage"), ([trace, "verdict", "more"], 2, "usage"), ([trace, "finding"], 2, "usage"),
            ([trace, "finding", "xyz"], 2, "usage"), ([trace, "site", "1234567g"], 2, "usage"),
            ([trace, "finding", "00000000"], 2, "no-such-finding"), ([trace, "site", "00000000"], 2, "no-such-site"),
            ([trace, "owners", "--at", "99s"], 2, "no-such-moment"), ([trace, "owners", "--by", "hour"], 2, "usage"),
            ([trace, "peak", "--size", "12"], 2, "usage"), ([trace, "peak", "--cursor", "-1"], 2, "usage"),
            ([trace, "peak", "--nonsense"], 2, "usage"), ([trace, "whatif"], 3, "no-pool"),
            (["garbage.trace", "verdict"], 3, "unreadable"), (["absent.trace", "peak"], 3, "unreadable"),
            (["empty", "verdict"], 3, "no-trace"), ([trace, "diff", "garbage.trace"], 3, "unreadable")):
        answer = ask(*words, code=code)
        expect(answer.get("error", {}).get("code") == name, f"{words}: {answer}")
    expect(ask(trace, "peak", "--cursor", "999")["rows"] == [], "rows behind the last")


def kept_files():
    return glob.glob(folder + "/cache/gpumem/ask/*")


def check_cache(trace):
    shutil.rmtree(folder + "/cache", ignore_errors=True)
    first = ask(trace, "verdict")
    expect(len(kept_files()) == 1 and os.stat(kept_files()[0]).st_mode & 0o777 == 0o600, f"kept: {kept_files()}")
    slot = kept_files()[0]
    with open(slot, encoding="utf-8") as file:
        kept = file.read()
    for text, is_used in ((kept.replace('"errors"', '"warnings"', 1), True), (kept[:-40], True), (kept[:20], False),
                          (kept.replace(trace, "other.trace", 1), False), ("", False)):
        with open(slot, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run([GPUMEM, "ask", trace, "verdict"], cwd=folder, env=environment, stdout=subprocess.PIPE, check=False)
        expect((json.dumps(first) != json.dumps(json.loads(done.stdout)) if done.stdout.endswith(b"}\n") else True) == is_used,
               f"{text[:30]!r} was {'not ' if is_used else ''}taken from the cache")
    with open(slot, "w", encoding="utf-8") as file:
        file.write(kept.replace('"errors"', '"warnings"', 1))
    os.utime(slot, (0, 0))
    expect(ask(trace, "verdict") == first, "an old answer was given")
    with open(slot, "w", encoding="utf-8") as file:
        file.write(kept.replace('"errors"', '"warnings"', 1))
    os.utime(os.path.join(folder, trace))
    expect(ask(trace, "verdict") == first, "the trace has changed, and its old answer was given")
    os.rename(slot, slot + ".away")
    os.symlink(slot + ".away", slot)
    expect(ask(trace, "verdict") == first, "a link was followed")
    environment["XDG_CACHE_HOME"] = "/proc/nothing"
    expect(ask(trace, "verdict") == first, "no answer without a cache")
    environment["XDG_CACHE_HOME"] = folder + "/cache"


def check_diff(base, newer):
    same, other = ask(base, "diff", base), ask(newer, "diff", base)
    expect(not same["differs"] and not same["rows"], f"a trace differs from itself: {same}")
    leaked = [row for row in other["rows"] if row["section"] == "leaked"]
    expect(other["differs"] and leaked, f"no leak that came: {other}")
    for row in leaked:
        trace = base if row["change"] == "went" else newer
        expect(row["site"] and ask(trace, "site", row["site"])["function"] == row["function"], f"{row} is no place of {trace}")


def check_options(trace):
    """Commands of `next` have what their ids depend on."""
    for options in (["--redact"], ["--no-symbols"], ["--all-frames", "--redact"]):
        answer = ask(*options, trace, "leaks")
        command = shlex.split(answer["next"][0]["command"])
        expect(sorted(command[2:2 + len(options)]) == sorted(options), f"{options}: {command}")
        words = [trace if word == "TRACE" else word for word in command[2:]]
        expect(ask(*words)["site"] == answer["rows"][0]["site"], f"{options}: {words}")
        expect(("--redact" in options) == ("TRACE" in command), f"{options}: {command}")


def check_job(command, other):
    os.makedirs(folder + "/job", exist_ok=True)
    run(GPUMEM, "run", "--output", "job/%p.trace", "--", "sh", "-c", f"{shlex.join(command)}; {shlex.join(other)}")
    answer = ask("job", "verdict")
    expect(answer["active"] == 2 == len([row for row in answer["rows"] if "peak_bytes" in row]), f"job: {answer}")
    expect(answer["rows"][0]["failure"] and len(answer["next"]) == answer["processes"], f"job: {answer}")
    ask(*shlex.split(answer["next"][0]["command"])[2:])
    expect(ask("job", "peak", code=2)["error"]["code"] == "one-trace", "peak of several processes")
    with open(folder + "/job.sum", "wb") as file:
        file.write(run(GPUMEM, "summarize", "job"))
    expect(ask("job.sum", "verdict")["processes"] == answer["processes"], "a summary's verdict")
    expect(ask("job.sum", "leaks", code=2)["error"]["code"] == "one-trace", "leaks of a summary")


def check_hostile():
    """Names as an attacker chooses them, also as the trace's own."""
    run(build + "/tests/export_traces", "hostile", "hostile.trace")
    run(build + "/tests/export_traces", "mapped", "mapped.trace")
    for name in ("hostile.trace", "mapped.trace"):
        check_answers(name)
    for name in ("two words.trace", "quote'd.trace", "$(id).trace", "-dash.trace", "x" * 240 + ".trace"):
        shutil.copy(folder + "/hostile.trace", os.path.join(folder, name))
        path = os.path.join(".", name)
        command = shlex.split(ask(path, "verdict")["next"][0]["command"])
        expect(command[2] in (path, "TRACE"), f"{path}: {command}")


native = compiled("native", NATIVE)
other_native = compiled("other", NATIVE)
edited_native = compiled("edited", NATIVE.replace("/* lines */", "\n/* more */\n\n/* lines */").replace("/* between */", "\n\n").replace("/* in a loop */", "\n"))
check_ids("native", [native], [other_native], [edited_native])
scripts = [script("script", SCRIPT), script("other", SCRIPT),
           script("edited", SCRIPT.replace("# lines", "\n# more\n").replace("# between", "\n"))]
check_ids("script", *scripts)
for recorded in ("native.trace", "script.trace"):
    check_answers(recorded)
    check_outputs(recorded)
check_refusals("native.trace")
check_cache("native.trace")
check_options("native.trace")
record("few.trace", *script("few", SCRIPT.replace("range(12)", "range(1)")))
check_diff("few.trace", "script.trace")
check_job([native], list(scripts[0]))
check_hostile()
with open(folder + "/native.c", encoding="utf-8") as text_of_native:
    cause = {("native.c", line) for line, text in enumerate(text_of_native, 1) if "kept_count++], 1 << 20" in text}
found_cause, calls, size_of_all = walk(GPUMEM, folder, "native.trace", cause)
expect(found_cause, f"the walk ended after {calls} calls and {size_of_all} bytes")
expect(cause & set(places(ask("native.trace", "leaks"))), "no leak at its line")
shutil.rmtree(folder)
sys.exit(bool(failed))
