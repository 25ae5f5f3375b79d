"""pytest plugin of gpumem: what a test may take of GPU memory, and what it may leave behind.

    @pytest.mark.gpu_limit_peak("2 GiB")
    @pytest.mark.gpu_limit_leaks("0 B", warmups=1)

Runs under `gpumem run -- pytest`, or LD_PRELOAD=$(gpumem path) pytest; docs/gate-in-tests.md has all of it. Where
nobody records, a test with a limit is run and then reported as skipped, never as passed.
"""
import functools
import gc
import importlib
import re
import sys

import pytest

gpumem = importlib.import_module(__package__ or "gpumem")  # in the wheel it is the package that this file is in

NOISE = 1 << 20  # bytes that a test may exceed its baseline by, if not told otherwise
PROPERTY_PEAK, PROPERTY_LEFT, PROPERTY_NONE = "gpu_peak_bytes", "gpu_left_bytes", "gpu_not_measured"

_SIZE = re.compile(r"(\d+(?:\.\d+)?) *([KMGTP]?)(i?B)?\Z", re.IGNORECASE)


# ---- sizes ------------------------------------------------------------------------------------------------------


def parse_size(text):
    """Bytes of "2 GiB", "64M" or 1024; units are powers of 1024, as for the options of gpumem."""
    if isinstance(text, int) and not isinstance(text, bool) and text >= 0:
        return text
    found = _SIZE.match(text.strip()) if isinstance(text, str) else None
    if not found:
        raise ValueError(f"{text!r} is no size; say \"2 GiB\", \"64M\" or a number of bytes")
    return round(float(found[1]) * 1024 ** " KMGTP".index(found[2].upper() or " ")) if "." in found[1] else (
        int(found[1]) * 1024 ** " KMGTP".index(found[2].upper() or " "))


def format_size(size):
    """As reports print it."""
    value, units = float(size), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1023.995 and len(units) > 1:
        value /= 1024
        del units[0]
    return f"{size} B" if units[0] == "B" else f"{value:.3g} {units[0]}"


def parse_increase(text):
    """What a test may exceed its baseline by: (share, bytes)."""
    if text.endswith("%"):
        return float(text[:-1]) / 100, 0
    return 0.0, parse_size(text)


# ---- measuring --------------------------------------------------------------------------------------------------


def _collect():
    """Drops what Python and CuPy's pool hold for nobody. Blocks of PyTorch's pool are counted as it frees them."""
    gc.collect()
    cupy = sys.modules.get("cupy")
    if cupy is not None:
        try:
            cupy.get_default_memory_pool().free_all_blocks()
            cupy.get_default_pinned_memory_pool().free_all_blocks()
        except Exception:  # noqa: BLE001 - another's module: it may be half imported
            pass


@functools.lru_cache(maxsize=None)
def _devices():
    """The ordinals that the library tells apart."""
    count = 0
    while True:
        try:
            gpumem.live_bytes(count)
        except gpumem.NotKnown as error:
            if error.code != gpumem.NO_SUCH or count == 0:
                raise
            return range(count)
        count += 1


class Measure:
    """One test: what it took at most beyond what was in use when it began, and what it left."""

    def __init__(self, counts_left):
        self.counts_left = counts_left
        if counts_left:
            _collect()
        self.before = [gpumem.live_bytes(device) for device in _devices()]
        self.since = gpumem.moment()
        gpumem.peak_restart()

    def peak(self, device=None, total=False):
        """Bytes; of all devices the largest."""
        wanted = _devices() if device is None else [device]
        return max(gpumem.peak_bytes(each) - (0 if total else self.before[each]) for each in wanted)

    def left(self):
        """Without `counts_left` also what Python would drop at its next collection."""
        if self.counts_left:
            _collect()
        return gpumem.check_now(self.since)


# ---- what is judged ---------------------------------------------------------------------------------------------


class Limits:
    """The marks of one test."""

    def __init__(self, item):
        self.peaks = [self._peak(*mark.args, **mark.kwargs) for mark in item.iter_markers("gpu_limit_peak")]
        leaks = [self._leaks(*mark.args, **mark.kwargs) for mark in item.iter_markers("gpu_limit_leaks")]
        self.leaks = leaks[0] if leaks else None  # the nearest mark counts
        self.warmups = self.leaks[1] if leaks else 0

    def __bool__(self):
        return bool(self.peaks or self.leaks)

    @staticmethod
    def _peak(limit, *, device=None, total=False):
        if device is not None and (isinstance(device, bool) or not isinstance(device, int) or device < 0):
            raise ValueError(f"device={device!r} is no ordinal of a device")
        return parse_size(limit), device, bool(total)

    @staticmethod
    def _leaks(limit="0 B", *, warmups=0):
        if isinstance(warmups, bool) or not isinstance(warmups, int) or warmups < 0:
            raise ValueError(f"warmups={warmups!r} is no number of runs")
        return parse_size(limit), warmups


def _limits(item):
    try:
        return Limits(item)
    except (TypeError, ValueError) as error:
        pytest.fail(f"gpumem: a mark of this test is not understood: {error}", pytrace=False)


def _judge(limits, measure, left):
    problems = []
    for limit, device, total in limits.peaks:
        if device is not None and device not in _devices():
            problems.append(f"device={device}: gpumem tells {len(_devices())} devices apart")
            continue
        peak = measure.peak(device, total)
        if peak > limit:
            where = "" if device is None else f" on device {device}"
            what = "was in use at one time" if total else "was taken at one time"
            problems.append(f"{format_size(peak)} ({peak} B){where} {what}; the limit is {format_size(limit)}")
    if limits.leaks is not None and left.bytes > limits.leaks[0]:
        problems.append(f"{format_size(left.bytes)} ({left.bytes} B) in {left.count} allocation"
                        f"{'s' * (left.count != 1)} not freed; the limit is {format_size(limits.leaks[0])}")
    return problems


# ---- baseline ---------------------------------------------------------------------------------------------------


def read_baseline(path):
    """{test: (peak, left)}; lines are `PEAK LEFT TEST`, in bytes."""
    known = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip() or line.startswith("#"):
                continue
            fields = line.rstrip("\n").split(" ", 2)
            if len(fields) != 3 or not fields[0].isdigit() or not fields[1].isdigit():
                raise ValueError(f"{path}:{number}: not `PEAK LEFT TEST`")
            known[fields[2]] = int(fields[0]), int(fields[1])
    return known


def write_baseline(path, known):
    with open(path, "w", encoding="utf-8") as file:
        file.write("# gpumem: bytes that each test took at one time, and left; pytest --gpumem-update-baseline\n")
        for test in sorted(known):
            file.write(f"{known[test][0]} {known[test][1]} {test}\n")


# ---- pytest -----------------------------------------------------------------------------------------------------


def pytest_addoption(parser):
    group = parser.getgroup("gpumem", "GPU memory")
    group.addoption("--gpumem-require", action="store_true", default=False,
                    help="fail tests with a limit that nobody measures, because libgpumem.so is not in the process "
                         "(they are reported as skipped)")
    group.addoption("--gpumem-baseline", metavar="FILE", default="gpumem-tests.txt",
                    help="what each test took and left when that was accepted (gpumem-tests.txt)")
    group.addoption("--gpumem-update-baseline", action="store_true", default=False,
                    help="write the baseline from this run; tests that did not run keep their line")
    group.addoption("--gpumem-fail-on-increase", action="store_true", default=False,
                    help="fail tests that take or leave more than the baseline has, by more than --gpumem-max-increase")
    group.addoption("--gpumem-max-increase", metavar="N%|SIZE", default=None,
                    help="by how much a test may exceed its baseline (the larger of 5%% and 1 MiB)")
    group.addoption("--gpumem-top", metavar="N", type=int, default=10,
                    help="tests in the summary, by their peak; 0: none (10)")
    parser.addini("gpumem_require", "as --gpumem-require", type="bool", default=False)


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu_limit_peak(limit, device=None, total=False): fail if the test takes more GPU "
                                       "memory than that at one time; total=True: with what was in use before")
    config.addinivalue_line("markers", "gpu_limit_leaks(limit='0 B', warmups=0): fail if the test leaves more GPU memory "
                                       "than that, after so many runs that are not judged")
    config.pluginmanager.register(Plugin(config), "gpumem-plugin")


class Plugin:
    """One session; with pytest-xdist, one in each worker and one in the process that reports."""

    def __init__(self, config):
        option = config.getoption
        self.config = config
        self.is_worker = hasattr(config, "workerinput")
        self.require = option("--gpumem-require") or config.getini("gpumem_require")
        self.path = option("--gpumem-baseline")
        self.update = option("--gpumem-update-baseline")
        self.compare = option("--gpumem-fail-on-increase")
        self.top = option("--gpumem-top")
        self.measured = {}  # test: (peak, left)
        self.not_measured = {}  # test: why
        self.baseline = {}
        self._options(option)

    def _options(self, option):
        try:
            told = option("--gpumem-max-increase")
            self.increase = parse_increase(told) if told else (0.05, NOISE)
        except ValueError as error:
            raise pytest.UsageError(f"--gpumem-max-increase: {error}") from None
        if not (self.compare or self.update):
            return
        if self.compare and self.update:
            raise pytest.UsageError("--gpumem-fail-on-increase and --gpumem-update-baseline exclude each other")
        if not gpumem.active():
            raise pytest.UsageError("--gpumem-fail-on-increase and --gpumem-update-baseline need libgpumem.so in the "
                                    "process: gpumem run -- pytest, or LD_PRELOAD=$(gpumem path) pytest")
        try:
            self.baseline = read_baseline(self.path)
        except FileNotFoundError:
            if self.compare:
                raise pytest.UsageError(f"--gpumem-fail-on-increase: there is no baseline {self.path}; write it with "
                                        "--gpumem-update-baseline") from None
        except (OSError, ValueError) as error:
            raise pytest.UsageError(f"--gpumem-baseline: {error}") from None

    # -- one test

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        """Around the test's own run: what a fixture holds is the fixture's."""
        item.runtest = functools.partial(self._run, item, item.runtest)
        yield
        del item.runtest

    def _run(self, item, test):
        limits = _limits(item)
        with gpumem.range(item.nodeid):
            for _ in range(limits.warmups):
                test()
            measure, trouble = self._begin(limits)
            test()
            if measure is not None:
                try:
                    peak, left = max(measure.peak(), 0), measure.left()
                    problems = _judge(limits, measure, left) + self._increases(item.nodeid, peak, left.bytes)
                except gpumem.NotKnown as error:
                    measure, trouble = None, error
        if measure is None:
            self._tell_not_measured(item, limits, trouble)
            return
        item.user_properties[:] = [told for told in item.user_properties if told[0] not in (PROPERTY_PEAK, PROPERTY_LEFT)]
        item.user_properties += [(PROPERTY_PEAK, peak), (PROPERTY_LEFT, left.bytes)]
        if problems:
            pytest.fail("gpumem: " + "\n".join(problems), pytrace=False)

    def _begin(self, limits):
        try:
            return Measure(limits.leaks is not None or self.compare or self.update), None
        except gpumem.NotKnown as error:
            return None, error

    def _tell_not_measured(self, item, limits, trouble):
        """A limit that nobody could check is no pass. Losses are the run's fault and fail; that nobody records may be
        the choice of who runs the tests."""
        if limits or item.nodeid in self.baseline:
            item.user_properties.append((PROPERTY_NONE, str(trouble)))
            if self.require or not trouble.is_absent:
                pytest.fail(f"gpumem: the GPU memory of this test is not known: {trouble}", pytrace=False)
            pytest.skip(f"it passes, but its GPU memory was not judged: {trouble}")

    def _increases(self, test, peak, left):
        if not self.compare or test not in self.baseline:
            return []
        problems = []
        for value, known, what in ((peak, self.baseline[test][0], "taken at one time"),
                                   (left, self.baseline[test][1], "not freed")):
            allowed = known + max(int(known * self.increase[0]), self.increase[1])
            if value > allowed:
                problems.append(f"{format_size(value)} ({value} B) {what}; the baseline has {format_size(known)}, "
                                f"and {format_size(allowed)} are allowed")
        return problems

    # -- all tests, where they are reported

    def pytest_runtest_logreport(self, report):
        if report.when != "call" or self.is_worker:
            return
        told = dict((name, value) for name, value in report.user_properties)
        if PROPERTY_NONE in told:
            self.not_measured[report.nodeid] = told[PROPERTY_NONE]
        if PROPERTY_PEAK in told:
            self.measured[report.nodeid] = told[PROPERTY_PEAK], told[PROPERTY_LEFT], report.outcome

    def pytest_sessionfinish(self):
        if not self.update or self.is_worker:
            return
        known = dict(self.baseline)
        known.update((test, found[:2]) for test, found in self.measured.items() if found[2] == "passed")
        write_baseline(self.path, known)

    def pytest_terminal_summary(self, terminalreporter):
        if not self.measured and not self.not_measured:
            return
        write = terminalreporter.write_line
        if self.measured and self.top > 0:
            terminalreporter.section("GPU memory of the tests")
            write(f"{'taken at most':>14} {'not freed':>12}")
            largest = sorted(self.measured.items(), key=lambda found: (-found[1][0], found[0]))
            for test, (peak, left, outcome) in largest[:self.top]:
                write(f"{format_size(peak):>14} {format_size(left):>12}  {test}" + (" FAILED" * (outcome == "failed")))
            if len(largest) > self.top:
                write(f"... and {len(largest) - self.top} more (--gpumem-top)")
        if self.update:
            write(f"gpumem: {self.path} is written")
        new = [test for test in self.measured if test not in self.baseline]
        if self.compare and new:
            write(f"gpumem: {len(new)} not in the baseline {self.path}, so not compared: {', '.join(sorted(new)[:3])}"
                  + (" ..." if len(new) > 3 else ""))
        if self.not_measured:
            write(f"gpumem: {len(self.not_measured)} with a limit on GPU memory, and NOT JUDGED: "
                  + next(iter(self.not_measured.values())), yellow=True)
