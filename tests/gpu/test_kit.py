#!/usr/bin/env python3
"""The GPU check kit itself, where there is no GPU: test_kit.py BUILD

  - without a device every check is skipped with the reason, one line says so, and the exit code is 0;
  - the simulated driver is never taken for a GPU;
  - in its self-test on the simulator the checks pass, every line says SIMULATED, and the kit refuses to write results
    under the name of a GPU's;
  - a broken promise is a FAIL and the exit code 1.
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CHECK = os.path.join(HERE, "..", "..", "scripts", "gpu-check")
build = os.path.abspath(sys.argv[1])
failures = []


def expect(condition, text):
    print(("ok   " if condition else "FAIL ") + text)
    if not condition:
        failures.append(text)


def run(*arguments, **environment):
    done = subprocess.run([sys.executable, CHECK, *arguments], env=dict(os.environ, **environment),
                          capture_output=True, text=True, timeout=280, check=False)
    verdicts = {}
    for line in done.stdout.splitlines():
        words = line.removeprefix("SIMULATED ").split(" ", 1)
        if words[0] in ("PASS", "FAIL", "SKIP"):
            name, _, figures = words[1].partition(": ")
            verdicts[name] = (words[0], figures, line)
    return done, verdicts


def without_a_gpu(folder):
    page = os.path.join(folder, "gpu-results.md")
    done, verdicts = run("--build", build, "--output", page, CUDA_VISIBLE_DEVICES="", LD_LIBRARY_PATH="")
    expect(done.returncode == 0, f"without a GPU: exit code {done.returncode}")
    expect(len(verdicts) > 30, f"without a GPU: {len(verdicts)} checks")
    expect(all(verdict == "SKIP" and reason for verdict, reason, _ in verdicts.values()), "all skipped, with a reason")
    expect("No GPU was tried" in done.stdout, "one line says that there is no GPU")
    with open(page, encoding="utf-8") as file:
        text = file.read()
    expect("No GPU was tried" in text and "PASS" not in text, "so does the page")


def simulator_is_no_gpu():
    done, verdicts = run("--build", build, LD_LIBRARY_PATH=build + "/sim")
    expect(all(verdict == "SKIP" for verdict, _, _ in verdicts.values()) and "simulated" in done.stdout,
           "the simulated driver is not taken for a GPU")


def self_test(folder):
    done, verdicts = run("--simulator", build, "--output", folder + "/self-test.md")
    expect(done.returncode == 0, f"self-test: exit code {done.returncode}: {done.stdout[-1500:]}{done.stderr[-500:]}")
    passed = {name for name, (verdict, _, _) in verdicts.items() if verdict == "PASS"}
    wanted = {"driver calls", "driver semantics", "memory taken", "without a compiler", "shared runtime", "second door", "planted leak",
              "exits"}
    expect(wanted <= passed, f"self-test: {wanted - passed} did not pass")
    expect(all(line.startswith("SIMULATED ") for _, _, line in verdicts.values()), "every line says SIMULATED")
    with open(folder + "/self-test.md", encoding="utf-8") as file:
        expect(file.read().startswith("# Results of the self-test on the simulated driver: NOT a GPU's"),
               "the page says so too")
    done, verdicts = run("--simulator", build, "--output", folder + "/gpu-results.md")
    expect(done.returncode == 2 and not verdicts, "no page of that name from the simulator")


def broken_promises():
    done, verdicts = run("--simulator", build, "driver calls", GPUMEM_OUTPUT="/nonexistent/%p")
    expect(done.returncode == 1 and verdicts["driver calls"][0] == "FAIL", "a trace that is missing is a failure")
    done, verdicts = run("--simulator", build, "driver calls", GPUMEM_SIM_FAIL="alloc:9")
    expect(done.returncode == 1 and verdicts["driver calls"][0] == "FAIL", "so is a program that stops")


with tempfile.TemporaryDirectory() as temporary:
    without_a_gpu(temporary)
    simulator_is_no_gpu()
    self_test(temporary)
    broken_promises()
sys.exit(1 if failures else 0)
