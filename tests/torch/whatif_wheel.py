#!/usr/bin/env python3
"""
The replica of PyTorch's allocator against the real one, on the simulator: whatif_wheel.py BUILD [NAME]...

Each program of whatif_programs.py runs with the default settings, recorded twice: as a snapshot by PyTorch and as a
trace by gpumem; and then under each of SETTINGS for real. gpumem whatif says what the latter would be from each
recording of the former. One line for each program and recording; exit code 1 if any figure differs. Needs what
run_wheel prepares, and its interpreter: $(wheel_python BUILD) whatif_wheel.py BUILD.

    whatif_wheel.py BUILD --write FOLDER [NAME]...

writes recordings and figures to a folder instead: tests/corpus/whatif, for machines without PyTorch.
"""
import json
import lzma
import os
import pickle
import subprocess
import sys
import tempfile


import whatif_programs

HERE = os.path.dirname(os.path.abspath(__file__))
TOTAL = 8 << 30  # of the simulated device
SETTINGS = ("", "expandable_segments:True", "max_split_size_mb:32", "max_split_size_mb:128",
            "roundup_power2_divisions:4", "roundup_power2_divisions:[64:8,256:4,>:1]",
            "garbage_collection_threshold:0.6", "expandable_segments:True,max_split_size_mb:64",
            "max_split_size_mb:64,garbage_collection_threshold:0.5,roundup_power2_divisions:2")
FRACTIONS = {"mixed": 0.6, "streams": 0.5}  # of the device, so that garbage is collected


def job(name, setting, snapshot=""):
    return {"name": name, "setting": setting, "fraction": FRACTIONS.get(name, 0), "snapshot": snapshot}


def run(build, jobs, traces=None):
    """What each job printed; with `traces`, a folder, each is recorded there as PROCESS.trace, which knows the setting of
    the first."""
    environment = dict(os.environ, LD_LIBRARY_PATH=f"{build}/sim:{build}/tests/torch/nvml")
    environment[whatif_programs.VARIABLE] = jobs[0]["setting"]
    if traces:
        environment.update(LD_PRELOAD=f"{build}/preload/libgpumem.so", GPUMEM_OUTPUT=traces + "/%p.trace")
    done = subprocess.run([sys.executable, os.path.join(HERE, "whatif_programs.py")], env=environment,
                          input=json.dumps(jobs), capture_output=True, text=True, check=False, timeout=3600)
    if done.returncode:
        sys.exit(done.stderr[-1500:])
    printed = [json.loads(line.split(" ", 1)[1]) for line in done.stdout.splitlines() if line.startswith("FIGURES ")]
    assert len(printed) == len(jobs), done.stderr
    return printed


def arguments(name, settings):
    """What `gpumem whatif` is asked."""
    fraction = FRACTIONS.get(name, 0)
    sets = [",".join(filter(None, (setting, f"per_process_memory_fraction:{fraction}" if fraction else "")))
            for setting in settings]
    return [word for one in sets for word in ("--set", one)] + ["--memory", str(TOTAL)]


def problems(answer, figures):
    """Where the answer of `gpumem whatif --json` differs from the figures, by setting."""
    found = []
    recorded = answer["as_recorded"]
    if recorded["equal_events"] != recorded["events"] or recorded["equal_reserved"] != recorded["events"]:
        found.append(f"as recorded: {recorded}")
    for one, (setting, said) in zip(answer["settings"], figures.items(), strict=True):
        found += [f"'{setting}': {key} is {said[key]}, not {one[key]}" for key in said if one[key] != said[key]]
    return found


def ask(gpumem, snapshot, name, settings):
    done = subprocess.run([gpumem, "whatif", "--json", *arguments(name, settings), snapshot], capture_output=True,
                          text=True, check=False, timeout=120)
    return json.loads(done.stdout) if done.returncode == 0 else sys.exit(done.stderr)


def without_names(snapshot):
    """The same without what only people read, and without what belongs to this machine."""
    for events in snapshot["device_traces"]:
        stacks = {}
        for event in events:
            key = json.dumps(event.pop("frames"))
            line = stacks.setdefault(key, [{"name": "f", "filename": "/program.py", "line": len(stacks) + 1}])
            event["frames"] = line
            for key in ("compile_context", "user_metadata"):
                event.pop(key, None)
    for segment in snapshot["segments"]:
        segment.pop("frames", None)
        for block in segment["blocks"]:
            block.pop("frames", None)
    return {key: snapshot[key] for key in ("segments", "device_traces", "allocator_settings")}


def write(folder, name, snapshot, figures):
    os.makedirs(folder, exist_ok=True)
    with open(snapshot, "rb") as file, lzma.open(os.path.join(folder, name + ".pickle.xz"), "wb", preset=9) as to:
        pickle.dump(without_names(pickle.load(file)), to, protocol=4)
    path = os.path.join(folder, "figures.json")
    known = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            known = json.load(file)
    known[name] = {"arguments": arguments(name, figures), "figures": list(figures.values())}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(known, file, indent=1, sort_keys=True)
        file.write("\n")


def main():
    build, rest = os.path.abspath(sys.argv[1]), sys.argv[2:]
    folder = os.path.abspath(rest[1]) if rest[:1] == ["--write"] else None
    names = (rest[2:] if folder else rest) or list(whatif_programs.PROGRAMS)
    with tempfile.TemporaryDirectory() as temporary:
        snapshots = {name: os.path.join(temporary, name + ".pickle") for name in names}
        jobs = [job(name, setting, "" if setting else snapshots[name]) for name in names for setting in SETTINGS]
        figures = {name: {} for name in names}
        for one, printed in zip(jobs, run(build, jobs), strict=True):
            figures[one["name"]][one["setting"]] = printed["figures"]
        recorded = run(build, [job(name, "") for name in names], temporary)
        failed = False
        for name, one in zip(names, recorded, strict=True):
            assert one["figures"] == figures[name][""], f"{name}: other figures while it is recorded"
            for recording in (snapshots[name], f"{temporary}/{one['process']}.trace"):
                found = problems(ask(build + "/report/gpumem", recording, name, figures[name]), figures[name])
                print(f"{'FAIL' if found else 'PASS'} {name}: {len(SETTINGS)} settings, from a "
                      f"{os.path.basename(recording).split('.')[1]}", flush=True)
                for problem in found:
                    print(f"     {problem}", flush=True)
                failed |= bool(found)
            if folder:
                write(folder, name, snapshots[name], figures[name])
    return failed


if __name__ == "__main__":
    sys.exit(main())
