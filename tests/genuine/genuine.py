#!/usr/bin/env python3
"""Holds gpumem and its simulator against NVIDIA's own code, on a machine without a GPU.

    genuine.py BUILD FOLDER [--write]

FOLDER/drivers has what fetch_drivers unpacked. NVIDIA's runtimes and libraries come from pip, into FOLDER. Nothing is
installed, and nothing of NVIDIA's becomes part of the project: --write puts figures into docs/gpu-results.md, and what
was seen of the drivers' interface into interface.txt, from which `ctest -R genuine` works without any of it.

Without a device NVIDIA's driver answers all questions for functions, before cuInit and after it failed; its functions
return errors, as do those of the runtimes on it. So what is compared is lookup and refusal, not memory.

Exit code: 0 no difference, 1 differences, 77 there was nothing to compare with.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile

from interface import PER_THREAD, VERSIONS, Interface, base
from probing import Prober, Tally, answered, exported, questions
from test_interface import check_table

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../table"))
from coverage import Table  # noqa: E402

SOURCE = os.path.join(HERE, "../..")
NOT_INITIALIZED = 3
FIRST_LOOKUP = 11030  # the first CUDA that has cuGetProcAddress
RUNTIMES = [f"nvidia-cuda-runtime-cu11=={version}.*" for version in ("11.7", "11.8")] + \
           [f"nvidia-cuda-runtime-cu12==12.{minor}.*" for minor in (0, 1, 2, 3, 4, 5, 6, 8, 9)] + \
           [f"nvidia-cuda-runtime==13.{minor}.*" for minor in range(6)]
# Libraries that ask the driver, and calls that make them do it.
LIBRARIES = {
    "nvidia-cublas-cu12": ("libcublas.so", ["cublasGetVersion_v2", "cublasCreate_v2"]),
    "nvidia-cudnn-cu12": ("libcudnn.so", ["cudnnGetVersion", "cudnnCreate"]),
    "nvidia-nccl-cu12": ("libnccl.so", ["ncclGetVersion", "ncclMemAlloc", "ncclCommInitAll"]),
    "nvidia-nvjitlink-cu12": ("libnvJitLink.so", ["nvJitLinkVersion", "nvJitLinkCreate"]),
    "nvidia-cuda-cupti-cu12": ("libcupti.so", ["cuptiActivityEnable", "cuptiSubscribe", "cuptiGetTimestamp",
                                               "cuptiDeviceGetNumEventDomains"]),
}
NVML_SOURCES = ("preload/sources/nvml.c", "sim/nvml/nvml.c")


class Bench:
    """What the checks share: the build, what is known, the tally and the figures."""

    def __init__(self, build):
        self.build = build
        self.probe = build + "/tests/genuine_probe"
        self.recorder = build + "/tests/genuine_questions.so"
        self.preload = build + "/preload/libgpumem.so"
        self.interface = Interface.read()
        self.table = Table(os.path.join(SOURCE, "preload/hooks/api.table"))
        self.tally = Tally()
        self.rows = []  # of the drivers' table
        self.figures = {}
        self.simulated = {}

    def known(self, name):
        return base(name) in self.table.traced or base(name) in self.table.left_out

    def twice(self, what, prober, probed, library, *init):
        """The lines of a probe, after a comparison with those under the preload."""
        lines = prober.run(probed, library, *init)
        self.tally.same(f"{what}, {probed}{' after cuInit' * bool(init)}, under the preload", lines,
                        prober.run(probed, library, *init, preload=self.preload))
        return lines


def exports_of(library, prefix):
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return sorted({line.split()[-1].split("@")[0] for line in out.splitlines() if line.split()[-1].startswith(prefix)})


# ---- drivers ------------------------------------------------------------------------------------------------------------


def seen(symbols, version, lines):
    """Adds what a driver of that version exports and answers to {symbol: (driver, since)}."""
    for symbol in exported(lines):
        driver, since = symbols.get(symbol, (version, None))
        symbols[symbol] = min(driver, version), since
    for line in answered(lines, 1):
        name, flags, answers = re.match(r"(.*) v1 flags (\d+):(.*)", line).groups()
        for asked, function in re.findall(r" (\d+)=0/\w+/(\w+)", answers):
            if function in symbols and base(function) == name and bool(PER_THREAD.search(function)) == (flags == "2"):
                driver, since = symbols[function]
                symbols[function] = driver, min(since or int(asked), int(asked))


def results(lines):
    """{how a function was found: its result}."""
    return {line.split(":")[0]: line.split(": ")[1].split()[0] for line in lines if " sum " in line}


def check_simulator(bench, what, prober, version, genuine):
    """The simulator as a driver of that version without a device. `genuine` is {probe: what NVIDIA's printed}."""
    settings = {"GPUMEM_SIM_DRIVER_VERSION": str(version), "GPUMEM_SIM_DEVICES": "0"}
    answers = bench.simulated.get(version)
    if not answers:
        answers = {probed: prober.run(probed, bench.build + "/sim/libcuda.so.1", **settings) for probed in genuine}
        bench.simulated[version] = answers
    bench.tally.differ(f"{what}: the simulator does not export", sorted(exported(genuine["answers"]) - exported(answers["answers"])))
    for abi in (1, 2):
        if answered(genuine["answers"], abi):
            bench.tally.same(f"{what}: the simulator, cuGetProcAddress v{abi}", answered(genuine["answers"], abi),
                             answered(answers["answers"], abi))
    # What needs cuInit says so. Other errors are about arguments, which no program means as the probe passes them.
    ours = results(answers["calls"])
    bench.tally.differ(f"{what}: the simulator should say that it is not initialized", [
        f"{how}: {ours[how]}" for how, result in results(genuine["calls"]).items()
        if int(result) == NOT_INITIALIZED and ours.get(how, result) != result])


def check_driver(bench, folder, prober, symbols):
    """One genuine driver: bare and under the preload, before cuInit and after it failed, and beside the simulator."""
    name, library, before = os.path.basename(folder), folder + "/libcuda.so.1", bench.tally.differences
    lines = bench.twice(name, prober, "answers", library)
    found = re.match(r"cuDriverGetVersion 0 (\d+)", lines[0]) if lines else None
    if not found:
        print(f"SKIP  {name}: {lines[-1] if lines else 'no answer'}")
        return
    version = int(found[1])
    seen(symbols, version, lines)
    calls = bench.twice(name, prober, "calls", library)
    after = bench.twice(name, prober, "answers", library, "init")
    calls_after = bench.twice(name, prober, "calls", library, "init")
    outcome = [line for line in after if re.fullmatch(r"cuInit \d+", line)]
    bench.tally.differ(f"{name}: cuInit must fail", [] if outcome and outcome != ["cuInit 0"] else [str(outcome)])
    bench.tally.same(f"{name}: answers after cuInit failed", lines, [line for line in after if line not in outcome])
    for abi, since in ((1, FIRST_LOOKUP), (2, 12000)):
        if version >= since:
            bench.tally.same(f"{name}: interface.txt, cuGetProcAddress v{abi}",
                             list(Interface(symbols).answers(version, abi, prober.list)), answered(lines, abi))
    check_simulator(bench, name, prober, version, {"answers": lines, "calls": calls})
    bench.rows.append((name, version, len(exported(lines)), questions(lines) * len(VERSIONS), len(results(calls) | results(
        calls_after)), bench.tally.differences - before))
    print("driver {} (CUDA {}): {} exports, {:,} questions, {:,} functions: {} differences".format(*bench.rows[-1]), flush=True)


def check_drivers(bench, folder):
    """All drivers. Returns {symbol: (driver, since)} of what interface.txt says and of what was seen now."""
    folders = sorted((each for each in glob.glob(folder + "/drivers/*") if os.path.exists(each + "/libcuda.so.1")),
                     key=lambda each: [int(part) for part in os.path.basename(each).split(".")])
    symbols = dict(bench.interface.symbols)
    exports = {name for each in folders for name in exports_of(each + "/libcuda.so.1", "cu")}
    prober = Prober(bench.probe, sorted({*exports, *bench.interface.names()}))
    for each in folders:
        check_driver(bench, each, prober, symbols)
    return symbols


# ---- runtimes and libraries ---------------------------------------------------------------------------------------------


def fetch(folder, package):
    """The folder of a package from pip; None if it cannot be had."""
    target = os.path.join(folder, "packages", package.replace("==", "-").rstrip(".*"))
    if not os.path.exists(target + "/done"):
        done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--upgrade", "--target", target, package],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"SKIP  {package}: {(done.stderr.strip().splitlines() or ['pip failed'])[-1]}")
            return None
        with open(target + "/done", "w", encoding="utf-8"):
            pass
    return target


def library_in(target, name):
    found = sorted(path for path in glob.glob(f"{target}/nvidia/**/{name}*", recursive=True) if not os.path.islink(path))
    return found[0] if found else None


def ask_driver(bench, prober, library, driver, paths):
    """What a library does on a driver, and {(name, version, flags)} of what it asks it; lines of dlsym have no version."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as notes:
        lines = prober.run("calls", library, preload=bench.recorder, paths=[driver, *paths], QUESTIONS=notes.name)
        asked = {tuple(line.split()[1:]) for line in notes}
    return lines, asked


def check_questions(bench, what, asked):
    """Each name that is asked for is a row of the table, or left out with a reason."""
    names = {question[0] for question in asked} - {"-"}
    bench.tally.differ(f"{what} asks for what api.table does not know", sorted(name for name in names if not bench.known(name)))
    bench.figures.setdefault("names", set()).update(names)
    bench.figures.setdefault("questions", set()).update(asked)
    return len(names)


def check_runtime(bench, library, what, drivers):
    """One runtime on all drivers, bare and under the preload: each of its functions, up to "no device"."""
    names, before = exports_of(library, "cuda"), bench.tally.differences
    bench.tally.differ(f"{what} exports what api.table does not know", [name for name in names if not bench.known(name)])
    prober, most = Prober(bench.probe, names), 0
    for driver in drivers:
        lines, asked = ask_driver(bench, prober, library, driver, [])
        bench.tally.same(f"{what} on {os.path.basename(driver)}, under the preload", lines,
                         prober.run("calls", library, preload=bench.preload, paths=[driver]))
        most = max(most, check_questions(bench, what, asked))
        bench.figures["runtime calls"] = bench.figures.get("runtime calls", 0) + len(results(lines))
    bench.figures["runtimes"] = bench.figures.get("runtimes", 0) + 1
    print(f"runtime {what}: {len(names)} exports, asks for {most} names, on {len(drivers)} drivers: "
          f"{bench.tally.differences - before} differences", flush=True)


def check_libraries(bench, folder, driver):
    found = {package: fetch(folder, package) for package in LIBRARIES}
    paths = [os.path.dirname(path) for target in found.values() if target
             for path in glob.glob(target + "/nvidia/*/lib/lib*.so*")]
    for package, (name, calls) in LIBRARIES.items():
        library = library_in(found[package], name) if found[package] else None
        if not library:
            continue
        before, prober = bench.tally.differences, Prober(bench.probe, calls)
        lines, asked = ask_driver(bench, prober, library, driver, sorted(set(paths)))
        bench.tally.differ(f"{package}: {name} could not be loaded", [line for line in lines if line.startswith("exit code")])
        count = check_questions(bench, package, asked)
        print(f"library {name}: asks for {count} names: {bench.tally.differences - before} differences", flush=True)
        bench.figures["libraries"] = bench.figures.get("libraries", 0) + 1


# ---- NVML ---------------------------------------------------------------------------------------------------------------


def check_nvml(bench, folder):
    """NVML has what the preload looks for and what the simulated one has, which refuses alike before nvmlInit."""
    used = {source: sorted(set(re.findall(r'"(nvml\w+)"' if "preload" in source else r"^EXPORTED int (nvml\w+)\(",
                                          open(os.path.join(SOURCE, source), encoding="utf-8").read(), re.M)))
            for source in NVML_SOURCES}
    newest = None
    for library in sorted(glob.glob(folder + "/drivers/*/libnvidia-ml.so.1"),
                          key=lambda path: [int(part) for part in path.split("/")[-2].split(".")]):
        exports, what = set(exports_of(library, "nvml")), "NVML " + library.split("/")[-2]
        # The two forms of the list of processes came with 450 and 510: one of them is enough.
        missing = [name for name in used[NVML_SOURCES[0]] if name not in exports]
        if int(library.split("/")[-2].split(".")[0]) >= 450:
            bench.tally.differ(f"{what} lacks what the preload uses", [name for name in missing if "_v3" not in name])
        newest = what, library, exports
    if not newest:
        print("SKIP  NVML: none here")
        return
    what, library, exports = newest
    names = used[NVML_SOURCES[1]]
    bench.tally.differ(f"{what} lacks what the simulated one has", [name for name in names if name not in exports])
    prober = Prober(bench.probe, [name for name in names if "Init" not in name])
    genuine = bench.twice(what, prober, "calls", library)
    simulated = prober.run("calls", bench.build + "/sim/nvml/libnvidia-ml.so.1")
    # Results alone: what both tell before nvmlInit is the version of NVML, which the simulated one has its own of.
    results = [[line.split(" sum ")[0] for line in lines] for lines in (genuine, simulated)]
    bench.tally.same(f"simulated NVML before nvmlInit, beside {what}", *results)
    bench.figures["nvml"] = f"{len(used[NVML_SOURCES[0]])} functions of {what}"
    print(f"{what}: {len(exports)} exports, {len(used[NVML_SOURCES[0]])} used, {len(names)} simulated", flush=True)


# ---- all ----------------------------------------------------------------------------------------------------------------


def figures(bench):
    """The part of docs/gpu-results.md between its marks."""
    yield "| driver | CUDA | exports | questions | functions called | differences |"
    yield "|---|---|---|---|---|---|"
    for name, version, *numbers in bench.rows:
        yield f"| {name} | {version // 1000}.{version % 1000 // 10} | " + " | ".join(f"{number:,}" for number in numbers) + " |"
    yield ""
    yield (f"{bench.figures['runtimes']} of NVIDIA's runtimes ({RUNTIMES[0].split('==')[1][:-2]} to "
           f"{RUNTIMES[-1].split('==')[1][:-2]}) on one driver of each CUDA since 11.4:")
    yield (f"{bench.figures['runtime calls']:,} calls, the same under gpumem. These runtimes and {bench.figures['libraries']} libraries "
           "(cuBLAS, cuDNN, NCCL, nvJitLink, CUPTI)")
    yield f"ask the driver for {len(bench.figures['names'])} names in {len(bench.figures['questions'])} questions; `api.table` knows"
    yield f"each. NVML: the {bench.figures['nvml']} are those that the preload uses, and"
    yield f"the simulated one refuses as it does before `nvmlInit`. In all: {bench.tally.differences} differences."


def write_figures(bench):
    path = os.path.join(SOURCE, "docs/gpu-results.md")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(re.sub(r"(<!-- NVIDIA's drivers -->\n).*?(<!-- end -->)",
                          lambda match: match[1] + "".join(line + "\n" for line in figures(bench)) + match[2], text, flags=re.S))


CONTROL = "/dev/nvidiactl"  # NVIDIA's cuInit makes it as root, without a device too; who finds it takes it for a GPU


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("folder")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if glob.glob("/dev/nvidia[0-9]*"):
        print("SKIP  this machine has a GPU: functions are called here with arguments that mean nothing")
        return 77
    had_control = os.path.exists(CONTROL)
    try:
        return check(options)
    finally:
        if not had_control and os.path.exists(CONTROL):
            os.unlink(CONTROL)


def check(options):
    bench = Bench(os.path.abspath(options.build))
    folder = os.path.abspath(options.folder)
    symbols = check_drivers(bench, folder)
    if not bench.rows:
        print("SKIP  no driver of NVIDIA's")
        return 77
    if options.write:
        bench.interface = Interface(symbols)
        bench.interface.write(sorted({*Interface.drivers(), *(row[1] for row in bench.rows)}))
    bench.tally.same("interface.txt against what was seen", [f"{symbol} {bench.interface.symbols.get(symbol)}" for symbol in symbols],
                     [f"{symbol} {row}" for symbol, row in symbols.items()])
    check_table(bench.tally, bench.table, Interface(symbols))
    # One driver of each CUDA that has a lookup, the newest of each.
    latest = {version: f"{folder}/drivers/{name}" for name, version, *_ in bench.rows if version >= FIRST_LOOKUP}
    for package in RUNTIMES:
        target = fetch(folder, package)
        library = library_in(target, "libcudart.so") if target else None
        if library:
            check_runtime(bench, library, package.rstrip(".*"), list(latest.values()))
    check_libraries(bench, folder, latest[max(latest)])
    check_nvml(bench, folder)
    if options.write and {"runtimes", "libraries", "nvml"} <= set(bench.figures):
        write_figures(bench)
    print(f"{len(bench.rows)} drivers, {sum(row[3] for row in bench.rows):,} questions, {sum(row[4] for row in bench.rows):,} "
          f"functions called; {bench.figures.get('runtime calls', 0):,} calls of runtimes; runtimes and libraries ask for "
          f"{len(bench.figures.get('names', ()))} names in {len(bench.figures.get('questions', ()))} questions; "
          f"{bench.tally.differences} differences")
    return 1 if bench.tally.differences else 0


if __name__ == "__main__":
    sys.exit(main())
