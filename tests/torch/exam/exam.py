#!/usr/bin/env python3
"""Puts programs as people write them under gpumem, and marks what `gpumem report` says of them.

    exam.py BUILD [--fresh | --ask] [NAME]...

The programs lie in programs/, each for itself, none written for a rule. Its first lines say what it is:

    # exam: CLASS sick CODE...            the report must have a finding of one of these codes, of any severity,
                                          whose place is a line that ends with "# cause" ("leak": an entry of leaks[])
    # exam: CLASS sound [allow=CODE...]   there must be no finding but notes and those allowed
    # exam-env: NAME=VALUE...             environment it runs in
    # exam-exit: 1                        how it ends, if not with 0

A program is recorded once. Its traces stay below ~/.cache/gpumem/exam (GPUMEM_EXAM_CACHE) until its text changes;
--fresh records again, which a change of the recorder needs. --ask marks `gpumem ask` instead: a reader that follows its
`next` (tests/ask/walk.py) must come to a cause, and the verdict on a sound program must have no finding but notes. Exit code 1 if any mark is wrong. Run by run_exam,
which prepares the wheel.
"""
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "..", "ask"))
from report_json import with_stacks  # noqa: E402
from walk import ask, walk  # noqa: E402

PROGRAMS = os.path.join(HERE, "programs")
CACHE = os.path.expanduser(os.environ.get("GPUMEM_EXAM_CACHE", "~/.cache/gpumem/exam"))
CLASSES = {1: "leak that ends in out of memory", 2: "replaced, but growing", 3: "loop over layers",
           4: "a share that leaks", 5: "nothing is freed", 6: "other allocators", 7: "churn", 8: "second copy",
           9: "expected at the first step", 10: "workers and devices", 11: "copies and pinned memory",
           12: "fragmentation"}
SECONDS = 600


class Program:
    """A file of programs/, and what its first lines say of it."""

    def __init__(self, path):
        self.path = path
        self.name, self.suffix = os.path.splitext(os.path.basename(path))
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        said = dict(re.findall(r"^(?:#|//) (exam[a-z-]*): (.*)$", self.text, re.MULTILINE))
        number, kind, *rest = said["exam"].split()
        assert kind in ("sick", "sound"), path
        self.number, self.sick = int(number), kind == "sick"
        self.codes = set(rest) if self.sick else set()
        self.allowed = {code for word in rest if word.startswith("allow=") for code in word[6:].split(",")}
        self.environment = dict(word.split("=", 1) for word in said.get("exam-env", "").split())
        self.exit_code = int(said.get("exam-exit", "0"))
        self.causes = {number for number, line in enumerate(self.text.splitlines(), 1)
                       if re.search(r"(#|//) cause$", line)}
        assert bool(self.causes) == self.sick == bool(self.codes), path

    def folder(self):
        return os.path.join(CACHE, f"{self.name}-{hashlib.sha256(self.text.encode()).hexdigest()[:16]}")


def compiled(build, program):
    """A C++ program, linked with the simulated runtime. It stays where the trace says that it was."""
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
        include = re.search(r"^GPUMEM_CUDA_INCLUDE:\w+=(.*)$", file.read(), re.MULTILINE)[1]
    binary = program.folder() + ".program"
    subprocess.run(["g++", "-std=c++17", "-g", "-O1", "-isystem", include, program.path, "-o", binary,
                    os.path.join(build, "sim", "libcudart.so.13"), "-Wl,-rpath," + os.path.join(build, "sim"),
                    "-pthread"], check=True)
    return [binary]


def record(build, program):
    """What the recorder wrote of one run, for good. Returns the path of its folder."""
    final = program.folder()
    folder = final + ".new"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    command = [sys.executable, program.path] if program.suffix == ".py" else compiled(build, program)
    libraries = build + "/sim"
    if "expandable_segments" in str(program.environment):
        libraries += ":" + build + "/tests/torch/nvml"
    environment = dict(os.environ, LD_LIBRARY_PATH=libraries, LD_PRELOAD=build + "/preload/libgpumem.so",
                       **program.environment)
    try:
        done = subprocess.run(["nice", *command], cwd=folder, env=environment, capture_output=True, text=True,
                              timeout=SECONDS, check=False)
        code, text = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        code, text = None, f"more than {SECONDS} s"
    with open(os.path.join(folder, "ended.json"), "w", encoding="utf-8") as file:
        json.dump({"code": code, "text": text[-4000:]}, file)
    for old in glob.glob(os.path.join(CACHE, program.name + "-" + "[0-9a-f]" * 16)):
        shutil.rmtree(old)
    os.rename(folder, final)
    return final


def place(entry, program):
    """(file, line): the finding's own, or the innermost frame of the program's file."""
    if entry.get("file"):
        return os.path.basename(entry["file"]), entry["line"]
    name = os.path.basename(program.path)
    lines = [frame["line"] for frame in entry.get("stack") or [] if os.path.basename(frame.get("file") or "") == name]
    return (name, lines[0]) if lines else ("?", 0)


def told(build, program, folder):
    """[(code, severity, file, line)] of all processes of the run."""
    found = []
    for trace in sorted(glob.glob(folder + "/*.trace")):
        done = subprocess.run([build + "/report/gpumem", "report", "--json", trace], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise RuntimeError(f"report {trace}: exit code {done.returncode}: {done.stderr[-500:]}")
        report = with_stacks(json.loads(done.stdout))
        found += [(finding["code"], finding["severity"], *place(finding, program))
                  for finding in report["findings"]]
        found += [("leak", "warning", *place(leak, program)) for leak in report["leaks"]
                  if leak["class"] == "leak"]
    return found


def judge(program, found):
    """Whether the report is right, and what it said."""
    name = os.path.basename(program.path)
    if program.sick:
        right = any(code in program.codes and file == name and line in program.causes
                    for code, _, file, line in found)
    else:
        right = not any(severity != "note" and code not in program.allowed | {"leak"}
                        for code, severity, _, _ in found)
    texts = [f"{severity} {code} at {file}:{line}" for code, severity, file, line in found]
    return right, "; ".join(texts) or "nothing"


def judge_answers(build, program, folder):
    """The same of what `gpumem ask` answers on the run."""
    gpumem, name = build + "/report/gpumem", os.path.basename(program.path)
    if program.sick:
        right, calls, size = walk(gpumem, folder, "", {(name, line) for line in program.causes})
        return right, f"{calls} calls, {size} bytes"
    found = []
    for trace in sorted(glob.glob(folder + "/*.trace")):
        answer, _ = ask(gpumem, f"gpumem ask {os.path.basename(trace)} verdict", folder)
        found += [row for row in answer["rows"] if row["severity"] != "note" and row["code"] not in program.allowed]
    return not found, "; ".join(f"{row['severity']} {row['code']}" for row in found) or "nothing"


def examine(build, program, fresh, asks):
    folder = program.folder()
    if fresh or not os.path.exists(folder):
        folder = record(build, program)
    with open(os.path.join(folder, "ended.json"), encoding="utf-8") as file:
        ended = json.load(file)
    if ended["code"] != program.exit_code:
        return False, f"the program ended with {ended['code']}: {ended['text'][-600:]}"
    try:
        if asks:
            return judge_answers(build, program, folder)
        return judge(program, told(build, program, folder))
    except (RuntimeError, ValueError, KeyError) as error:
        return False, f"{type(error).__name__}: {error}"


def main():
    build, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    fresh, asks = "--fresh" in wanted, "--ask" in wanted
    wanted = [name for name in wanted if name not in ("--fresh", "--ask")]
    programs = [Program(path) for path in glob.glob(PROGRAMS + "/*.py") + glob.glob(PROGRAMS + "/*.cpp")]
    unknown = set(wanted) - {program.name for program in programs}
    if unknown:
        sys.exit("no such program: " + ", ".join(sorted(unknown)))
    os.makedirs(CACHE, exist_ok=True)
    score = {}
    for program in sorted(programs, key=lambda program: (program.number, not program.sick, program.name)):
        if wanted and program.name not in wanted:
            continue
        right, text = examine(build, program, fresh, asks)
        kind = "sick" if program.sick else "sound"
        marks = score.setdefault((program.number, kind), [])
        marks.append(right)
        print(f"{'right' if right else 'WRONG'} {program.number:2} {kind:5} {program.name}: {text}", flush=True)
    print("\nclass                             sick named   sound left alone")
    for number, title in CLASSES.items():
        sick, sound = score.get((number, "sick"), []), score.get((number, "sound"), [])
        if sick or sound:
            print(f"{number:2} {title:32}{sum(sick):3} of {len(sick):2}   {sum(sound):8} of {len(sound):2}")
    for kind in ("sick", "sound"):
        marks = [mark for (_, of), marks in score.items() if of == kind for mark in marks]
        print(f"{kind}: {sum(marks)} of {len(marks)} right")
    return 0 if all(all(marks) for marks in score.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
