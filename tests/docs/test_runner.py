#!/usr/bin/env python3
"""The runner of pages accepts a sound page, and refuses each page that promises what does not happen: test_runner.py BUILD"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import page as pages  # noqa: E402
import run_page  # noqa: E402

SOUND = """# Page
<!-- test: program app training_loop -->
<!-- test: env GPUMEM_SIM_MEMORY=3G -->
```python file=x.py
print("3.5 GiB", "17.2 ms")
```
```sh
python x.py && python x.py >log
```
```text
3.5 GiB   99 s
```
<!-- test: exit 3 -->
```sh
test "$GPUMEM_SIM_MEMORY" = 3G
gpumem path >/dev/null && [ -x app ] && exit 3
```
<!-- test: not-run it would remove everything -->
```sh
false && exit 9
```
"""
# What each change of the sound page must be refused for.
SICK = {
    "another size": ("3.5 GiB   99 s", "3.6 GiB   99 s", "not printed: 3.6"),
    "a line that is not there": ("3.5 GiB   99 s", "3.5 GiB   99 s\nmore", "not printed: more"),
    "lines in another order": ("3.5 GiB   99 s", "17.2 ms\n3.5 GiB", "not printed: 3.5"),
    "another exit code": ("exit 3 -->", "exit 4 -->", "exit code 3, not 4"),
    "a failure nobody announced": ("<!-- test: exit 3 -->\n", "", "exit code 3, not 0"),
    "a failure in the middle": ("python x.py && ", "false\n", "exit code 1, not 0"),
    "a syntax error in what is not run": ("false && exit 9", "if false", "syntax error"),
    "a syntax error in a file": ('print("3.5', 'print(("3.5', "never closed"),
    "a word the runner does not know": ("test: exit", "test: exits", "does not know"),
    "output of what is not run": ("exit 9\n```", "exit 9\n```\n```text\nx\n```", "no command that is run"),
    "a block of no known language": ("```python file=x.py", "```python3", "without file=NAME"),
    "a block without an end": ("exit 9\n```\n", "exit 9\n", "without an end"),
}
NOTHING_TO_RUN = "# Page\n```yaml\na: b\n```\n"


def verdict(build, text):
    try:
        return run_page.try_page(build, text)
    except pages.PageError as error:
        return str(error), "not tried"


def main():
    build, failed = os.path.abspath(sys.argv[1]), []

    def expect(condition, text):
        if not condition:
            failed.append(text)
            print("FAIL:", text)

    problem, how = verdict(build, SOUND)
    expect(problem is None and how == "tried with the simulator", f"the sound page: {problem}, {how}")
    for name, (old, new, reason) in SICK.items():
        assert SOUND.count(old) == 1, name
        problem, _ = verdict(build, SOUND.replace(old, new))
        expect(problem and reason in problem, f"{name}: {problem}")
    problem, _ = verdict(build, NOTHING_TO_RUN)
    expect(problem == "no block that can be run", f"nothing to run: {problem}")
    problem, how = verdict(build, SOUND.replace("# Page", "<!-- test: needs abacus -->"))
    expect(problem is None and how.startswith("SKIP: abacus"), f"a client that is absent: {problem}, {how}")
    print("FAILED" if failed else f"1 sound page, {len(SICK) + 1} sick ones, 1 skipped: told apart")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
