#!/usr/bin/env python3
"""The wheel's and the tarball's whole life, on this machine: portable.py BUILD

Builds both for the oldest glibc they promise, installs the wheel into a fresh environment, records and reports with it,
and takes it out again.
"""
import json
import os
import subprocess
import sys
import tempfile
import venv

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = """
import ctypes, libgpumem
cudart = ctypes.CDLL("libcudart.so.13")
def leak():
    cudart.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20))
with libgpumem.range("step"):
    leak()
assert libgpumem.active()
assert libgpumem.check_now().bytes == 1 << 20
"""
PLUGIN = """
from importlib import metadata
found = metadata.entry_points()
found = found.select(group="pytest11") if hasattr(found, "select") else found["pytest11"]
assert [point.value for point in found if point.name == "gpumem"] == ["libgpumem.gpumem_pytest"], found
"""
failed = []


def expect(condition, text):
    if not condition:
        failed.append(text)
        print("FAIL:", text)


def files_below(folder):
    return {os.path.join(where, name) for where, _, names in os.walk(folder) for name in names if not name.endswith(".pyc")}


def try_record(gpumem, python, build, folder):
    """Records in `folder`, and reports without saying which trace."""
    with open(os.path.join(folder, "x.py"), "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    subprocess.run([*gpumem, "run", "-q", "--", python, "x.py"], check=True, cwd=folder,
                   env=dict(os.environ, LD_LIBRARY_PATH=build + "/sim"))
    report = json.loads(subprocess.run([*gpumem, "report", "--json"], check=True, cwd=folder, capture_output=True).stdout)
    expect(report["leaked"]["leak"]["bytes"] == 1 << 20, f"{gpumem}: leaked: {report['leaked']}")
    stack = report["stacks"][report["leaks"][0]["stack"]]["frames"]
    expect(stack[0]["function"] == "leak" and stack[0]["line"] == 5, f"{gpumem}: the leak's place: {stack[0]}")


def try_wheel(wheel, build, folder):
    environment = os.path.join(folder, "environment")
    venv.create(environment, with_pip=True)
    before, python = files_below(environment), environment + "/bin/python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "install", "--no-index", wheel], check=True)
    subprocess.run([python, "-c", PLUGIN], check=True)
    expect(os.path.exists(subprocess.run([python, "-c", "import libgpumem; print(libgpumem.__path__[0])"], check=True,
                                         capture_output=True, text=True).stdout.strip() + "/gpumem_pytest.py"),
           "the wheel lacks the pytest plugin")
    for number, command in enumerate(([environment + "/bin/gpumem"], [python, "-m", "libgpumem"])):
        work = os.path.join(folder, f"work{number}")
        os.mkdir(work)
        try_record(command, python, build, work)
    subprocess.run([*pip, "uninstall", "-y", "libgpumem"], check=True)
    left = files_below(environment) - before
    expect(not left, f"pip uninstall left {sorted(left)}")


def try_tarball(tarball, build, folder):
    unpacked, trace = os.path.join(folder, "unpacked"), os.path.join(folder, "x.trace")
    os.mkdir(unpacked)
    subprocess.run(["tar", "--extract", "--file", tarball, "--directory", unpacked], check=True)
    tree = os.path.join(unpacked, *os.listdir(unpacked))
    dynamic = subprocess.run(["readelf", "-d", tree + "/lib/gpumem/libgpumem.so"], check=True, capture_output=True,
                             text=True).stdout
    expect("SYMBOLIC" not in dynamic and "BIND_NOW" in dynamic, f"dlsym would find the library itself: {dynamic}")
    subprocess.run([tree + "/bin/gpumem", "run", "-q", "-o", trace, "--", build + "/tests/training_loop"], check=True,
                   stdout=subprocess.DEVNULL, env=dict(os.environ, LD_LIBRARY_PATH=build + "/sim", GPUMEM_SIM_MEMORY="2G"))
    checked = subprocess.run([tree + "/bin/gpumem", "check", trace], check=False, capture_output=True)
    expect(checked.returncode == 1, f"check of the demo: {checked.returncode}")
    dry = subprocess.run([tree + "/bin/gpumem", "dry-run", "--device", "t4", "--", build + "/tests/findings_programs", "train"],
                         check=False, capture_output=True, text=True, env=dict(os.environ, XDG_CACHE_HOME=folder))
    expect(dry.returncode == 0 and "simulated" in dry.stdout and "fits with" in dry.stdout,
           f"dry-run: {dry.returncode} {dry.stdout[:400]}{dry.stderr}")


def try_promise(wheel):
    """auditwheel judges which glibc the files really need."""
    tools = os.path.join(SOURCE, "build-portable/tools")
    shown = subprocess.run([sys.executable, "-m", "auditwheel", "show", wheel], check=True, capture_output=True, text=True,
                           env=dict(os.environ, PYTHONPATH=tools)).stdout
    tag = shown.replace("\n", " ").split("platform tag: \"manylinux_")[1].split("_")
    expect((int(tag[0]), int(tag[1])) <= (2, 28), f"auditwheel: {shown}")
    for library in ("libc.so.6", "libpthread.so.0", "libdl.so.2", "libm.so.6", "ld-linux"):
        shown = shown.replace(library, "")
    expect(".so" not in shown, f"needs more than libc: {shown}")


def main():
    build = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        built = subprocess.run([SOURCE + "/scripts/build-portable", "--output", folder], check=True, text=True,
                               stdout=subprocess.PIPE, cwd=folder).stdout.split()
        wheel, tarball = (os.path.join(folder, os.path.basename(name)) for name in built)
        try_promise(wheel)
        try_wheel(wheel, build, folder)
        try_tarball(tarball, build, folder)
    print("FAILED" if failed else "passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
