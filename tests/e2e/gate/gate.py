#!/usr/bin/env python3
"""`gpumem check`: each exit code, rules, baseline, budgets, and what CI systems read: gate.py BUILD CONSUMERS

CONSUMERS is a folder with the Python packages that read JUnit and SARIF; what is missing there is named.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

failed = []
HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(sys.argv[1])
GPUMEM = BUILD + "/report/gpumem"
sys.path.insert(0, sys.argv[2])


def expect(condition, text):
    if not condition:
        failed.append(text)
        print("FAIL:", text)


def environment(**more):
    return dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim", **more)


def check(what, code, *arguments, says=None, **more):
    """Runs the gate; returns its stdout."""
    done = subprocess.run([GPUMEM, "check", *arguments], capture_output=True, text=True, check=False, timeout=120,
                          env=environment(**more))
    expect(done.returncode == code, f"{what}: exit code {done.returncode}, not {code}: {done.stdout}{done.stderr}")
    if says:
        expect(says in done.stdout + done.stderr, f"{what}: nothing says {says!r}: {done.stdout}{done.stderr}")
    return done.stdout


def record(name, program, *arguments, **more):
    subprocess.run([GPUMEM, "run", "-q", "-o", name, "--", f"{BUILD}/tests/{program}", *arguments], check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(**more))
    expect(os.path.exists(name), f"{program} left no trace")


def write(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)
    return name


def read(name):
    with open(name, encoding="utf-8") as file:
        return file.read()


def try_exit_codes():
    """One cell of the table in docs/gate.md each."""
    demo, sound = f"{BUILD}/tests/training_loop", f"{BUILD}/tests/findings_programs"
    two_gigabytes = {"GPUMEM_SIM_MEMORY": "2G"}
    check("pass", 0, "--", sound, "train")
    check("finding", 1, "--", demo, **two_gigabytes)
    check("usage", 2, "--fail-on", "nonsense", "demo.trace", says="nonsense")
    check("usage", 2, "--format", "yaml=x", "demo.trace")
    check("usage", 2, "--format", "junit", "demo.trace")
    check("usage", 2, "--new-only", "demo.trace", says="--baseline")
    check("usage", 2, "--baseline", "missing.txt", "demo.trace")
    check("usage", 2, "--max-increase", "five", "demo.trace")
    record("cut.trace", "keep", "SIGKILL")
    check("cut", 3, "cut.trace", says="--on-cut judge")
    check("cut, judged", 1, "--on-cut", "judge", "cut.trace")
    with open("demo.trace", "rb") as whole:
        content = whole.read()
    with open("short.trace", "wb") as file:
        file.write(content[:len(content) // 2])
    check("damaged", 3, "short.trace")
    check("empty", 4, "--", "/bin/true")
    check("empty is fine", 0, "--allow-empty", "--", "/bin/true")
    check("CUDA never reached", 4, "--", "/bin/sh", "-c", "ls / >/dev/null")
    check("CMD fails", 3, "--", "/bin/sh", "-c", f"{sound} train; exit 3")
    check("CMD killed", 128 + 9, "--", "/bin/sh", "-c", "kill -9 $$")
    check("CMD missing", 127, "--", "/nonexistent/program")
    record("sound.trace", "findings_programs", "train")
    check("mixed: good and bad", 1, "sound.trace", "demo.trace")
    check("mixed: good and cut", 3, "sound.trace", "cut.trace")
    check("mixed: bad and cut", 3, "demo.trace", "cut.trace")
    check("mixed: good and missing", 3, "sound.trace", "missing.trace")


def try_what_fails():
    check("nothing fails", 0, "--fail-on", "none", "demo.trace")
    check("a finding fails", 1, "--fail-on", "out-of-memory", "demo.trace", says="FAIL  out-of-memory")
    check("another does not", 0, "--fail-on", "retained", "demo.trace")
    record("grows.trace", "findings_programs", "unbounded_cache")
    check("what grows from round to round", 1, "--fail-on", "growing,retained", "grows.trace")
    check("a leak in a pool", 1, os.path.join(HERE, "../../corpus/pool.trace"), "--max-leak", "2G", says="FAIL  retained")
    check("leaks within the budget", 0, "--max-leak", "12M", "demo.trace")
    check("one place above its own", 1, "--max-leak", "12M", "--max-leak-per-place", "11M", "demo.trace")
    check("peak", 1, "--max-leak", "1G", "--max-peak", "1G", "demo.trace", says="FAIL  peak, device 0")
    check("peak of another device", 0, "--max-leak", "1G", "--max-peak", "1:1G", "demo.trace")
    check("pinned", 1, "--max-leak", "1G", "--max-pinned", "1K", "demo.trace", says="FAIL  pinned")
    check("pinned enough", 0, "--max-leak", "1G", "--max-pinned", "1G", "demo.trace")


def try_rules():
    accepted = write("rules", "# known\nleak:cache_attention_mask\nleak:never_called\n")
    out = check("LeakSanitizer's form", 0, "--suppressions", accepted, "demo.trace", says="'cache_attention_mask'")
    expect("rule 'never_called' matched nothing" in out, "an unused rule is not listed")
    for name, text, code in (
            ("in order", "match = fun:cache_attention*, ..., fun:main", 0),
            ("the innermost must match first", "match = fun:train_step, fun:main", 1),
            ("a gap before", "match = ..., fun:train_step, fun:main", 0),
            ("a whole name", "match = ^cache_attention_mask$", 0),
            ("not a whole name", "match = ^cache_attention$", 1),
            ("by file", "match = ..., src:*/training_loop.c", 0),
            ("by module", "match = ..., obj:^training_loop$", 0),
            ("within its size", "match = cache_attention_mask\nmax = 12M\ncount = 12", 0),
            ("beyond its size", "match = cache_attention_mask\nmax = 11M", 1),
            ("beyond its count", "match = cache_attention_mask\ncount = 11", 1),
            ("of another class", "match = cache_attention_mask\nclass = late, implicit", 1),
            ("of this class", "match = cache_attention_mask\nclass = late, leak", 0),
            ("of another device", "match = cache_attention_mask\ndevice = 1", 1),
            ("of this device", "match = cache_attention_mask\ndevice = 0", 0),
            ("expired", "match = cache_attention_mask\nuntil = 2020-02-28", 1),
            ("not expired", "match = cache_attention_mask\nuntil = 2999-12-31\nwhy = known", 0)):
        check(f"rule {name}", code, "--suppressions", write("rules", f"[one]\n{text}\n"), "demo.trace")
    for text in ("leak:\n", "[one]\n", "[one]\nmatch = \n", "[one]\nmatch = a\nmax = much\n", "[one]\nmatch = a\nuntil = soon\n",
                 "match = a\n", "[one]\nmatch = a\nunknown = 1\n", "leaks:a\n", "[one]\nmatch = a\ndevice = -1\n"):
        check(f"no rule: {text!r}", 2, "--suppressions", write("rules", text), "demo.trace", says="rules:")


def try_baseline():
    check("update", 0, "--baseline", "base", "--update-baseline", "demo.trace", says="baseline written")
    base = read("base")
    expect(re.search(r"^leak [0-9a-f]{16} 12582912 12 cache_attention_mask training_loop\.c$", base, re.M), base)
    expect(not re.search(r":\d+", base), "a baseline has line numbers")
    lines = [line for line in base.split("\n") if line and line[0] != "#"]
    expect(lines == sorted(lines), "a baseline is not sorted")
    check("known", 0, "--baseline", "base", "demo.trace", says="in the baseline")
    check("twice the same", 0, "--baseline", "again", "--update-baseline", "demo.trace")
    expect(read("again") == base, "the same trace made another baseline")
    smaller = write("smaller", base.replace("12582912", "12000000"))
    check("grown", 1, "--baseline", smaller, "demo.trace")
    check("grown, within a share", 0, "--baseline", smaller, "--max-increase", "5%", "demo.trace")
    check("grown, beyond a share", 1, "--baseline", smaller, "--max-increase", "4%", "demo.trace")
    check("grown, within a size", 0, "--baseline", smaller, "--max-increase", "1M", "demo.trace")
    check("grown, but known", 0, "--baseline", smaller, "--new-only", "demo.trace")
    check("new", 1, "--baseline", write("none", "# empty\n"), "--new-only", "demo.trace")
    check("no baseline", 2, "--baseline", write("bad", "leak something\n"), "demo.trace", says="bad:1")
    os.mkdir("folder")
    check("a baseline that cannot be written", 3, "--baseline", "folder", "--update-baseline", "demo.trace")


def try_formats():
    formats = [item for name in ("junit", "sarif", "gitlab", "json") for item in ("--format", f"{name}=out.{name}")]
    out = check("formats", 1, *formats, "--format", "github", "demo.trace", "sound.trace", GITHUB_STEP_SUMMARY="summary.md")
    issues = json.loads(read("out.json"))["issues"]
    failures = [issue for issue in issues if issue["level"] == "error"]
    expect([issue["code"] for issue in failures] == ["leak"] and failures[0]["bytes"] == 12 << 20, f"json: {failures}")
    expect(out.count("::error ") == 1 and "title=gpumem leak::12.0 MiB" in out, f"github: {out}")
    expect("training\\_loop.c:72" in read("summary.md"), "the step's summary lacks the place")
    quality = json.loads(read("out.gitlab"))
    expect(all({"description", "check_name", "fingerprint", "severity", "location"} <= set(one) for one in quality)
           and quality[0]["fingerprint"] == failures[0]["fingerprint"], f"gitlab: {quality[:1]}")
    try:
        import junitparser  # noqa: PLC0415 the package may be missing
        suites = list(junitparser.JUnitXml.fromfile("out.junit"))
        expect([(suite.tests, suite.failures, suite.errors) for suite in suites] == [(2, 1, 0), (1, 0, 0)],
               f"junit: {[(suite.tests, suite.failures, suite.errors) for suite in suites]}")
    except ImportError:
        print("SKIP: junitparser is missing")
    try:
        from sarif_pydantic import Sarif  # noqa: PLC0415
        run = Sarif.model_validate(json.loads(read("out.sarif"))).runs[0]
        expect(len(run.results) == len(issues), f"sarif: {len(run.results)} results, {len(issues)} issues")
        expect({result.rule_id for result in run.results} == {rule.id for rule in run.tool.driver.rules}, "sarif: rules")
    except ImportError:
        print("SKIP: sarif_pydantic is missing")
    check("not judged", 3, "--format", "junit=cut.junit", "cut.trace")
    expect("<error message=\"not judged" in read("cut.junit"), "junit passes a trace that was not judged")
    check("a file that cannot be written", 3, "--format", "junit=folder/none/x", "sound.trace")


def try_repository():
    """Below the folder where it runs, files are relative to it, as systems that show a repository want them."""
    source = HERE + "/../../.."
    done = subprocess.run([GPUMEM, "check", "--format", "sarif=/dev/stderr", "--format", "github", os.path.abspath("demo.trace")],
                          capture_output=True, text=True, check=False, cwd=os.path.realpath(source))
    result = json.loads(done.stderr)["runs"][0]["results"][0]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    expect(place == {"uri": "tests/demo/training_loop.c", "uriBaseId": "%SRCROOT%"}, f"sarif: {place}")
    expect("::error file=tests/demo/training_loop.c,line=72,title=gpumem leak::" in done.stdout, done.stdout)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        record("demo.trace", "training_loop", GPUMEM_SIM_MEMORY="2G")
        for part in (try_exit_codes, try_what_fails, try_rules, try_baseline, try_formats, try_repository):
            part()
        os.chdir("/")
    print("FAILED" if failed else "passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
