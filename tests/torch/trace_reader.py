"""Reads a trace by include/gpumem/trace.h alone: a second opinion, independent of the report tool.

For tests: it trusts the file, reads all of it and needs the zstd library only for records that are no longer in the
ring.
"""
import ctypes
import ctypes.util
import itertools
import struct
from collections import namedtuple

ALLOC, FREE, UNDO, ALLOC_FAILED = 1, 2, 3, 4
VMM_CREATE, VMM_RELEASE, VMM_MAP, VMM_UNMAP = 11, 14, 17, 18
DETAIL, MARK, RANGE_PUSH, RANGE_POP = 41, 42, 43, 44
BLOCK_ALLOC, BLOCK_FREE, BLOCK_OOM = 46, 47, 48

KIND_DEVICE, KIND_PINNED = 1, 7

HEADER = struct.Struct("@8sIHHI4H5IQ2I40s64s32s40s256s1024s2I10Q2I2Q8I32Q")
EXTENT = struct.Struct("<IHHIIQ40x")
BLOCK = struct.Struct("<II3Q3I12I3I24x")
TILE = 128  # records
RECORD = struct.Struct("<4Q2I2H2BbB")
NODE = struct.Struct("<QIHH")
FRAME = struct.Struct("<4I")

EXTENT_LANE, EXTENT_NODES, EXTENT_STRINGS, EXTENT_BLOCK, EXTENT_FRAMES = 2, 3, 4, 6, 7

Record = namedtuple("Record", "time address size aux stack extra context api type kind device flags")


def unpack_zstd(data, size):
    library = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    out = ctypes.create_string_buffer(size)
    if library.ZSTD_decompress(out, size, data, len(data)) != size:
        raise ValueError("a block does not decompress")
    return out.raw


def varints(data):
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            values.append(value)
            value, shift = 0, 0
    return values


def zigzag(values):
    return [(value >> 1) ^ -(value & 1) for value in values]


# For each field of a record: the number of its column, its encoding, and whether it has differences.
COLUMNS = {
    "type": (0, list, False), "api": (2, varints, False), "stack": (3, varints, True),
    "address": (4, varints, True), "size": (5, varints, False), "aux": (6, varints, True),
    "extra": (7, varints, False), "context": (8, varints, False), "kind": (9, list, False),
    "device": (10, list, False), "flags": (11, list, False),
}


def unpack_column(count, distance, near, sets, number, values, is_difference):
    """A field of all records; in tiles outside the column, the value of the model."""
    field, values = [], iter(values)
    for n in range(count):
        back = distance if n >= distance else near
        model = field[n - back] if n >= back else 0
        if not sets[n // TILE] >> number & 1:
            field.append(model)
        elif is_difference:
            field.append((model + next(values)) & 0xFFFFFFFFFFFFFFFF)
        else:
            field.append(next(values))
    return field


class Trace:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        fields = HEADER.unpack_from(self.data)
        assert fields[0] == b"GPUMEM\x1a\n" and fields[2] == 3, "not a trace"
        counters_at = len(fields) - 32
        self.counters = fields[counters_at:]
        self.file_end = fields[counters_at - 9]
        self.end = fields[counters_at - 11]
        self.header_size = fields[4]
        self.nodes, self.frames, strings, self.lanes, self.blocks = [], [], [], {}, {}
        at = self.header_size
        while at < self.file_end:
            _, kind, _, index, _, length = EXTENT.unpack_from(self.data, at)
            payload = self.data[at + 64 : at + length]
            if kind == EXTENT_NODES:
                self.nodes += NODE.iter_unpack(payload[: len(payload) // NODE.size * NODE.size])
            elif kind == EXTENT_FRAMES:
                self.frames += FRAME.iter_unpack(payload[: len(payload) // FRAME.size * FRAME.size])
            elif kind == EXTENT_STRINGS:
                strings.append(payload)
            elif kind == EXTENT_LANE:
                self.lanes[index] = payload
            elif kind == EXTENT_BLOCK:
                lane, count, first = struct.unpack_from("<IIQ", payload)
                self.blocks.setdefault(lane, {})[first] = (count, payload)
            at += length
        self.strings = b"".join(strings)

    def string(self, reference):
        if not reference:
            return ""
        (length,) = struct.unpack_from("<H", self.strings, reference)
        return self.strings[reference + 2 : reference + 2 + length].decode(errors="replace")

    def script_frames(self, stack):
        """(file, function, line) of the Python frames of a stack, innermost first."""
        while stack:
            address, parent, _, kind = self.nodes[stack]
            if kind == 2:
                file, function, line, _ = self.frames[address]
                yield self.string(file), self.string(function), line
            stack = parent

    def packed(self, payload):
        header = BLOCK.unpack_from(payload)
        count, first_time, stored, raw, codec, sizes = header[1], header[3], *header[5:8], header[8:20]
        columns = payload[BLOCK.size : BLOCK.size + stored]
        if codec:
            columns = unpack_zstd(columns, raw)
        tiles = -(-count // TILE)
        sets, (distance, near) = struct.unpack_from(f"<{tiles}H", columns), header[21:23]
        at, column = 2 * tiles, []
        for size in sizes:
            column.append(columns[at : at + size])
            at += size
        fields = {"time": itertools.accumulate(varints(column[1]), initial=first_time)}
        next(fields["time"])
        for name, (number, read, is_difference) in COLUMNS.items():
            values = read(column[number])
            fields[name] = unpack_column(count, distance, near, sets, number,
                                         zigzag(values) if is_difference else values, is_difference)
        fields["device"] = [value - 256 if value > 127 else value for value in fields["device"]]
        return map(Record, *(fields[name] for name in Record._fields))

    def lane_records(self, number):
        """All records of a lane, in order; a record that is in a block and in the ring is returned once."""
        lane = self.lanes[number]
        capacity, head, tail = (struct.unpack_from("<Q", lane, at)[0] for at in (0, 64, 128))
        expected = 0
        for first, (count, payload) in sorted(self.blocks.get(number, {}).items()):
            if first + count <= tail:
                assert first == expected, f"lane {number}: records {expected} to {first} are missing"
                expected = first + count
                yield from self.packed(payload)
        assert expected == tail, f"lane {number}: records {expected} to {tail} are missing"
        ring = lane[192 : 192 + capacity * RECORD.size]
        for sequence in range(tail, head):
            yield Record._make(RECORD.unpack_from(ring, sequence % capacity * RECORD.size))

    def records(self):
        """(record, detail or None) of all lanes in the order of time."""
        pairs = []
        for number in self.lanes:
            for record in self.lane_records(number):
                if record.type == DETAIL:
                    pairs[-1] = (pairs[-1][0], record)
                else:
                    pairs.append((record, None))
        pairs.sort(key=lambda pair: pair[0].time)
        return pairs
