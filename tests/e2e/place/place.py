#!/usr/bin/env python3
"""Traces on a copy-on-write file system that becomes full: place.py BUILD

A store into a mapped page of btrfs needs room that fallocate has not reserved; without room, SIGBUS kills the process.
On a real btrfs the program must end as it does bare, with a complete trace: by gpumem run, which brings it home if
there is room; and by LD_PRELOAD alone, which leaves a link. The same holds for an overlay over btrfs, and if there is
no other place. Skips without mkfs.btrfs or the right to mount.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

build = os.path.abspath(sys.argv[1])
gpumem = build + "/report/gpumem"
ALLOCATIONS = 120000
failures = 0


def expect(good, text):
    global failures
    if not good:
        failures += 1
        print("FAIL: " + text, file=sys.stderr)


def run(*command, **environment):
    environment = {**os.environ, "LD_LIBRARY_PATH": build + "/sim", "GPUMEM_SIM_MEMORY": "1G", **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def mount(*arguments):
    return subprocess.run(["mount", *arguments], stderr=subprocess.DEVNULL, check=False).returncode == 0


class Disk:
    """A btrfs of its own in a file, mounted in `folder`."""

    def __init__(self, base, make):
        self.image, self.folder = base + "/image", base + "/disk"
        with open(self.image, "wb") as file:
            file.truncate(128 << 20)
        os.mkdir(self.folder)
        self.good = subprocess.run([make, "-q", "--mixed", self.image], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, check=False).returncode == 0
        self.good = self.good and mount("-o", "loop", self.image, self.folder)

    def empty(self):
        for name in os.listdir(self.folder):
            if name.startswith("filler."):
                os.unlink(f"{self.folder}/{name}")
        os.sync()

    def leave(self):
        subprocess.run(["umount", self.folder], check=False)


def judge(what, trace):
    """The trace is whole, and says where it was recorded."""
    report = json.loads(run(gpumem, "report", "--json", trace).stdout)
    expect(report["complete"] and report["ending"] == "normal", f"{what}: {report['gaps']}")
    expect(sum(leak["count"] for leak in report["leaks"]) == ALLOCATIONS, f"{what}: {report['verdict']}")
    expect([gap["code"] for gap in report["gaps"]] == ["elsewhere"], f"{what}: {report['gaps']}")
    expect("recorded on another file system" in run(gpumem, "info", trace).stdout, f"{what}: info")


def preloaded(what, disk, trace, name):
    done = run(build + "/tests/fill", disk.folder, LD_PRELOAD=build + "/preload/libgpumem.so", GPUMEM_OUTPUT=trace)
    expect(done.returncode == 0 and done.stdout == "went on\n", f"{what}: {done.returncode} {done.stdout} {done.stderr}")
    expect(os.path.islink(trace), f"{what}: no link")
    judge(what, trace)
    expect(name in run(gpumem, "report", trace).stdout.replace("\n", " "), f"{what}: {name} is not named")
    os.unlink(os.path.realpath(trace))
    os.unlink(trace)
    disk.empty()


def by_run(disk):
    """The disk is full at the end, so the link stays. Once there is room, the trace comes home."""
    trace = disk.folder + "/run.trace"
    done = run(gpumem, "run", "-o", trace, "--", build + "/tests/fill", disk.folder)
    expect(done.returncode == 0 and "a link" in done.stderr and os.path.islink(trace), f"run: {done.returncode} {done.stderr}")
    judge("run", trace)
    os.unlink(os.path.realpath(trace))
    os.unlink(trace)
    disk.empty()
    with tempfile.TemporaryDirectory() as other:
        done = run(gpumem, "run", "-q", "-o", trace, "--", build + "/tests/fill", other) if limited(other) else None
        if done:
            expect(done.returncode == 0 and not os.path.islink(trace), f"run, with room: {done.returncode} {done.stderr}")
            judge("run, with room", trace)
            expect(os.listdir(disk.folder).count("run.trace.part") == 0, "run: a part is left")
            subprocess.run(["umount", other], check=False)


def limited(folder):
    return mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", folder)


def on_overlay(base, disk):
    for name in ("upper", "work"):
        os.mkdir(f"{disk.folder}/{name}")
    os.mkdir(base + "/lower")
    os.mkdir(base + "/overlay")
    layers = f"lowerdir={base}/lower,upperdir={disk.folder}/upper,workdir={disk.folder}/work"
    if not mount("-t", "overlay", "-o", layers, "overlay", base + "/overlay"):
        print("skipped: no overlay over btrfs here")
        return
    preloaded("overlay", disk, base + "/overlay/t.trace", "overlay")
    subprocess.run(["umount", base + "/overlay"], check=False)


def nowhere(disk):
    """All other places are no better: nothing is recorded, and no gate passes."""
    # From inside the folder, by names that do not lead through a covered place.
    script = """cd "$0" && for place in /var/tmp /dev/shm /tmp; do test ! -d $place || mount --bind . $place || exit 77; done
LD_LIBRARY_PATH=build LD_PRELOAD=build/libgpumem.so GPUMEM_OUTPUT=nowhere.trace exec build/fill ."""
    trace = disk.folder + "/nowhere.trace"
    os.mkdir(disk.folder + "/build")
    for file in ("preload/libgpumem.so", "tests/fill", "sim/libcuda.so.1"):
        shutil.copy(f"{build}/{file}", disk.folder + "/build")
    done = run("unshare", "-m", "sh", "-c", script, disk.folder)
    if done.returncode == 77:
        print("skipped: nothing can be mounted over /tmp here")
        return
    expect(done.returncode == 0 and done.stdout == "went on\n", f"nowhere: {done.returncode} {done.stdout} {done.stderr}")
    info = run(gpumem, "info", trace)
    expect("NOT RECORDED" in info.stdout and "btrfs" in info.stdout, f"nowhere: {info.stdout} {info.stderr}")
    for options in ((), ("--on-cut", "judge", "--allow-empty")):
        gate = run(gpumem, "check", *options, trace)
        expect(gate.returncode == 3 and "NOT RECORDED" in gate.stdout, f"nowhere: check {options}: {gate.returncode} {gate.stdout}")
    disk.empty()


def main():
    make = shutil.which("mkfs.btrfs", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if os.geteuid() != 0 or not make:
        print("SKIP: needs root and mkfs.btrfs")
        return 77
    with tempfile.TemporaryDirectory() as base:
        disk = Disk(base, make)
        if not disk.good:
            print("SKIP: no btrfs can be mounted here")
            return 77
        try:
            preloaded("btrfs", disk, disk.folder + "/t.trace", "btrfs")
            by_run(disk)
            on_overlay(base, disk)
            nowhere(disk)
        finally:
            disk.leave()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
