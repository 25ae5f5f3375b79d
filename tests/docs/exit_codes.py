#!/usr/bin/env python3
"""Each cell of docs/exit-codes.md: exit_codes.py BUILD SOURCE

Every command and code of the table has a line of COMMANDS here that ends so, and none is missing in the table.
"""
import os
import re
import subprocess
import sys
import tempfile

build, source = map(os.path.abspath, sys.argv[1:3])
GPUMEM = build + "/report/gpumem"
LEAK = build + "/tests/training_loop"
ALL = {"run", "report", "check", "ask", "diff", "top", "export", "dry-run", "fit", "info", "summarize", "whatif", "path", "skill"}
SCRIPT = """
import ctypes, sys
runtime = ctypes.CDLL("libcudart.so.13")
size = ctypes.c_size_t(int(sys.argv[1]) << 20)
sys.exit(runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), size) and 1)
"""
PYTHON = sys.executable
COMMANDS = {
    0: ["run -q -- true", "report leak.trace", "check --max-leak 1G leak.trace", "ask leak.trace verdict", "diff leak.trace leak.trace",
        "top --once leak.trace", "export -f csv -o out.csv leak.trace", f"dry-run --device h100 -- {PYTHON} take.py 1",
        f"fit --device h100 --over SIZE=1..4 -- {PYTHON} take.py {{SIZE}}", "info leak.trace", "summarize -o out.sum leak.trace",
        "whatif pool.trace", "path", "skill"],
    1: ["check --max-leak 0 leak.trace", "diff --exit-code pool.trace leak.trace", f"dry-run --device h100 -- {PYTHON} take.py 900000",
        f"fit --device h100 --over SIZE=800000..900000 -- {PYTHON} take.py {{SIZE}}"],
    2: ["run --nonsense", "report --at oom clean.trace", "check --max-peak x leak.trace", "ask leak.trace site 00000000", "diff leak.trace",
        "top --nonsense", "export -f nonsense leak.trace", "dry-run --device nonsense -- true", "fit", "info --nonsense", "summarize --nonsense",
        "whatif --set nonsense=1 pool.trace", "path more", "skill more"],
    3: ["report garbage.trace", "check garbage.trace", "diff leak.trace garbage.trace", "export -f csv garbage.trace", "info garbage.trace",
        "summarize garbage.trace", "whatif garbage.trace", "ask garbage.trace verdict"],
    4: ["report noted", "check -- true", "diff leak.trace noted", "top 1", "ask noted verdict"],
    126: ["run -q -- ./plain", "check -- ./plain", "dry-run -- ./plain"],
    127: ["run -q -- ./absent", "check -- ./absent", "dry-run -- ./absent"],
}
OF_COMMAND = [(7, "run -q -- sh -c 'exit 7'"), (7, "check -- sh -c 'exit 7'"), (137, "run -q -- sh -c 'kill -9 $$'"), (137, "check -- sh -c 'kill -9 $$'")]
NOT_RUN = {5: {"dry-run", "fit"}, 125: {"run", "dry-run"}}  # need PyTorch, and a failing fork: dry.wheel and e2e.cli have them
failed = []


def expect(good, text):
    if not good:
        failed.append(text)
        print("FAIL: " + text, file=sys.stderr)


def run(words, folder, environment):
    done = subprocess.run(["sh", "-c", f'exec "{GPUMEM}" {words}'], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, check=False)
    return done.returncode, done.stderr.decode(errors="replace")


def table():
    """{code: commands} as the page has it."""
    with open(source + "/docs/exit-codes.md", encoding="utf-8") as file:
        rows = re.findall(r"^\| (\d+|of COMMAND) \| .* \| ([^|]*) \|$", file.read(), re.M)
    return {code: ALL if commands == "all" else set(re.findall(r"`([a-z-]+)", commands)) for code, commands in rows}


with tempfile.TemporaryDirectory() as work:
    home = dict(os.environ, LD_LIBRARY_PATH=build + "/sim", XDG_CACHE_HOME=work + "/cache", GPUMEM_SIM_MEMORY="2G")
    os.mkdir(work + "/noted")
    for name in ("clean", "pool"):
        os.symlink(f"{source}/tests/corpus/{name}.trace", f"{work}/{name}.trace")
    for name, text in (("take.py", SCRIPT), ("garbage.trace", "no trace" * 1000), ("plain", "no program")):
        with open(os.path.join(work, name), "w", encoding="utf-8") as written:
            written.write(text)
    expect(run(f"run -q --output leak.trace -- {LEAK}", work, home)[0] == 0, "the program was not recorded")
    subprocess.run(["cp", "leak.trace", "noted/old.trace"], cwd=work, check=True)
    subprocess.run([GPUMEM, "run", "-q", "--", "true"], cwd=work + "/noted", env=home, check=True)
    del home["GPUMEM_SIM_MEMORY"]
    for wanted, lines in [*COMMANDS.items(), *((code, [line]) for code, line in OF_COMMAND)]:
        for line in lines:
            code, said = run(line, work, home)
            expect(code == wanted, f"gpumem {line}: exit code {code} instead of {wanted}: {said[-300:]}")
told = table()
for number, commands in told.items():
    if number == "of COMMAND":
        shown = {line.split()[0] for _, line in OF_COMMAND}
    else:
        shown = {line.split()[0] for line in COMMANDS.get(int(number), [])} | NOT_RUN.get(int(number), set())
    expect(shown == commands, f"code {number}: the page has {sorted(commands)}, the test {sorted(shown)}")
expect({int(number) for number in told if number.isdigit()} == {*COMMANDS, *NOT_RUN}, f"the page has the codes {sorted(told)}")
sys.exit(bool(failed))
