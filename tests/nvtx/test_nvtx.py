#!/usr/bin/env python3
"""NVTX marks and ranges become phases, and neither the program nor another tool notices.

    test_nvtx.py BUILD FOLDER
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

MIB = 1 << 20
problems = 0


def expect(good, text):
    global problems
    if not good:
        problems += 1
        print("FAIL: " + text, file=sys.stderr)


class Scene:
    def __init__(self, build, folder):
        self.build, self.folder = os.path.abspath(build), os.path.abspath(folder)
        self.preload = self.build + "/preload/libgpumem.so"
        self.gpumem = self.build + "/report/gpumem"
        self.tool = self.folder + "/libnvtx_tool.so"
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("GPUMEM_", "NVTX_", "LD_PRELOAD"))}
        self.environment["LD_LIBRARY_PATH"] = self.build + "/sim"

    def run(self, *arguments, command=(), **variables):
        """The output of the program, the output of a tool, and the traces as JSON."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([*command, self.folder + "/nvtx_program", *arguments], cwd=folder,
                                  env=dict(self.environment, **variables), capture_output=True, timeout=60,
                                  check=False)
            expect(done.returncode == 0, f"{arguments} {variables}: exit code {done.returncode}: {done.stderr!r}")
            traces = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
            reports = [json.loads(subprocess.run([self.gpumem, "report", "--json", path], capture_output=True,
                                                 timeout=60, check=True).stdout) for path in traces]
            return done.stdout, done.stderr, reports


def check_phases(report, name):
    """The pushed ranges of one copy of NVTX, that of the program or of the library."""
    ranges = {tuple(phase["path"]): phase for phase in report["phases"] if "path" in phase}

    def check(path, growth):
        phase = ranges.get(path)
        expect(phase is not None, f"no range {path}: {sorted(ranges)}")
        if phase:
            grown = sum(place["growth"] for place in phase["memory"])
            expect(grown == growth, f"{path} grew by {grown}, not {growth}")
            expect(phase["domain"] is None, f"{path} is of {phase['domain']}")
            expect(phase["unfinished"] == 0, f"{path} has no end")

    whole, wide = (name,), (name, "w\u00efde push")
    check(whole, MIB)
    check(wide, MIB)
    check((*wide, "ascii", "w\u00efde"), 0)
    check((*wide, "ascii", "w\u00efde", "", "", "", "x" * 1024), 0)


def main():
    scene = Scene(*sys.argv[1:3])
    off = {"LD_PRELOAD": scene.preload, "NVTX_INJECTION64_PATH": scene.preload}
    on = dict(off, GPUMEM_NVTX="1")
    run = (scene.gpumem, "run", "--quiet", "--nvtx", "--")

    # Alone: the program sees no difference, and the report has its names.
    bare, said, _ = scene.run("cuda")
    expect(b"-2" in bare and said == b"", f"without anybody: {bare!r} {said!r}")
    for variables, command in ((off, ()), (on, ()), ({}, run)):
        output, said, reports = scene.run("cuda", command=command, **variables)
        expect((output, said) == (bare, b""), f"{variables} {command}: {output!r} {said!r}")
        expect(len(reports) == 1, f"{variables}: {len(reports)} traces")
        if variables is off:
            expect(reports[0]["phase_count"] == 0, "phases without GPUMEM_NVTX=1")
            continue
        for name in ("program", "library"):
            check_phases(reports[0], name)
        check_details(reports[0])
    output, said, reports = scene.run(**on)
    expect(len(reports) == 1 and reports[0]["phase_count"] > 10, "names are worth a trace without a CUDA call")
    expect(scene.run(**off)[2] == [], "a trace without a CUDA call or a name")

    # Before another tool: the same calls, in the same order, with the same results.
    alone = scene.run("tool", "cuda", NVTX_INJECTION64_PATH=scene.tool)
    expect(alone[1].count(b"initialize\n") == 2, f"the tool alone: {alone[1][:200]!r}")
    for variables, command in ((dict(on, GPUMEM_NVTX_NEXT=scene.tool), ()), (dict(off, GPUMEM_NVTX_NEXT=scene.tool), ()),
                               ({"NVTX_INJECTION64_PATH": scene.tool}, run)):
        both = scene.run("tool", "cuda", command=command, **variables)
        expect(both[:2] == alone[:2], f"{variables}: another tool sees a difference:\n{alone[:2]}\n{both[:2]}")
        if "GPUMEM_NVTX" in variables or command:
            for name in ("program", "library"):
                check_phases(both[2][0], name)
            check_details(both[2][0])

    # A tool that refuses, or that is not there.
    alone = scene.run("cuda", NVTX_INJECTION64_PATH=scene.tool, TOOL_FAILS="1")
    both = scene.run("cuda", GPUMEM_NVTX_NEXT=scene.tool, TOOL_FAILS="1", **on)
    expect(both[:2] == alone[:2] and both[2][0]["phase_count"] > 10, f"refusing:\n{alone[:2]}\n{both[:2]}")
    both = scene.run("cuda", "injection", GPUMEM_NVTX_NEXT="/nonexistent/tool.so", **on)
    expect(both[0] == bare and both[2][0]["phase_count"] > 10, f"a tool that is not there: {both[0]}")

    # The library under two paths is still one recorder.
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(scene.preload, folder)
        output, said, reports = scene.run("cuda", **dict(on, NVTX_INJECTION64_PATH=copy))
        expect((output, said) == (bare, b"") and len(reports) == 1, f"two paths: {len(reports)} traces, {said!r}")
        check_phases(reports[0], "program")
    return 1 if problems else 0


def check_details(report):
    """Calls that occur once: domains, registered strings, started ranges, marks."""
    def grown(path, domain):
        """The phase with this path, whoever owns the names around it."""
        return sum(place["growth"] for phase in report["phases"] for place in phase["memory"]
                   if (phase.get("path"), phase.get("domain")) == (list(path), domain))

    for name in ("program", "library"):
        expect(grown(("registered",), name + " domain") == MIB, f"registered of {name}")
        expect(grown(("w\u00efde",), name + " domain") == MIB, f"started range of {name}")
    expect(grown(("registered", "\U0001f680"), "b\u00fccher") == 2 * MIB, "a wide registered string")
    for name in ("start a", "start w", "ascii"):
        expect(grown((name,), None) == 2 * MIB, f"range {name}")
    expect(report["marks"] == 8, f"{report['marks']} marks")
    between = [(phase["from"], phase["to"], phase["count"]) for phase in report["phases"] if "from" in phase]
    expect(sorted(between, key=str) == sorted([(None, "mark a", 1), ("mark a", "mark w", 2), ("mark w", "ascii", 2),
                                               ("ascii", "mark a", 1), ("ascii", None, 1)], key=str),
           f"intervals {between}")


if __name__ == "__main__":
    sys.exit(main())
