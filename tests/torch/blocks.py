"""Replays the blocks of a trace: PyTorch's totals at each event must be the sums of the events before."""
import bisect
import json
import subprocess
from collections import Counter

import trace_reader as t


class Pool:
    """The memory of a device's caching allocator, by the records alone."""

    def __init__(self):
        self.allocated = self.reserved = self.peak_allocated = self.peak_reserved = 0
        self.allocs = self.frees = self.refusals = 0
        self.live = {}


class Replay:
    """Figures of a trace, and in `problems` every place where they contradict each other.

    If other libraries take memory of the device too, as on a GPU, `others` is True: an allocation then becomes a
    segment with the first block in it, which PyTorch reports before it does anything else with the segment.
    """

    def __init__(self, path, others=False):
        self.trace = t.Trace(path)
        self.others = others
        self.problems = []
        self.events = Counter()
        self.pools = {}
        self.segments = {}  # address: (size, device), allocated or mapped
        self.reserved = set()  # addresses of those known to be PyTorch's
        self.order = []  # addresses of segments, sorted
        self.handles = {}  # of cuMemCreate: device
        self.undone = {}
        self.pinned = {}
        self.peak_pinned = 0
        self.names = []  # (type, name) of marks and ranges
        for record, detail in self.trace.records():
            self.event(record, detail)

    def problem(self, record, text):
        if len(self.problems) < 20:
            self.problems.append(f"block {record.address:#x} of {record.size} bytes: {text}")

    def pool(self, device):
        return self.pools.setdefault(device, Pool())

    def event(self, record, detail):
        kind = record.type
        self.events[kind] += 1
        if kind in (t.BLOCK_ALLOC, t.BLOCK_FREE, t.BLOCK_OOM):
            self.block(record, detail)
        elif kind == t.ALLOC and record.kind == t.KIND_DEVICE:
            self.add_segment(record.address, record.size, record.device)
        elif kind == t.ALLOC and record.kind == t.KIND_PINNED:
            self.pinned[record.address] = record.size
            self.peak_pinned = max(self.peak_pinned, sum(self.pinned.values()))
        elif kind == t.FREE:
            self.pinned.pop(record.address, None)
            self.drop_segment(record.address)
        elif kind == t.UNDO:
            if record.address in self.undone:
                self.add_segment(record.address, *self.undone[record.address])
        elif kind == t.VMM_CREATE:
            self.handles[record.address] = record.device
        elif kind == t.VMM_MAP:
            self.add_segment(record.address, record.size, self.handles.get(record.aux, 0))
        elif kind == t.VMM_UNMAP:
            first = bisect.bisect_left(self.order, record.address)
            last = bisect.bisect_left(self.order, record.address + record.size)
            for address in self.order[first:last]:
                self.drop_segment(address)
        elif kind in (t.MARK, t.RANGE_PUSH, t.RANGE_POP):
            self.names.append((kind, self.trace.string(record.aux)))

    def add_segment(self, address, size, device):
        self.segments[address] = (size, device)
        bisect.insort(self.order, address)
        if not self.others:
            self.reserve(address)

    def reserve(self, address):
        if address not in self.reserved:
            self.reserved.add(address)
            size, device = self.segments[address]
            pool = self.pool(device)
            pool.reserved += size
            pool.peak_reserved = max(pool.peak_reserved, pool.reserved)

    def drop_segment(self, address):
        if address in self.segments:
            size, device = self.undone[address] = self.segments.pop(address)
            del self.order[bisect.bisect_left(self.order, address)]
            if address in self.reserved:
                self.reserved.remove(address)
                self.pool(device).reserved -= size

    def inside_segments(self, address, size):
        """Whether a block lies in one segment, or in neighbouring mappings."""
        end = address + size
        while address < end:
            at = bisect.bisect_right(self.order, address) - 1
            if at < 0:
                return False
            start = self.order[at]
            if start + self.segments[start][0] <= address:
                return False
            self.reserve(start)
            address = start + self.segments[start][0]
        return True

    def block(self, record, detail):
        pool = self.pool(record.device)
        if record.type == t.BLOCK_ALLOC:
            if record.address in pool.live:
                self.problem(record, "allocated twice")
            pool.live[record.address] = record
            pool.allocs += 1
            pool.allocated += record.size
            pool.peak_allocated = max(pool.peak_allocated, pool.allocated)
            if not self.inside_segments(record.address, record.size):
                self.problem(record, "outside all segments")
            if not record.stack:
                self.problem(record, "no stack")
        elif record.type == t.BLOCK_FREE:
            before = pool.live.pop(record.address, None)
            if before is None or before.size != record.size:
                self.problem(record, "freed, but not allocated with that size")
            pool.frees += 1
            pool.allocated -= record.size
        else:
            pool.refusals += 1
        if record.aux != pool.allocated:
            self.problem(record, f"PyTorch says {record.aux} allocated, the events {pool.allocated}")
        if detail is None:
            self.problem(record, "no reserved total")
        elif detail.address != pool.reserved:
            self.problem(record, f"PyTorch says {detail.address} reserved, the segments {pool.reserved}")

    def block_events(self):
        return self.events[t.BLOCK_ALLOC] + self.events[t.BLOCK_FREE]


def report_problems(gpumem, path, replay):
    """Differences between `gpumem report --json` of the trace and the replay."""
    done = subprocess.run([gpumem, "report", "--json", path], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return [f"report: exit code {done.returncode}: {done.stderr[-500:]}"]
    reported = {pool["device"]: pool for pool in json.loads(done.stdout).get("framework_blocks", [])}
    problems = []
    for device, pool in replay.pools.items():
        ours = {"allocs": pool.allocs, "frees": pool.frees, "live": pool.allocated, "peak": pool.peak_allocated,
                "out_of_memory": pool.refusals}
        theirs = {name: reported.get(device, {}).get(name, 0) for name in ours}
        if theirs != ours:
            problems.append(f"device {device}: the report says {theirs}, the trace {ours}")
    return problems
