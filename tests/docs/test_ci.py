#!/usr/bin/env python3
"""What the documentation gives CI systems to read is YAML of their form: test_ci.py BUILD PACKAGES

Each `gpumem check` of a snippet must understand its options: it runs with them and a command that does nothing. Files
that another step reads must be those that it writes. PyYAML, from PACKAGES, reads the snippets; where it is missing,
the test says so.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
PAGES = ("README.md", "docs/gate.md", "docs/gate-in-tests.md")
GITHUB_KEYS = {"run", "uses", "if", "with", "name", "env", "id"}
GITLAB_REPORTS = {"junit", "codequality", "metrics"}
failed = []


def expect(condition, text):
    if not condition:
        failed.append(text)
        print("FAIL:", text)


def blocks(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return re.findall(r"^```yaml\n(.*?)^```$", file.read(), re.M | re.S)


def run_check(where, command):
    """Runs a command line of a snippet, with `true` in place of what stands behind --. Returns {format: file}."""
    words = shlex.split(command)
    expect(words[:2] == ["gpumem", "check"] and "--" in words, f"{where}: no `gpumem check ... -- COMMAND`: {command}")
    options = words[2:words.index("--")]
    expect(len(words) > words.index("--") + 1, f"{where}: no command behind --: {command}")
    with tempfile.TemporaryDirectory() as folder:
        for number, option in enumerate(options):
            if option in ("--baseline", "--suppressions"):
                with open(os.path.join(folder, options[number + 1]), "w", encoding="utf-8") as file:
                    file.write("# nothing is known\n")
        environment = {name: value for name, value in os.environ.items() if name != "GITHUB_STEP_SUMMARY"}
        done = subprocess.run([sys.argv[1] + "/report/gpumem", "check", "--allow-empty", *options, "--", "/bin/true"], cwd=folder,
                              env=environment, capture_output=True, text=True, check=False)
        expect(done.returncode == 0, f"{where}: {command}: exit code {done.returncode}: {done.stdout}{done.stderr}")
        written = dict(option.split("=", 1) for option in options if "=" in option and not option.startswith("-"))
        for file in written.values():
            expect(os.path.exists(os.path.join(folder, file)), f"{where}: {file} is not written")
        return {**written, "junit": next((word.split("=", 1)[1] for word in words if word.startswith("--junit-xml=")),
                                         written.get("junit"))}


def read_github(where, steps):
    written = {}
    for step in steps:
        expect(set(step) <= GITHUB_KEYS and ("run" in step) != ("uses" in step), f"{where}: no step of GitHub: {step}")
        if "run" in step:
            written.update(run_check(where, step["run"]))
        sarif = step.get("with", {}).get("sarif_file")
        expect(sarif is None or sarif == written.get("sarif"), f"{where}: {sarif} is not what is written: {written}")


def read_gitlab(where, jobs):
    for name, job in jobs.items():
        expect(set(job) == {"script", "artifacts"}, f"{where}: no job of GitLab: {name}")
        written = run_check(where, job["script"])
        reports = job["artifacts"]["reports"]
        names = {"junit": "junit", "codequality": "gitlab", "metrics": "metrics"}
        expect(set(reports) <= GITLAB_REPORTS and job["artifacts"]["when"] == "always", f"{where}: artifacts {job['artifacts']}")
        for kind, file in reports.items():
            expect(written.get(names[kind]) == file, f"{where}: {kind}: {file} is not what is written: {written}")


def main():
    sys.path.append(sys.argv[2])
    try:
        import yaml  # noqa: PLC0415 the package may be missing
    except ImportError:
        print("test_ci: SKIP: PyYAML is missing")
        return 0
    count = 0
    for page in PAGES:
        for number, block in enumerate(blocks(page), 1):
            content = yaml.safe_load(block)
            (read_github if isinstance(content, list) else read_gitlab)(f"{page}, YAML {number}", content)
            count += 1
    expect(count >= 5, f"only {count} snippets")
    print("FAILED" if failed else "passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
