#!/usr/bin/env python3
"""
gpumem whatif: whatif.py GPUMEM CORPUS [REALGPU]

CORPUS/whatif has recordings of programs on the real PyTorch (on the simulator), and what that PyTorch reserved when
they ran under other settings (tests/torch/whatif_wheel.py): the replica must say the same. REALGPU: a folder of
snapshots of real GPUs; without it they are passed over.
"""
import glob
import json
import lzma
import os
import pickle
import re
import subprocess
import sys
import tempfile

GPUMEM, CORPUS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
REALGPU = sys.argv[3] if len(sys.argv) > 3 else ""
failures = 0


def expect(what, is_so, detail=""):
    global failures
    if not is_so:
        failures += 1
        print(f"FAIL {what}: {detail}", flush=True)


def run(*arguments):
    return subprocess.run([GPUMEM, "whatif", *arguments], capture_output=True, text=True, timeout=120, check=False)


def answer(*arguments):
    done = run("--json", *arguments)
    expect(f"exit code of {arguments}", done.returncode == 0, done.stderr)
    return json.loads(done.stdout)


def unpacked(path, folder):
    target = os.path.join(folder, os.path.basename(path)[:-3])
    with lzma.open(path) as packed, open(target, "wb") as file:
        file.write(packed.read())
    return target


def check_as_recorded(name, said):
    recorded = said["as_recorded"]
    expect(f"{name} as recorded", recorded["events"] > 0 and recorded["equal_events"] == recorded["events"] and
           recorded["equal_reserved"] == recorded["events"], recorded)
    expect(f"{name}: peak", recorded["reserved_peak"] == said["recorded"]["reserved_peak"], said["recorded"])
    bounds = said["bounds"]
    expect(f"{name}: bounds", 0 < bounds["live_peak"] <= bounds["best_packing"] <= recorded["reserved_peak"], bounds)


def check_recordings(folder):
    with open(os.path.join(CORPUS, "whatif/figures.json"), encoding="utf-8") as file:
        known = json.load(file)
    expect("recordings", len(known) >= 11, len(known))
    for name, one in known.items():
        said = answer(*one["arguments"], unpacked(os.path.join(CORPUS, "whatif", name + ".pickle.xz"), folder))
        check_as_recorded(name, said)
        expect(f"{name}: settings", len(said["settings"]) == len(one["figures"]), said["settings"])
        for setting, figures in zip(said["settings"], one["figures"], strict=False):
            expect(f"{name} under '{setting['set']}'", all(setting[key] == value for key, value in figures.items()),
                   f"{figures}, not {setting}")


def check_finding(folder):
    """Where fragmentation refused a request, the finding names a setting with the figure that whatif has for it."""
    path = unpacked(os.path.join(CORPUS, "whatif/fragmentation.pickle.xz"), folder)
    done = subprocess.run([GPUMEM, "report", "--json", path], capture_output=True, text=True, timeout=60, check=False)
    remedies = [one["remedy"] for one in json.loads(done.stdout)["findings"] if one["code"] == "pool-fragmentation"]
    expect("a finding", len(remedies) == 1 and "expandable_segments:True" in remedies[0] and
           re.search(r"at most \S+ \S+ would have been reserved", remedies[0]), remedies)
    expandable = answer("--set", "expandable_segments:True", path)["settings"][0]
    expect("the figure", f"{expandable['reserved_peak'] / (1 << 30):.2f} GiB" in remedies[0], f"{remedies} {expandable}")


def check_page(folder):
    """The page shows what was recorded against the best."""
    path, page = unpacked(os.path.join(CORPUS, "whatif/mixed.pickle.xz"), folder), os.path.join(folder, "page.html")
    done = subprocess.run([GPUMEM, "report", "--html", page, path], capture_output=True, text=True, timeout=120,
                          check=False)
    with open(page, encoding="utf-8") as file:
        table = file.read().partition("Reserved by PyTorch on device 0")[2].partition("</table>")[0]
    said = answer("--set", "expandable_segments:True", path)
    wanted = (said["recorded"]["reserved_peak"], said["settings"][0]["reserved_peak"], said["bounds"]["best_packing"],
              said["bounds"]["live_peak"])
    found = [float(size) for size in re.findall(r">([0-9.]+) MiB<", table)]
    expect("a page", len(found) == 4 and all(abs(size - one / (1 << 20)) < 0.6
                                             for size, one in zip(found, wanted, strict=False)),
           f"{done.stderr} {found} {wanted}")


def check_memory(folder):
    """A device with less memory than was reserved: the cache is emptied, and then a request is refused."""
    path = unpacked(os.path.join(CORPUS, "whatif/mixed.pickle.xz"), folder)
    said = answer("--set", "", path)
    peak, live = said["settings"][0]["reserved_peak"], said["bounds"]["live_peak"]
    some = answer("--memory", str(peak - (1 << 20)), path)["settings"][0]
    expect("less memory than reserved", some["retries"] > 0 and some["reserved_peak"] < peak, some)
    less = answer("--memory", str(live // 2), path)["settings"][0]
    expect("less memory than is in use", less["out_of_memory"] > 0 and less["reserved_peak"] <= live // 2 and
           less["first_refused"]["request"] > 0 and
           re.fullmatch(r"/program\.py:\d+", less["first_refused"]["place"]), less)
    advised = answer("--advise", path)
    best = min(one["reserved_peak"] for one in advised["settings"]
               if not one["out_of_memory"] and not one["modelled"])
    expect("loss", advised["loss"] == {"fragmentation": peak - advised["bounds"]["best_packing"],
                                       "avoidable": peak - best} and best < peak, advised["loss"])
    expect("another backend is modelled", [one["set"] for one in advised["settings"] if one["modelled"]] ==
           ["backend:cudaMallocAsync"], advised["settings"])
    expect("enough memory", answer("--memory", str(peak), path)["settings"][0] == said["settings"][0])


def check_divisions(folder):
    """A list of divisions names each interval by its lower end; ">" is for all behind the last that was named."""
    path = unpacked(os.path.join(CORPUS, "whatif/large.pickle.xz"), folder)

    def peak(divisions):
        return answer("--set", f"roundup_power2_divisions:{divisions}", path)["settings"][0]["reserved_peak"]
    every = ",".join(f"{1 << power}:2" for power in range(16))
    expect("all intervals", peak(f"[{every}]") == peak(2) == peak("[1:2,>:2]") == peak("[32768:2]") != peak(1), peak(2))
    expect("behind the last", peak("[16:2,32:1,>:4]") == peak("[16:2,32:1,64:4,128:4,256:4,512:4,1024:4]"))


def check_text(folder):
    for path in glob.glob(os.path.join(CORPUS, "whatif/*.xz")):
        done = run("--advise", "--memory", "2G", unpacked(path, folder))
        expect(f"text of {path}", done.returncode == 0 and "expandable_segments:True" in done.stdout, done.stderr)
        expect("80 columns", all(len(line) <= 80 for line in done.stdout.splitlines()), done.stdout)
    ranked = [one["out_of_memory"] for one in answer("--advise", unpacked(path, folder))["settings"]]
    expect("ranked", ranked == sorted(ranked, key=bool) and len(ranked) >= 8, ranked)


def check_usage(folder):
    path = unpacked(os.path.join(CORPUS, "whatif/small.pickle.xz"), folder)
    for setting in ("x", "x=1", "max_split_size_mb=19", "max_split_size_mb=ten", "max_split_size_mb=-5",
                    "max_split_size_mb=1e3", "expandable_segments=maybe", "expandable_segments=true",
                    "roundup_power2_divisions=3", "roundup_power2_divisions=0", "roundup_power2_divisions=[64:3]",
                    "roundup_power2_divisions=[64", "roundup_power2_divisions=[100:4]",
                    "roundup_power2_divisions=[64:8,,]", "garbage_collection_threshold=1.5",
                    "garbage_collection_threshold=1.0", "garbage_collection_threshold=nan", "backend=x",
                    "max_non_split_rounding_mb=19", "large_segment_size_mb=10", "max_split_size=64",
                    "per_process_memory_fraction=0.5", "\x1b[31m=1", "a=" + "9" * 5000):
        done = run("--set", setting, path)
        expect(f"--set {setting[:40]!r}", done.returncode == 2 and len(done.stderr.splitlines()) == 1 and
               not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", done.stderr), f"{done.returncode} {done.stderr!r}")
    for setting in ("expandable_segments=True", "expandable_segments:False,max_split_size_mb:64",
                    "roundup_power2_divisions=[64:8,128:4,>:2],garbage_collection_threshold:0.8", "", "backend:native",
                    "max_split_size_mb:20", " max_split_size_mb : 64MB ,", "roundup_power2_divisions:[64:8,128:0,>:1]",
                    "large_segment_size_mb:31", "graph_capture_record_stream_reuse:True",
                    "pinned_use_cuda_host_register:True"):
        expect(f"--set {setting}", run("--set", setting, path).returncode == 0)
    for wrong in (("--memory", "much"), ("--memory", "0"), ("--device", "x"), ("--device", "999")):
        expect(" ".join(wrong), run(*wrong, path).returncode == 2)
    expect("another device", run("--device", "7", path).returncode == 3)
    for trace in ("leak.trace", "empty.trace", "bad-columns.trace"):
        done = run(os.path.join(CORPUS, trace))
        expect(trace, done.returncode == 3 and done.stderr, done.returncode)


def check_refusal(folder):
    """A refusal of which the recording tells nothing more leaves the rest as it is."""
    with open(unpacked(os.path.join(CORPUS, "whatif/mixed.pickle.xz"), folder), "rb") as file:
        snapshot = pickle.load(file)
    events = snapshot["device_traces"][0]
    events.insert(len(events) // 2, dict(events[0], action="oom", addr=1 << 20, size=1 << 40, device_free=1 << 20))
    path = os.path.join(folder, "refusal.pickle")
    with open(path, "wb") as file:
        pickle.dump(snapshot, file)
    said = answer(path)
    check_as_recorded("a refusal", said)
    expect("a refusal is told", said["recorded"]["out_of_memory"] == 1, said["recorded"])


def check_odd(folder):
    """What makes no sense is answered, or refused, but never ends in a crash."""
    with open(unpacked(os.path.join(CORPUS, "whatif/small.pickle.xz"), folder), "rb") as file:
        content = file.read()
    for number in range(40):
        snapshot = pickle.loads(content)
        events = snapshot["device_traces"][0]
        for at in range(number, len(events), 41):
            key = ("addr", "size", "stream", "action")[number % 4]
            events[at][key] = (0, -1, 2**63, "segment_free", 2**64 - 512, "oom", None)[number % 7]
        path = os.path.join(folder, "odd.pickle")
        with open(path, "wb") as file:
            pickle.dump(snapshot, file)
        done = run("--advise", "--memory", "1G", path)
        expect(f"odd {number}", done.returncode in (0, 3), f"{done.returncode} {done.stderr}")


def check_twice(folder):
    """Segments that come again where they are, as no allocator's do: two blocks at one address."""
    for name in ("mixed", "pools"):
        with open(unpacked(os.path.join(CORPUS, f"whatif/{name}.pickle.xz"), folder), "rb") as file:
            snapshot = pickle.load(file)
        snapshot["device_traces"][0] = [event for one in snapshot["device_traces"][0]
                                        for event in [one] * (2 if one["action"] == "segment_alloc" else 1)]
        path = os.path.join(folder, "twice.pickle")
        with open(path, "wb") as file:
            pickle.dump(snapshot, file)
        expect(f"{name} twice", run("--advise", path).returncode in (0, 3))


def check_real(folder):
    paths = glob.glob(os.path.join(REALGPU, "*.pickle.xz"))
    if not paths:
        print("no snapshots of real GPUs here: passed over")
    for path in paths:
        check_as_recorded(path, answer(unpacked(path, folder)))


with tempfile.TemporaryDirectory() as temporary:
    for check in (check_recordings, check_finding, check_page, check_memory, check_divisions, check_text, check_usage,
                  check_refusal, check_odd, check_twice, check_real):
        check(temporary)
sys.exit(failures != 0)
