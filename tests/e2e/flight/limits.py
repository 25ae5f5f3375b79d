#!/usr/bin/env python3
"""The flight recorder out of room: the report says so, no gate passes, and the program goes on.

    limits.py BUILD

churn (4 threads, 3000 allocations each) runs with an area that is too small for it, under a limit on file sizes, and,
if the user may mount one, on a file system that is full before or after the recorder makes the area.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile

import flight
from flight import expect

KEPT, PAIRS, THREADS = 2000, 1000, 4


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))


class Place:
    """A folder for traces in which programs run; `prefix` enters another mount namespace."""

    def __init__(self, build, folder, prefix=(), before=None):
        self.build, self.folder, self.prefix, self.before = build, folder, prefix, before
        self.accounts = tempfile.NamedTemporaryFile()

    def gpumem(self, *arguments, **environment):
        environment = dict(os.environ, LD_LIBRARY_PATH=self.build + "/sim", GPUMEM_SIM_NOOP="1", **environment)
        return subprocess.run([*self.prefix, self.build + "/report/gpumem", *arguments], env=environment, cwd=self.folder,
                              preexec_fn=self.before, capture_output=True, text=True, check=False)

    def record(self, *options, **environment):
        return self.gpumem("run", *options, "-o", "t.trace", "--", self.build + "/tests/churn", self.accounts.name, str(KEPT),
                           str(PAIRS), **environment)


def too_much_alive(build, folder):
    place = Place(build, folder)
    done = place.record("--flight=16K", GPUMEM_RING="4K")
    expect(done.returncode == 0, f"churn fails: {done.stderr}")
    report = json.loads(place.gpumem("report", "--json", "t.trace").stdout)
    expect(not report["complete"] and report["lost"] > 0, f"complete {report['complete']}, lost {report['lost']}")
    expect(report["recorder"]["flight_full"] >= report["lost"], f"{report['recorder']}")
    expect(report["damaged"] == 0, f"{report['damaged']} damaged")
    text = place.gpumem("report", "-v", "t.trace").stdout
    expect("INCOMPLETE" in text and "--flight=SIZE" in text, text[:1000])
    gate = place.gpumem("check", "--max-leak", "1G", "t.trace")
    expect(gate.returncode == 3 and "INCOMPLETE" in gate.stdout, f"check: {gate.returncode} {gate.stdout}")
    expect(place.gpumem("check", "--max-leak", "1G", "--on-cut", "judge", "t.trace").returncode == 0, "check --on-cut judge")
    os.remove(os.path.join(folder, "t.trace"))


def expect_no_trace(place, what):
    """Leaves not even an empty file behind; the default area would be the whole disk."""
    done = place.record("--flight")
    expect(done.returncode == 0 and not done.stdout, f"{what}: churn: {done.returncode} {done.stdout}")
    expect("there is no trace" in done.stderr and done.stderr.count("\n") == 1, f"{what}: {done.stderr}")
    left = place.gpumem("info", "t.trace")
    expect(left.returncode == 3, f"{what}: {left.stdout}")


def limited(build, folder):
    place = Place(build, folder, before=limit_files)
    expect_no_trace(place, "limited")
    expect(not os.listdir(folder), f"limited: {os.listdir(folder)} left behind")
    place.record("--flight=256K", GPUMEM_RING="16K")
    expect(json.loads(place.gpumem("report", "--json", "t.trace").stdout)["complete"], "limited: incomplete")


def full_disk(build, folder):
    """When the area has taken all room, no thread gets even a page of ring, and the trace counts its calls."""
    mount = 'mount -t tmpfs -o size=1m tmpfs "$0" && cd "$0" && exec "$@"'
    if subprocess.run(["unshare", "-rm", "sh", "-c", mount, folder, "true"], check=False, stderr=subprocess.DEVNULL).returncode:
        print("skipped: a user may not mount a file system here")
        return
    prefix = ("unshare", "-rm", "sh", "-c", mount, folder)
    expect_no_trace(Place(build, folder, prefix), "full disk")
    # The largest area that fits leaves no page.
    script = """for size in $(seq 1020 -4 500); do
        "$0" run --flight=${size}K -o t.trace -- "$1" "$2" 10 10 2>/dev/null && test -s t.trace && break
    done
    "$0" report --json t.trace && ! "$0" check t.trace >&2"""
    place = Place(build, folder)
    done = subprocess.run([*prefix, "sh", "-c", script, build + "/report/gpumem", build + "/tests/churn", place.accounts.name],
                          env=dict(os.environ, LD_LIBRARY_PATH=build + "/sim"), capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"full disk: {done.returncode} {done.stderr}")
    report = json.loads(done.stdout)
    expect(report["recorder"]["no_lane"] >= THREADS and not report["complete"], f"full disk: {report['recorder']}")
    expect("not judged" in done.stderr, done.stderr)


def main():
    build = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        too_much_alive(build, folder)
        limited(build, folder)
        full_disk(build, folder)
    return 1 if flight.problems else 0


sys.exit(main())
