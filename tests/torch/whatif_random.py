#!/usr/bin/env python3
"""
Random requests through the real PyTorch, on the simulator, and through the replica: whatif_random.py BUILD [EVENTS]

Under each of SETTINGS a program makes an equal share of at least EVENTS requests and frees, of which gpumem records a
trace; the replica must do each event of it alike. One line for each; exit code 1 if any event differs. Needs what
run_wheel prepares, and its interpreter: $(wheel_python BUILD) whatif_random.py BUILD.
"""
import json
import os
import subprocess
import sys
import tempfile

import whatif_wheel

SHARE = 0.25  # of the device, so that garbage is collected, caches are emptied for requests, and some are refused
SETTINGS = [f"{setting}per_process_memory_fraction:{SHARE}" for setting in (
    "", "expandable_segments:True,", "max_split_size_mb:32,", "roundup_power2_divisions:[64:8,256:4,>:1],",
    "max_split_size_mb:64,garbage_collection_threshold:0.5,roundup_power2_divisions:2,",
    "garbage_collection_threshold:0.6,",
    "expandable_segments:True,max_split_size_mb:64,garbage_collection_threshold:0.8,")] + [""]


def main():
    build, events = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    share = -(-events // len(SETTINGS))
    failed, all_events = False, 0
    with tempfile.TemporaryDirectory() as folder:
        for seed, setting in enumerate(SETTINGS, 1):
            job = dict(whatif_wheel.job(f"random:{seed}:{share}", setting), limit=SHARE if setting else 0.9)
            printed = whatif_wheel.run(build, [job], folder)[0]
            done = subprocess.run([build + "/report/gpumem", "whatif", "--json",
                                   f"{folder}/{printed['process']}.trace"], capture_output=True, text=True, check=True)
            recorded = json.loads(done.stdout)["as_recorded"]
            bad = recorded["equal_events"] != recorded["events"] or recorded["events"] < share
            all_events += recorded["events"]
            print(f"{'FAIL' if bad else 'PASS'} '{setting}': {printed['figures']}, {recorded}", flush=True)
            failed |= bad
    print(f"{all_events} events")
    return failed or all_events < events


if __name__ == "__main__":
    sys.exit(main())
