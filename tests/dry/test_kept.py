#!/usr/bin/env python3
"""What a dry run leaves for the commands that come after it: test_kept.py BUILD FOLDER"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

BUILD, FOLDER = (os.path.abspath(path) for path in sys.argv[1:3])
GPUMEM = BUILD + "/report/gpumem"
PROGRAM = FOLDER + "/dry_program"
scratch = tempfile.mkdtemp(prefix="gpumem-test-kept.")
HERE, CACHE = scratch + "/here", scratch + "/cache"
KEPT = CACHE + "/gpumem/dry-traces"


def gpumem(*arguments, folder=HERE, code=0, **environment):
    done = subprocess.run([GPUMEM, *arguments], capture_output=True, text=True, timeout=300, cwd=folder, check=False,
                          env={**os.environ, "XDG_CACHE_HOME": CACHE, **environment})
    assert done.returncode == code, (arguments, done)
    return done


def dry_run(size, *options, **more):
    return gpumem("dry-run", *options, "--", PROGRAM, "keep", str(size << 20), **more)


def peak(folder=HERE):
    return json.loads(gpumem("report", "--json", folder=folder).stdout)["devices"][0]["peak"] >> 20


def kept():
    return sorted(os.listdir(KEPT))


def commands_find_it_without_a_trace():
    page = dry_run(300).stdout
    assert "\nMore: gpumem report -v" in page and os.listdir(HERE) == [], page
    assert gpumem("report").stdout.splitlines()[1:] == page[page.index("gpumem report"):].splitlines()[1:]
    assert "300 MiB" in gpumem("report", "-v").stdout
    assert "program.c" in gpumem("report", "--site", "1").stdout
    gpumem("report", "--html", scratch + "/page.html")
    gpumem("export", "-f", "csv", "-o", scratch + "/export.csv")
    assert gpumem("info").stdout and "simulated" in gpumem("report").stdout
    said = gpumem("whatif", "--advise", code=3).stderr # there is no PyTorch in it
    assert KEPT in said, said
    assert os.path.getsize(scratch + "/page.html") and os.path.getsize(scratch + "/export.csv")
    assert len(kept()) == 1 and os.stat(KEPT).st_mode & 0o777 == 0o700


def the_newest_of_this_folder_counts():
    other = scratch + "/other"
    os.mkdir(other)
    dry_run(301)
    dry_run(200, folder=other)
    assert (peak(), peak(other), len(kept())) == (301, 200, 2)
    shutil.copy(f"{KEPT}/{next(name for name in kept())}", HERE + "/own.trace")
    dry_run(302)
    assert peak() == 302 and "left out: 1 of other runs" in gpumem("report").stderr
    later = time.time() + 5
    os.utime(HERE + "/own.trace", (later, later))
    assert peak() != 302
    os.unlink(HERE + "/own.trace")


def gates_do_not_take_it():
    assert "no *.trace file" in gpumem("check", "--max-peak", "1T", code=3).stderr


def none_passes_for_a_newer_run():
    dry_run(300)
    dry_run(303, "-o", scratch + "/elsewhere.trace")
    gpumem("report", code=3)
    dry_run(300)
    dry_run(304, "--no-keep")
    assert peak() == 300
    gpumem("run", "--", "true")
    assert "recorded nothing" in gpumem("report", code=4).stderr
    os.unlink(HERE + "/.gpumem.last-run")
    gpumem("dry-run", "--", "true")
    gpumem("report", code=3)


def what_others_could_have_put_there_is_not_taken():
    dry_run(300)
    mine = f"{KEPT}/{next(name for name in kept() if not name.startswith('0' * 16))}"
    gpumem("report")
    os.chmod(KEPT, 0o777)
    gpumem("report", code=3)
    said = dry_run(305).stderr
    assert "the trace of this run is not kept" in said, said
    os.chmod(KEPT, 0o700)
    assert peak() == 300
    for name in kept():
        if os.path.join(KEPT, name) != mine:
            os.unlink(os.path.join(KEPT, name))
    os.rename(mine, scratch + "/real.trace")
    os.symlink(scratch + "/real.trace", mine)
    gpumem("report", code=3)
    os.unlink(mine)
    os.rename(KEPT, scratch + "/real")
    os.symlink(scratch + "/real", KEPT)
    assert "not kept" in dry_run(306).stderr and os.listdir(scratch + "/real") == []
    os.unlink(KEPT)


def the_folder_stays_below_its_bounds():
    os.makedirs(KEPT, mode=0o700)
    foreign = KEPT + "/thesis.tex"
    with open(foreign, "w", encoding="utf-8"):
        pass
    for i in range(300):
        with open(f"{KEPT}/{i:016x}-program.{i}.trace", "w", encoding="utf-8") as file:
            file.truncate(1 << 20)
        os.utime(file.name, (i, i))
    dry_run(300)
    left = kept()
    assert peak() == 300 and os.path.exists(foreign)
    assert len(left) == 192 + 1 and f"{299:016x}-program.299.trace" in left, len(left)
    for i in (1, 2):
        with open(f"{KEPT}/{i:016x}-program.{i}.trace", "w", encoding="utf-8") as file:
            file.truncate(400 << 20)
    dry_run(301)
    assert sum(os.path.getsize(f"{KEPT}/{name}") for name in kept()) <= 384 << 20 and peak() == 301


def without_a_home_it_is_said():
    said = dry_run(300, HOME="", XDG_CACHE_HOME="").stderr
    assert "the trace of this run is not kept" in said, said
    assert os.listdir(HERE) == [], os.listdir(HERE)


try:
    os.mkdir(HERE)
    for test in (commands_find_it_without_a_trace, the_newest_of_this_folder_counts, gates_do_not_take_it,
                 none_passes_for_a_newer_run, what_others_could_have_put_there_is_not_taken,
                 the_folder_stays_below_its_bounds, without_a_home_it_is_said):
        test()
        print("ok  ", test.__name__.replace("_", " "))
finally:
    shutil.rmtree(scratch)
