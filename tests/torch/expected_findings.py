"""The findings that a scenario expects of `gpumem report`, marked in its source at the line to blame.

A comment `# finding: CODE` at the end of a line means that the report has a finding of that code (docs/findings.md)
whose place is that file and line; `# marked: CODE`, alone or after it, that a run with named steps has that one
instead; `# note: CODE`, last, that it has that one too, as a note. A scenario without such comments is sound and must
have no finding at all.
"""
import ast
import json
import os
import re
import subprocess
import sys

MARK = re.compile(r"# (?:finding: ([a-z-]+))?(?:; )?(?:marked: ([a-z-]+))?(?:; )?(?:note: ([a-z-]+))?$")


def expected(path, scenario, marked):
    """{(code, line, whether it must be a note)} of the function of that name."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    function = next(node for node in ast.walk(ast.parse(text))
                    if isinstance(node, ast.FunctionDef) and node.name == scenario)
    found = set()
    for number, line in enumerate(text.splitlines(), 1):
        mark = MARK.search(line)
        code = mark and ((marked and mark[2]) or mark[1])
        if code and function.lineno <= number <= function.end_lineno:
            found.add((code, number, False))
        if mark and mark[3] and function.lineno <= number <= function.end_lineno:
            found.add((mark[3], number, True))
    return found


def problems(gpumem, trace, path, scenario, marked=False):
    """Differences between the findings of the trace and those that the scenario expects."""
    done = subprocess.run([gpumem, "report", "--json", trace], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return [f"report: exit code {done.returncode}: {done.stderr[-500:]}"], ""
    report = json.loads(done.stdout)
    findings, wanted, found, texts = report["findings"], expected(path, scenario, marked), set(), []
    if not (3, 8) <= sys.version_info[:2] <= (3, 15):
        return [], "not judged: gpumem knows no Python frames of this interpreter"
    for finding in findings:
        here = finding["file"] is not None and os.path.basename(finding["file"]) == os.path.basename(path)
        one = finding["code"], finding["line"] if here else 0
        found.add((*one, (*one, True) in wanted and finding["severity"] == "note"))
        if found.isdisjoint(wanted & {(*one, True), (*one, False)}):
            texts.append(f"a finding that is not expected: {finding['severity']} {finding['code']} at "
                         f"{finding['file']}:{finding['line']}: {finding['cause']}")
    texts += [f"no finding {code} at line {line}" for code, line, _ in sorted(wanted - found)]
    texts += ["one finding twice"] * (len(found) != len(findings))
    told = ", ".join(f"{code}:{line}" for code, line, _ in sorted(found))
    return texts, told or "no finding"
