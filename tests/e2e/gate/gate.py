#!/usr/bin/env python3
"""`gpumem check`: each exit code, rules, baseline, budgets, and what CI systems read: gate.py BUILD CONSUMERS

CONSUMERS is a folder with the Python packages that read JUnit and SARIF; what is missing there is named.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

failed = []
HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(sys.argv[1])
GPUMEM = BUILD + "/report/gpumem"
CORPUS = os.path.abspath(HERE + "/../../corpus")
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
    expect(code is None or done.returncode == code, f"{what}: exit code {done.returncode}, not {code}: {done.stdout}{done.stderr}")
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
    check("lost", 3, CORPUS + "/dropped.trace", says="not judged: ")
    check("damaged inside", 3, CORPUS + "/bad-checksum.trace")
    if "ASAN_OPTIONS" not in os.environ: # sanitizers refuse RTLD_DEEPBIND
        check("hooks not attached", 4, "--", f"{BUILD}/tests/plugin_host", "deepbind", f"{BUILD}/tests/libroad_plugin_13.so",
              says="BYPASSED")
    check("recorded by nobody", 4, "--", "/bin/true")
    check("empty", 4, CORPUS + "/nothing.trace")
    check("empty is fine", 0, "--allow-empty", "--", "/bin/true")
    check("CUDA never reached", 4, "--", "/bin/sh", "-c", "ls / >/dev/null")
    check("CMD fails", 3, "--", "/bin/sh", "-c", f"{sound} train; exit 3")
    check("CMD killed", 128 + 9, "--", "/bin/sh", "-c", "kill -9 $$", says="ended by SIGKILL")
    check("CMD crashed", 128 + 11, "--", f"{BUILD}/tests/keep", "SIGSEGV", says="SIGSEGV")
    check("CMD killed in a shell", 128 + 9, "--", "/bin/sh", "-c", "/bin/sh -c 'kill -9 $$'; exit $?", says="SIGKILL")
    check("CMD fails and leaks", 7, "--", "/bin/sh", "-c", f"{demo} >/dev/null; exit 7", **two_gigabytes)
    check("CMD not executable", 126, "--", "/etc/passwd")
    check("another exit code", 23, "--error-exitcode", "23", "--", demo, **two_gigabytes)
    check("another exit code of a sound program", 0, "--error-exitcode", "23", "--", sound, "train")
    check("another exit code before the command's", 23, "--error-exitcode", "23", "--", "/bin/sh", "-c",
          f"{demo} >/dev/null; exit 7", **two_gigabytes)
    check("the command's where nothing else fails", 7, "--error-exitcode", "23", "--", "/bin/sh", "-c",
          f"{sound} train; exit 7")
    for code, command in ((23, demo), (0, f"{sound} train"), (7, f"{sound} train; exit 7")):
        formats = [option for form in ("json", "sarif", "metrics") for option in ("--format", f"{form}=code.{form}")]
        check("the files say it, too", code, "--error-exitcode", "23", *formats, "--", "/bin/sh", "-c", command, **two_gigabytes)
        said = (json.loads(read("code.json"))["exit_code"],
                json.loads(read("code.sarif"))["runs"][0]["invocations"][0]["exitCode"])
        expect(said == (code, code) and f"gpumem_check_exit_code {code}\n" in read("code.metrics"), f"exit codes: {said}, not {code}")
    check("not judged keeps its own", 3, "--error-exitcode", "23", "cut.trace")
    check("usage", 2, "--error-exitcode", "256", "demo.trace")
    check("usage", 2, "--repeats", "mean", "demo.trace", says="median")
    check("CMD missing", 127, "--", "/nonexistent/program")
    record("sound.trace", "findings_programs", "train")
    check("mixed: good and bad", 1, "sound.trace", "demo.trace")
    check("mixed: good and cut", 3, "sound.trace", "cut.trace")
    check("mixed: bad and cut", 3, "demo.trace", "cut.trace")
    check("mixed: good and missing", 3, "sound.trace", "missing.trace")
    check("mixed: good and empty", 0, "sound.trace", CORPUS + "/nothing.trace")
    check("mixed: bad and empty", 1, "demo.trace", CORPUS + "/nothing.trace")


def last_line(*arguments):
    return check("the last line", None, *arguments).rstrip().split("\n")[-1]


def try_last_line():
    """It names the trace and the reason."""
    expect(last_line("sound.trace") == "passed", last_line("sound.trace"))
    expect(last_line("sound.trace", "demo.trace").startswith("failed: demo.trace: leaks: 12.0 MiB"), last_line("demo.trace"))
    shutil.copy("demo.trace", "copy.trace")
    expect("(and 1 more trace)" in last_line("demo.trace", "copy.trace"), last_line("demo.trace", "copy.trace"))
    expect("more trace" not in last_line("demo.trace", "demo.trace"), "a trace that is named twice is two")
    line = last_line("sound.trace", "cut.trace")
    expect(line.startswith("not judged: cut.trace: ended by SIGKILL") and "--on-cut judge" in line, line)
    expect(last_line("--fail-on", "out-of-memory", "demo.trace") == "failed: demo.trace: out-of-memory in load_checkpoint",
           last_line("--fail-on", "out-of-memory", "demo.trace"))
    expect("missing.trace: it cannot be read" in last_line("sound.trace", "missing.trace"), last_line("missing.trace"))


def try_what_fails():
    check("nothing fails", 0, "--fail-on", "none", "demo.trace")
    record("marked.trace", "findings_programs", "unbounded_cache", "marked")
    check("a finding fails", 1, "--fail-on", "out-of-memory", "demo.trace", says="FAIL  out-of-memory")
    check("another does not", 0, "--fail-on", "retained", "demo.trace")
    record("grows.trace", "findings_programs", "unbounded_cache")
    check("what grows from round to round", 1, "--fail-on", "growing,retained", "grows.trace")
    record("on_purpose.trace", "findings_programs", "cache_on_purpose")
    check("what is kept on purpose", 0, "--fail-on", "growing,retained", "--max-growth-per-round", "0", "on_purpose.trace")
    record("on_purpose.trace", "findings_programs", "cache_on_purpose", "marked")
    check("what is kept on purpose, with marks", 0, "--fail-on", "growing,retained", "--max-growth", "0", "on_purpose.trace")
    record("beside.trace", "findings_programs", "cache_beside_purpose")
    check("what grows beside it", 1, "--fail-on", "retained", "beside.trace", says="FAIL  retained")
    check("a leak in a pool", 1, os.path.join(HERE, "../../corpus/pool.trace"), "--max-leak", "2G", says="FAIL  retained")
    check("leaks within the budget", 0, "--max-leak", "12M", "demo.trace")
    check("one place above its own", 1, "--max-leak", "12M", "--max-leak-per-place", "11M", "demo.trace")
    check("peak", 1, "--max-leak", "1G", "--max-peak", "1G", "demo.trace", says="FAIL  peak, device 0")
    check("peak of a device that is not there", 3, "--max-leak", "1G", "--max-peak", "1:1G", "demo.trace", says="no trace knows of device '1'")
    check("pinned", 1, "--max-leak", "1G", "--max-pinned", "1K", "demo.trace", says="FAIL  pinned")
    check("pinned enough", 0, "--max-leak", "1G", "--max-pinned", "1G", "demo.trace")


def try_limits_of_parts():
    """Peaks by phase, rank and category, and growth by round."""
    record("phases.trace", "diff_program")
    for limit, code in (("phase=load:88M", 0), ("phase=load:87M", 1), ("phase=step:89M", 0), ("phase=step:88M", 1),
                        ("0:90M", 0), ("0:89M", 1), ("90M", 0)):
        check(f"peak {limit}", code, "--max-leak", "1G", "--max-peak", limit, "phases.trace")
    check("a phase that never was", 3, "--max-leak", "1G", "--max-peak", "phase=missing:1G", "phases.trace", says="'missing'")
    check("a rank that never was", 3, "--max-leak", "1G", "--max-peak", "rank=5:1G", "phases.trace", says="'5'")
    check("a category without a pool", 3, "--max-leak", "1G", "--max-peak", "category=gradient:1G", "phases.trace")
    for limit in ("phase=load", "phase=:1G", "rank=x:1G", "category=nonsense:1G", "where:1G", ":1G"):
        check(f"no limit: {limit}", 2, "--max-peak", limit, "phases.trace")
    for budget, reason in (("--max-unused", "no trace has a framework's pool"), ("--max-growth", "no trace has marks enough")):
        check(f"{budget} of nothing", 3, "--max-leak", "1G", budget, "1G", "demo.trace", says=reason)
    check("rounds that are not there", 3, "--max-leak", "1G", "--max-growth-per-round", "1G", CORPUS + "/leak.trace", says="no trace has rounds")
    for budget in ("--max-unused", "--max-growth", "--max-growth-per-round"):
        said = check(f"{budget} of nothing, for systems that read JUnit", 3, "--max-leak", "1G", budget, "0", "--format", "junit=not_judged.xml", CORPUS + "/clean.trace")
        with open("not_judged.xml", encoding="utf-8") as file:
            tree = xml.etree.ElementTree.fromstring(file.read())
        expect(len(tree.findall(".//error")) == 1 and budget in tree.find(".//error").get("message"), f"JUnit of {budget}: no error")
        expect("ok    " + ("growth" if "growth" in budget else "unused") not in said, f"{budget}: judged, and not judged: {said}")
    pool = CORPUS + "/pool.trace"
    check("marks, and a trace without", 0, "--max-leak", "1G", "--max-growth", "1G", CORPUS + "/phases.trace", CORPUS + "/leak.trace")
    for lists, code, says in ((("--fail-on", "findings"), 1, "note  cached  "), (("--fail-on", "none", "--warn-on", "findings"), 0, "note  cached  "),
                              (("--fail-on", "cached"), 1, "FAIL  cached  ")):
        check("the class 'cached' is no finding", code, "--max-leak", "2G", *lists, pool, says=says)
    check("category", 0, "--fail-on", "none", "--max-peak", "category=input:122M", pool)
    check("category", 1, "--fail-on", "none", "--max-peak", "category=input:121M", pool, says="FAIL  peak, input")
    # At the pool's peak "other" held nothing: a category is judged at its own.
    check("category at its own peak", 0, "--fail-on", "none", "--max-peak", "category=other:1M", pool)
    check("category at its own peak", 1, "--fail-on", "none", "--max-peak", "category=other:1023K", pool, says="FAIL  peak, other")
    check("what the cache kept", 1, "--fail-on", "none", "--max-peak", "category=cache:677M", pool, says="FAIL  peak, cache")
    for rank in (0, 1):
        record(f"rank{rank}.trace", "diff_program", "changed" if rank else "base", RANK=str(rank), WORLD_SIZE="2")
    check("rank", 0, "--max-leak", "1G", "--max-peak", "rank=0:90M", "--max-peak", "rank=1:125M", "rank0.trace", "rank1.trace")
    check("rank", 1, "--max-leak", "1G", "--max-peak", "rank=1:124M", "rank0.trace", "rank1.trace", says="rank 1: 125")
    grows = ("--fail-on", "none", "grows.trace")
    check("growth per round", 1, "--max-growth-per-round", "1M", *grows, says="FAIL  growth per round")
    check("growth per round", 0, "--max-growth-per-round", "3M", *grows)
    check("growth per round of a sound program", 0, "--max-growth-per-round", "0", "sound.trace")
    check("growth per round by marks", 1, "--max-growth-per-round", "1M", "--fail-on", "none", "marked.trace")


def try_repeats():
    """Two runs leak 2 MiB, one 5."""
    for name, mode in (("one", "base"), ("two", "base"), ("three", "changed")):
        record(name + ".trace", "diff_program", mode)
    runs = ("one.trace", "two.trace", "three.trace")
    check("each by itself", 1, "--max-leak", "2M", *runs)
    check("median", 0, "--repeats", "median", "--max-leak", "2M", *runs, says="median of 3 traces")
    check("median, above", 1, "--repeats", "median", "--max-leak", "1M", *runs, says="failed: median of 3 traces: leaks: 2.00 MiB")
    record("four.trace", "diff_program", "changed")
    others = ("one.trace", "three.trace", "four.trace")
    check("median of others", 1, "--repeats", "median", "--max-leak", "2M", *others)
    check("minimum of these", 0, "--repeats", "min", "--max-leak", "2M", *others)
    check("median of peaks", 0, "--repeats", "median", "--max-leak", "1G", "--max-peak", "90M", *runs)
    check("median of peaks", 1, "--repeats", "median", "--max-leak", "1G", "--max-peak", "89M", *runs)
    check("repeats, one cut", 3, "--repeats", "median", "one.trace", "cut.trace", "two.trace")
    check("repeats, a rule", 0, "--repeats", "median", "--suppressions",
          write("rules", "[all]\nmatch = ..., fun:forget\nmax = 2M\n"), *runs)
    check("repeats, a rule of less", 1, "--repeats", "median", "--suppressions",
          write("rules", "[all]\nmatch = ..., fun:forget\nmax = 1M\n"), *runs)
    check("repeats, a baseline", 0, "--repeats", "median", "--baseline", "repeated", "--update-baseline", *runs)
    expect(" 2097152 2 " in read("repeated") and " 94371840 0 device 0" in read("repeated"), read("repeated"))


def try_repeats_of_ranks():
    """Three runs of two ranks: rank 1 leaks 5 MiB in each run, or in one; rank 0 leaks 2 MiB. Each rank is started by itself,
    as launchers do: with `gpumem run`, or with the preload alone."""
    def run(number, mode, how):
        traces = []
        for rank in (0, 1):
            trace, what = f"run{number}.{rank}.trace", mode if rank else "base"
            more = {"RANK": str(rank), "WORLD_SIZE": "2"}
            if how == "preload":
                subprocess.run([f"{BUILD}/tests/diff_program", what], check=True, stdout=subprocess.DEVNULL,
                               env=environment(LD_PRELOAD=f"{BUILD}/preload/libgpumem.so", GPUMEM_OUTPUT=trace, **more))
            else:
                record(trace, "diff_program", what, **more)
            traces.append(trace)
        return traces
    for how in ("preload", "gpumem run"):
        traces = [trace for number in range(3) for trace in run(number, "changed", how)]
        out = check(f"{how}: a rank that leaks in each run", 1, "--repeats", "median", "--max-leak", "2M", *traces,
                    says="failed: median of 3 traces, rank 1: leaks: 5.00 MiB")
        expect("median of 3 traces, rank 0" in out, out)
        check(f"{how}: all allowed", 0, "--repeats", "median", "--max-leak", "5M", *traces)
        check(f"{how}: the peak of a rank", 1, "--repeats", "median", "--max-leak", "1G", "--max-peak", "rank=1:124M", *traces)
        run(1, "base", how)
        run(2, "base", how)
        check(f"{how}: a rank that leaked once", 0, "--repeats", "median", "--max-leak", "2M", *traces)


def try_repeats_of_processes():
    """Three runs with two processes of one program: of both the one that leaks counts, whichever comes first."""
    traces = []
    for number in range(3):
        shell = f"{BUILD}/tests/diff_program {{}} >/dev/null; {BUILD}/tests/diff_program {{}} >/dev/null"
        shell = shell.format(*(("changed", "base") if number == 1 else ("base", "changed")))
        subprocess.run([GPUMEM, "run", "-q", "-o", f"pair{number}.%p.trace", "--", "/bin/sh", "-c", shell], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
        traces += sorted(name for name in os.listdir(".") if name.startswith(f"pair{number}."))
    expect(len(traces) == 6, traces)
    check("one of two processes leaks", 1, "--repeats", "median", "--max-leak", "2M", *traces,
          says="failed: median of 3 runs: leaks: 5.00 MiB")
    check("the same trace twice", 1, "--repeats", "median", "--max-leak", "2M", traces[1], traces[1])


def try_peaks_in_baseline():
    check("update", 0, "--baseline", "peaks", "--update-baseline", "one.trace")
    check("the same peak", 0, "--baseline", "peaks", "--max-increase", "0", "two.trace")
    new = ("--new-only", "--fail-on", "none")
    check("a higher peak is no matter", 0, "--baseline", "peaks", "--fail-on", "none", "three.trace")
    check("a higher peak", 1, "--baseline", "peaks", "--fail-on", "none", "--max-increase", "5%", "three.trace",
          says="90.0 MiB in the baseline")
    check("a higher peak within a share", 0, "--baseline", "peaks", "--fail-on", "none", "--max-increase", "39%", "three.trace")
    check("a higher peak within a size", 0, "--baseline", "peaks", "--fail-on", "none", "--max-increase", "35M", "three.trace")
    check("a higher peak beyond a size", 1, "--baseline", "peaks", "--fail-on", "none", "--max-increase", "34M", "three.trace")
    check("whatever it has grown to", 0, "--baseline", "peaks", *new, "--max-increase", "0", "three.trace")
    check("no such peak", 0, "--baseline", write("nopeaks", "# none\n"), "--fail-on", "none", "--max-increase", "0", "one.trace",
          says="not in the baseline")


def try_made_rules():
    """Rules that are printed for what fails accept it, and not more."""
    traces = ["demo.trace", "grows.trace", "marked.trace", "phases.trace"]
    traces += [f"{CORPUS}/{name}" for name in sorted(os.listdir(CORPUS)) if name.endswith(".trace")]
    tried = 0
    for trace in traces:
        options = ("--fail-on", "all", "--no-vendor-suppressions", "--allow-empty")
        done = subprocess.run([GPUMEM, "check", *options, "--format", "suppressions=made", trace], capture_output=True, check=False)
        if done.returncode != 1:
            continue
        if "has no place" in read("made"):
            continue # nothing was recorded of where it comes from
        tried += 1
        check(f"rules made for {trace}", 0, *options, "--suppressions", "made", trace)
        rules = read("made")
        if "max = " in rules:
            less = re.sub(r"max = (\d+)", lambda found: f"max = {int(found[1]) - 1}", rules)
            check(f"rules made for less than {trace}", 1, *options, "--suppressions", write("less", less), trace)
    expect(tried >= 8, f"only {tried} traces fail")
    out = check("rules are printed", 1, "--gen-suppressions", "demo.trace")
    made = out[out.index("[leak in"):out.rindex("\nfailed")]
    check("rules that are a folder", 2, "--suppressions", "/", "demo.trace", says="gpumem: /: Is a directory")
    check("rules as printed", 0, "--suppressions", write("printed", made), "demo.trace")
    check("nothing to print", 0, "--gen-suppressions", "sound.trace")
    out = check("a budget has no place", 1, "--gen-suppressions", "--max-peak", "1M", "sound.trace")
    expect("# max-peak has no place" in out, out)


def try_vendor_rules():
    record("handle.trace", "vendor_program")
    record("compute.trace", "vendor_program", "compute")
    fails = ("--fail-on", "external")
    check("a handle of the vendor's", 0, *fails, "handle.trace", says="built-in rule 'cuBLAS handle'")
    check("without built-in rules", 1, *fails, "--no-vendor-suppressions", "handle.trace", says="4.00 MiB")
    check("what a call keeps", 1, *fails, "compute.trace", says="FAIL  external         2.00 MiB in 1 allocation")
    rules = check("printed", 0, "--print-suppressions")
    expect("[cuBLAS handle]" in rules, rules)
    check("as a file", 0, *fails, "--no-vendor-suppressions", "--suppressions", write("vendor", rules), "handle.trace")
    out = check("not listed where unused", 0, "sound.trace")
    expect("matched nothing" not in out, out)


def try_rules():
    accepted = write("rules", "# known\nleak:cache_attention_mask\nleak:never_called\n")
    out = check("LeakSanitizer's form", 0, "--suppressions", accepted, "demo.trace", says="'cache_attention_mask'")
    expect("rule 'never_called' matched nothing" in out, "an unused rule is not listed")
    for name, text, code in (
            ("in order", "match = fun:cache_attention*, ..., fun:main", 0),
            ("the innermost must match first", "match = fun:train_step, fun:main", 1),
            ("a gap before", "match = ..., fun:train_step, fun:main", 0),
            ("a whole stack", "match = fun:cache_attention_mask, fun:train_step, fun:main, $", 0),
            ("not a whole stack", "match = fun:cache_attention_mask, fun:train_step, $", 1),
            ("the end of a stack", "match = ..., fun:main, $", 0),
            ("not the end of a stack", "match = ..., fun:train_step, $", 1),
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
    for text in ("[one]\nmatch = a, $, b\n", "leak:\n", "[one]\n", "[one]\nmatch = \n", "[one]\nmatch = a\nmax = much\n", "[one]\nmatch = a\nuntil = soon\n",
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
    marked = write("marked", "\ufeff" + base)
    check("a baseline with a mark of the order of bytes", 0, "--baseline", marked, "demo.trace")
    check("no baseline", 2, "--baseline", write("bad", "leak something\n"), "demo.trace", says="bad:1")
    os.mkdir("folder")
    check("a baseline that cannot be written", 3, "--baseline", "folder", "--update-baseline", "demo.trace")


def try_formats():
    formats = [item for name in ("junit", "sarif", "gitlab", "json", "metrics") for item in ("--format", f"{name}=out.{name}")]
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
    try:
        from prometheus_client.openmetrics.parser import text_string_to_metric_families  # noqa: PLC0415
        samples = {(sample.name, tuple(sorted(sample.labels.items()))): sample.value
                   for metric in text_string_to_metric_families(read("out.metrics")) for sample in metric.samples}
        expect(samples[("gpumem_leaked_bytes", (("class", "leak"),))] == 12 << 20 and
               samples[("gpumem_check_exit_code", ())] == 1 and
               samples[("gpumem_check_issues", (("level", "error"), ("state", "new")))] == 1, f"metrics: {samples}")
    except ImportError:
        print("SKIP: prometheus_client is missing")
    names = []
    for number in range(2): # a process each time, and a folder that is removed
        said = check("a command", 1, "--format", f"junit=run{number}.junit", "--", f"{BUILD}/tests/training_loop")
        expect("/gpumem-check-" not in said.rstrip().split("\n")[-1] and "-o keeps" in said, f"the conclusion of a command: {said[-300:]}")
        names.append(re.findall(r'<test(?:suite|case)[^>]* name="([^"]*)"', read(f"run{number}.junit")))
    expect(names[0] == names[1] and names[0][1] == "training_loop", f"JUnit's names change from run to run: {names}")
    check("not judged", 3, "--format", "junit=cut.junit", "--format", "github", "cut.trace", says="::error title=gpumem::not judged: ")
    check("not judged by one budget", 3, "--max-unused", "1G", "--format", "github", "sound.trace",
          says="::error title=gpumem::not judged: --max-unused")
    expect("<error message=\"not judged" in read("cut.junit"), "junit passes a trace that was not judged")
    check("a file that cannot be written", 3, "--format", "junit=folder/none/x", "sound.trace")


def try_places():
    """A finding has one place, on the page, in the JSON and in the gate: also where several lines share what allocates."""
    record("wrapper.trace", "findings_programs", "inlined_wrapper")
    for trace in ("wrapper.trace", "grows.trace", "demo.trace", "marked.trace"):
        done = subprocess.run([GPUMEM, "report", "--json", trace], capture_output=True, text=True, check=True)
        wanted = {(one["code"], one["file"], one["line"]) for one in json.loads(done.stdout)["findings"]}
        page = subprocess.run([GPUMEM, "report", trace], capture_output=True, text=True, check=True).stdout
        check(f"places of {trace}", None, "--format", "json=places", trace)
        found = {(one["code"], one["file"], one["line"]) for one in json.loads(read("places"))["issues"]
                 if one["code"] in {code for code, _, _ in wanted}}
        expect(wanted and found == wanted, f"{trace}: places {found}, not {wanted}")
        for code, file, line in wanted:
            expect(file is None or f"{os.path.basename(file)}:{line}" in page, f"{trace}: {code} at {file}:{line} is not on the page: {page}")


def try_budgets_apart():
    """Each budget that fails is an issue of its own for systems that go by fingerprints."""
    check("two budgets", 1, "--max-leak", "1G", "--max-peak", "1M", "--max-peak", "phase=step:1M", "--format", "gitlab=two",
          "--format", "json=two.json", "phases.trace")
    prints = [one["fingerprint"] for one in json.loads(read("two"))]
    expect(len(prints) == 2 and len(set(prints)) == 2 and "0" * 16 not in prints, f"fingerprints of budgets: {prints}")
    check("two budgets again", 1, "--max-leak", "1G", "--max-peak", "1M", "--max-peak", "phase=step:1M", "--format", "gitlab=again",
          "phases.trace")
    expect([one["fingerprint"] for one in json.loads(read("again"))] == prints, "fingerprints of budgets change")


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
        for part in (try_exit_codes, try_last_line, try_what_fails, try_limits_of_parts, try_repeats,
                     try_repeats_of_ranks, try_repeats_of_processes,
                     try_peaks_in_baseline, try_made_rules, try_vendor_rules, try_rules, try_baseline, try_formats, try_places, try_budgets_apart, try_repository):
            part()
        os.chdir("/")
    print("FAILED" if failed else "passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
