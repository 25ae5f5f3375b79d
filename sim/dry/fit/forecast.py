"""What a value would need that was not run, from the requests that runs of other values made.

A program makes the same requests at the same places for a batch of 8 and one of 512: only their sizes differ. So the
requests of two runs, one beside the other, say what each request of a third value would be, and PyTorch's allocator,
as a replica (docs/what-if.md), whether these fit. That is a guess for the search, which runs what it is told.
"""
import base64
import json
import os
import pickle
import subprocess
import tempfile
import zlib

REQUESTS_MOST = 200000  # of a recording: more would take longer than a run
TRACE_MOST = 256 << 20  # bytes of a trace
LOOK_AHEAD = 64         # requests that one of two runs can have beside the other's
ALIKE = 3               # requests in a row that must agree before two runs are beside each other again
ROUND = 2 << 20
MODEL_MOST = 3          # recordings that the size of a request is told from: a parabola


class Recording:
    """The requests of one run: `keys` (places), `sizes` and `streams` of each allocation, and `order`: n where the nth is
    made, -1 - n where it is given back."""

    def __init__(self, keys, sizes, streams, order):
        self.keys, self.sizes, self.streams, self.order = keys, sizes, streams, order

    def peak(self):
        return peak_of(self.sizes, self.order)

    def packed(self):
        text = json.dumps([self.keys, self.sizes, self.streams, self.order])
        return base64.b64encode(zlib.compress(text.encode())).decode()


def unpacked(text):
    return Recording(*json.loads(zlib.decompress(base64.b64decode(text)))) if text else None


def peak_of(sizes, order):
    live = most = 0
    for event in order:
        if event >= 0:
            live += sizes[event]
            most = max(most, live)
        else:
            live -= sizes[-1 - event]
    return most


def largest(gpumem, traces):
    """Of the traces of one run that which holds most, of several processes or of a second run of the program; None: none
    has requests of PyTorch's, or too many."""
    return max((one for one in (read(gpumem, path) for path in traces) if one), key=Recording.peak, default=None)


def read(gpumem, trace):
    try:
        if os.path.getsize(trace) > TRACE_MOST:
            return None
        done = subprocess.run([gpumem, "export", "--no-symbols", "-f", "memory_viz", trace], capture_output=True, check=False,
                              timeout=60)
        histories = pickle.loads(done.stdout)["device_traces"] if done.returncode == 0 else []
    except (OSError, subprocess.TimeoutExpired, pickle.UnpicklingError, EOFError, LookupError):
        return None
    recording, live, names = Recording([], [], [], []), {}, {}
    for event in max(histories, key=len, default=[]):
        if event["action"] == "alloc":
            place = " ".join(f"{frame['filename']}:{frame['line']}:{frame['name']}" for frame in event["frames"])
            live[event["addr"]] = len(recording.sizes)
            recording.order.append(len(recording.sizes))
            recording.keys.append(names.setdefault(place, zlib.crc32(place.encode("utf-8", "surrogatepass"))))
            recording.sizes.append(event["size"])
            recording.streams.append(event["stream"])
        elif event["action"] == "free_completed" and event["addr"] in live:
            recording.order.append(-1 - live.pop(event["addr"]))
    return recording if 0 < len(recording.sizes) <= REQUESTS_MOST else None


def beside(one, other):
    """For each allocation of `one` that of `other` which it corresponds to, or None."""
    found, i, j = [None] * len(one), 0, 0
    while i < len(one) and j < len(other):
        if one[i] == other[j]:
            found[i] = j
            i, j = i + 1, j + 1
            continue
        steps = next(((a, total - a) for total in range(1, 2 * LOOK_AHEAD) for a in range(total + 1)
                      if one[i + a:i + a + ALIKE] == other[j + total - a:j + total - a + ALIKE]), (1, 1))
        for both in range(min(*steps, len(one) - i, len(other) - j)):
            found[i + both] = j + both
        i, j = i + steps[0], j + steps[1]
    return found


class Forecast:
    """Of one search. `runs`: the recordings by the number of a value, the second of a run with large workspaces of cuDNN's;
    `others`: bytes beside what PyTorch's allocator took there; `spread`: what it took at most of the device, by the bytes of its
    blocks; `answer`: the last value that was told to fit."""

    def __init__(self, gpumem):
        self.gpumem, self.runs, self.others, self.spread, self.pairs, self.answer = gpumem, {}, {}, {}, {}, None

    def note(self, number, recordings, others, need=0):
        if recordings:
            self.runs[number], self.others[number] = recordings, others
            self.spread[number] = max(1, (need - others) / max(recording.peak() for recording in recordings))

    def can_tell(self):
        return len(self.runs) > 1 and len({len(recordings) for recordings in self.runs.values()}) == 1

    def kinds(self):
        """0, and 1 where runs had workspaces of cuDNN as well."""
        return range(len(next(iter(self.runs.values()))))

    def sizes_at(self, number, kind):
        """(sizes, recording whose order and streams they have) of a value that was not run."""
        near = sorted(self.runs, key=lambda known: abs(known - number))[:MODEL_MOST]
        top = max(near)
        model, others = self.runs[top][kind], [known for known in near if known != top]
        columns = []
        for known in others:
            if (top, known, kind) not in self.pairs:
                self.pairs[top, known, kind] = beside(model.keys, self.runs[known][kind].keys)
            sizes = self.runs[known][kind].sizes
            columns.append([None if at is None else sizes[at] for at in self.pairs[top, known, kind]])
        last = max((at for column in columns for at, size in enumerate(column) if size is not None), default=-1)
        sizes = []
        for at, size in enumerate(model.sizes):
            if at > last: # of a run that went on for more steps
                sizes.append(1)
                continue
            points = [(top, size)] + [(known, column[at]) for known, column in zip(others, columns) if column[at] is not None]
            sizes.append(max(1, round(through(points, number))))
        return sizes, model

    def memory(self, number, capacity):
        """What PyTorch's allocator can have."""
        near = sorted(self.others.items(), key=lambda known: abs(known[0] - number))[:2]
        return capacity - round(max(0, through(near, number)))

    def can_hold(self, number, capacity, spread=1):
        """Whether the blocks of a value fit, however they lie; with `spread`, if so many times their bytes do."""
        return all(peak_of(sizes, model.order) * spread <= self.memory(number, capacity)
                   for sizes, model in (self.sizes_at(number, kind) for kind in self.kinds()))

    def fits(self, number, capacity):
        """Whether the requests of a value fit a device; None: cannot be told."""
        memory, reserved = self.memory(number, capacity), []
        for kind in self.kinds():
            told = replay(self.gpumem, *self.sizes_at(number, kind), memory)
            if not told or not told[0]:
                return told and False
            reserved.append(told[1])
        # As gpumem dry-run judges (report/tools/dryrun/judgement.c): a wide range decides nothing unless twice it would fit.
        wide = reserved[-1] - reserved[0]
        return wide <= capacity // 10 or reserved[-1] + wide <= memory

    def last(self, numbers, capacity):
        """The place of the last of these ascending values that fits; -1: none does; None: cannot be told."""
        if not self.can_tell():
            return None
        low, high = -1, first(numbers, lambda number: not self.can_hold(number, capacity))
        # Replays take long, so few are made: they begin at the last answer, or where blocks that lie as those of the largest run
        # would fit, and go on from there by more and more.
        if self.answer is None:
            spread = self.spread[max(self.runs)]
            at = first(numbers[:high], lambda number: not self.can_hold(number, capacity, spread))
        else:
            at = min(high, first(numbers, lambda number: number > self.answer))
        at, step = max(0, at - 1), 1
        while high - low > 1:
            does = self.fits(numbers[at], capacity)
            if does is None:
                return None
            low, high, at, step = (at, high, at + step, step * 2) if does else (low, at, at - step, step * 2)
            if not low < at < high:
                at = (low + high) // 2
        self.answer = numbers[low] if low >= 0 else None
        return low


def first(numbers, holds):
    """The place of the first of these for which it holds, as for all behind it; their count: of none."""
    low, high = 0, len(numbers)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(numbers[middle]) else (middle + 1, high)
    return low


def through(points, x):
    """The value at x of the polynomial through points; of one point alone it is in proportion."""
    if len(points) == 1:
        return points[0][1] * x / points[0][0] if points[0][0] else points[0][1]
    total = 0.0
    for i, (at, value) in enumerate(points):
        for j, (other, _) in enumerate(points):
            if i != j:
                value *= (x - other) / (at - other)
        total += value
    return total


def replay(gpumem, sizes, model, memory):
    """(whether the requests are all granted with so much memory, bytes reserved at most); None: cannot be told. Each is
    written as a segment of its own, at an address of its own: where it really goes is what the replica finds."""
    events, segments, address, places, time = [], [], 1 << 40, [], 0
    for size in sizes:
        places.append(address)
        address += -(-size // ROUND) * ROUND
    left = set(range(len(sizes)))
    for event in model.order:
        at = event if event >= 0 else -1 - event
        one = {"addr": places[at], "size": sizes[at], "stream": model.streams[at], "frames": []}
        time += 1
        if event >= 0:
            whole = -(-sizes[at] // ROUND) * ROUND
            events.append(dict(one, action="segment_alloc", size=whole, time_us=time))
            events.append(dict(one, action="alloc", time_us=time))
            segments.append(at)
        else:
            left.discard(at)
            events.append(dict(one, action="free_completed", time_us=time))
    described = []
    for at in segments:
        whole = -(-sizes[at] // ROUND) * ROUND
        size = -(-sizes[at] // 512) * 512 if at in left else 0
        blocks = [{"address": places[at], "size": size, "requested_size": sizes[at], "state": "active_allocated"}] if size else []
        if whole > size:
            blocks.append({"address": places[at] + size, "size": whole - size, "requested_size": 0, "state": "inactive"})
        described.append({"device": 0, "address": places[at], "total_size": whole, "allocated_size": size, "active_size": size,
                          "requested_size": sizes[at] if size else 0, "stream": model.streams[at],
                          "segment_type": "small" if sizes[at] <= 1 << 20 else "large", "segment_pool_id": (0, 0),
                          "is_expandable": False, "frames": [], "blocks": blocks})
    snapshot = {"segments": described, "device_traces": [events], "external_annotations": [], "allocator_settings": {}}
    with tempfile.NamedTemporaryFile(prefix="gpumem-fit-", suffix=".pickle") as file:
        pickle.dump(snapshot, file, protocol=4)
        file.flush()
        done = subprocess.run([gpumem, "whatif", "--json", "--memory", str(memory), file.name], capture_output=True, text=True,
                              check=False, timeout=60)
    try:
        setting = json.loads(done.stdout)["settings"][0]
        return setting["out_of_memory"] == 0, setting["reserved_peak"]
    except (ValueError, LookupError):
        return None
