#!/usr/bin/env python3
"""The pytest plugin, with pytest and pytest-xdist as pip has them: plugin.py BUILD PACKAGES"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

BUILD, PACKAGES = sys.argv[1:3]
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GPUMEM, LIBRARY = BUILD + "/report/gpumem", BUILD + "/preload/libgpumem.so"
ENDINGS = ("leaves", "takes", "fails", "wrong")
failed = []


def expect(condition, text):
    if not condition:
        failed.append(text)
        print("FAIL:", text)


def pytest(folder, *arguments, before=(), preload=True, **variables):
    """Runs pytest in the folder; returns the process and {test: outcome}."""
    environment = dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim", PYTHONDONTWRITEBYTECODE="1",
                       PYTHONPATH=os.pathsep.join((PACKAGES, SOURCE + "/python")), GPUMEM_SIM_DEVICES="2", **variables)
    if preload:
        environment["LD_PRELOAD"] = LIBRARY
    done = subprocess.run([*before, sys.executable, "-m", "pytest", "-p", "gpumem_pytest", "-p", "no:cacheprovider", "-rA",
                           *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    outcomes = {}
    for outcome, test in re.findall(r"^(PASSED|FAILED|XFAIL|ERROR) \S*?cases\.py::(\S+)", done.stdout, re.M):
        outcomes[test] = outcome
    return done, outcomes


def check_outcomes(what, done, outcomes):
    for test, outcome in outcomes.items():
        name = re.sub(r"\[.*", "", test)
        wanted = "FAILED" if name.endswith(ENDINGS) else "XFAIL" if "is_expected" in name else "PASSED"
        expect(outcome == wanted, f"{what}: {test} {outcome}")
    expect(len(outcomes) == 27, f"{what}: {len(outcomes)} outcomes\n{done.stdout[-3000:]}{done.stderr[-2000:]}")
    expect(done.returncode == 1, f"{what}: exit code {done.returncode}")
    expect("NOT JUDGED" not in done.stdout, f"{what}: {done.stdout}")
    for text in ("2 MiB (2097153 B) was taken at one time; the limit is 2 MiB",
                 "4 KiB (4096 B) in 1 allocation not freed; the limit is 0 B",
                 "9 MiB (9437184 B) was in use at one time; the limit is 8 MiB",
                 "1 MiB (1048576 B) on device 0 was taken at one time; the limit is 0 B",
                 "'many' is no size", "device=1000", "warmups=-1", "its own"):
        expect(text in done.stdout, f"{what}: not said: {text}")
    expect(re.search(r"2 MiB +0 B +cases\.py::test_beyond_takes FAILED", done.stdout), f"{what}: no row in the summary")


def recorded():
    """By hand, by gpumem run, as a flight trace, with a ring that is always full, and in workers."""
    for what, arguments in (("by hand", {}), ("gpumem run", {"before": (GPUMEM, "run", "-q", "--"), "preload": False}),
                            ("flight", {"GPUMEM_MODE": "flight"}), ("small ring", {"GPUMEM_RING": "4K"})):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(SOURCE + "/tests/pytest/cases.py", folder)
            check_outcomes(what, *pytest(folder, "--gpumem-top=50", "cases.py", **arguments))
            if what != "flight":
                check_report(what, folder)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(SOURCE + "/tests/pytest/cases.py", folder)
        check_outcomes("workers", *pytest(folder, "--gpumem-top=50", "-n2", "--dist=loadfile", "cases.py"))


def check_report(what, folder):
    report = json.loads(subprocess.run([GPUMEM, "report", "--json"], cwd=folder, capture_output=True, check=True).stdout)
    phases = {"/".join(phase.get("path", [])) for phase in report["phases"]}
    expect("cases.py::test_within" in phases and "cases.py::test_parameter[2]" in phases,
           f"{what}: phases {sorted(phases)}")


def nobody():
    """A limit that nobody checks is no pass."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(SOURCE + "/tests/pytest/cases.py", folder)
        for what, arguments in (("absent", {"preload": False}), ("off", {"GPUMEM_OUTPUT": "/no/such/folder/x"})):
            done, outcomes = pytest(folder, "cases.py", **arguments)
            passed = {test for test, outcome in outcomes.items() if outcome == "PASSED"}
            expect(passed == {"test_without_a_mark"}, f"{what}: passed: {passed}")
            expect("NOT JUDGED: libgpumem.so is" in done.stdout and "SKIPPED [" in done.stdout,
                   f"{what}: not said\n{done.stdout}")
            for option in (["--gpumem-require"], ["-o", "gpumem_require=true"]):
                done, outcomes = pytest(folder, *option, "cases.py", **arguments)
                expect(outcomes.get("test_within") == "FAILED" and outcomes.get("test_without_a_mark") == "PASSED"
                       and "SKIPPED" not in done.stdout, f"{what} {option}: {done.stdout}")
        done, _ = pytest(folder, "cases.py::test_without_a_mark", preload=False)
        expect(done.returncode == 0 and "gpumem:" not in done.stdout, f"nothing to say: {done.stdout}")
        for option in ("--gpumem-fail-on-increase", "--gpumem-update-baseline"):
            done, _ = pytest(folder, option, "cases.py", preload=False)
            expect(done.returncode == 4 and "need libgpumem.so" in done.stderr, f"{option}: {done.stderr}")


def lost():
    """Records were lost: a limit fails, whatever the options."""
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/cases.py", "w", encoding="utf-8") as file:
            with open(SOURCE + "/tests/pytest/cases.py", encoding="utf-8") as cases:
                file.write(cases.read().split("@pytest.mark.gpu_limit_peak")[0])
            file.write("@pytest.mark.gpu_limit_leaks('1 GiB')\ndef test_lost():\n"
                       "    for _ in range(100000):\n        give(take(512))\n")
        done, outcomes = pytest(folder, "cases.py", GPUMEM_ON_FULL="drop", GPUMEM_RING="4K")
        expect(outcomes == {"test_lost": "FAILED"} and "records were lost" in done.stdout, f"lost: {done.stdout}")


def baseline():
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(SOURCE + "/tests/pytest/cases.py", folder)
        path = folder + "/gpumem-tests.txt"
        done, _ = pytest(folder, "--gpumem-fail-on-increase", "cases.py")
        expect(done.returncode == 4 and "there is no baseline" in done.stderr, f"no baseline: {done.stderr}")
        chosen = ["cases.py::test_within", "cases.py::test_clean", "cases.py::test_without_a_mark"]
        done, _ = pytest(folder, "--gpumem-update-baseline", *chosen)
        expect(done.returncode == 0, f"update: {done.stdout}{done.stderr}")
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        wanted = ["1048576 0 cases.py::test_clean", "1048576 0 cases.py::test_within",
                  "2048 2048 cases.py::test_without_a_mark"]
        expect(lines[1:] == wanted and lines[0].startswith("#"), f"baseline: {lines}")
        done, _ = pytest(folder, "--gpumem-fail-on-increase", *chosen)
        expect(done.returncode == 0, f"the same again: {done.stdout}")
        with open(path, "w", encoding="utf-8") as file:
            file.write("1048000 0 cases.py::test_within\n0 0 cases.py::test_without_a_mark\n")
        for increase, ends in ((None, 0), ("2048", 0), ("1K", 1), ("0.01%", 1)):
            more = [f"--gpumem-max-increase={increase}"] if increase else []
            done, outcomes = pytest(folder, "--gpumem-fail-on-increase", *more, *chosen)
            expect(done.returncode == ends and "1 not in the baseline" in done.stdout, f"{increase}: {done.stdout}")
            expect("the baseline has 0 B" in done.stdout or not ends, f"{increase}: {done.stdout}")
            expect(outcomes["test_within"] == ("FAILED" if increase == "0.01%" else "PASSED"), f"{increase}: {outcomes}")
        done, _ = pytest(folder, "-n2", "--gpumem-update-baseline", "cases.py::test_clean")
        with open(path, encoding="utf-8") as file:
            expect(len(file.read().splitlines()) == 4, "a test that did not run keeps its line, also with workers")
        for wrong, said in (("x 0 test\n", "not `PEAK LEFT TEST`"), ("5\n", "not `PEAK LEFT TEST`")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(wrong)
            done, _ = pytest(folder, "--gpumem-fail-on-increase", *chosen)
            expect(done.returncode == 4 and said in done.stderr, f"{wrong!r}: {done.stderr}")
        for wrong in (["--gpumem-max-increase=lots"], ["--gpumem-fail-on-increase", "--gpumem-update-baseline"]):
            done, _ = pytest(folder, *wrong, "cases.py")
            expect(done.returncode == 4, f"{wrong}: {done.returncode}")


recorded()
nobody()
lost()
baseline()
print(f"{len(failed)} failed")
sys.exit(1 if failed else 0)
