/* Builds traces in memory for the reader's tests, by include/gpumem/trace.h alone.
 *
 * Independent of the recorder, so that a mistake of one of them shows. A test adds records lane by
 * lane; `writer_finish` decides which of them go into blocks and which are still in the ring.
 */
#ifndef GM_TESTS_TRACE_WRITER_H
#define GM_TESTS_TRACE_WRITER_H

#include "trace_mend.h"
#include <gpumem/trace.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define WRITER_LANES 8

struct writer_lane {
    struct gm_record *records;
    uint64_t count;
    uint64_t packed;  /* this many records are in blocks; the rest in the ring */
    uint64_t overlap; /* the ring's tail lags behind the blocks by this many */
};

struct writer {
    struct gm_trace_header header;
    struct writer_lane lanes[WRITER_LANES];
    uint32_t block_records; /* per block */
    enum gm_codec codec;
    uint32_t distance; /* of a block's records to their models */
    uint32_t near;
    uint64_t clock; /* time of the next record; moves on by itself */
    struct gm_node nodes[256];
    struct gm_module modules[16];
    struct gm_script_frame frames[64];
    char strings[16384];
    char names[4096];
    uint32_t names_size;
    uint16_t names_count;
    bool flight;                 /* the blocks are in an area, after a checkpoint */
    struct gm_record carried[8]; /* by it */
    uint8_t carried_lanes[8];
    uint32_t carried_count;
    uint64_t carried_until;        /* time of the latest record before it */
    uint64_t folded[WRITER_LANES]; /* records before it */
    unsigned char *bytes;          /* the finished trace; aligned to 64 */
    size_t size;
    size_t capacity;
};

static inline void writer_begin(struct writer *writer)
{
    memset(writer, 0, sizeof(*writer));
    struct gm_trace_header *header = &writer->header;
    memcpy(header->magic, GM_TRACE_MAGIC, sizeof(header->magic));
    header->endian = GM_TRACE_ENDIAN;
    header->major = GM_TRACE_MAJOR;
    header->minor = GM_TRACE_MINOR;
    header->header_size = GM_TRACE_PAGE;
    header->record_size = sizeof(struct gm_record);
    header->node_size = sizeof(struct gm_node);
    header->module_size = sizeof(struct gm_module);
    header->frame_size = sizeof(struct gm_script_frame);
    header->clock = GM_CLOCK_MONOTONIC;
    header->clock_start.monotonic_ns = 1000;
    header->flags = GM_HEADER_SIMULATED;
    header->pid = 4242;
    header->end = GM_END_EXIT;
    header->node_count = header->module_count = header->frame_count = 1;
    header->string_bytes = 2;
    memcpy(header->command_line, "./program\0--fast", 17);
    header->command_line_size = 17;
    writer->names_size = 1;
    writer->names_count = 1;
    writer->block_records = 100;
    writer->codec = GM_CODEC_ZSTD;
    writer->distance = 1;
    writer->near = 1;
    writer->clock = 2000;
}

static inline void writer_free(struct writer *writer)
{
    for (int lane = 0; lane < WRITER_LANES; lane++)
        free(writer->lanes[lane].records);
    free(writer->bytes);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static inline uint32_t writer_text(struct writer *writer, const void *bytes, uint16_t size)
{
    uint32_t reference = writer->header.string_bytes;
    memcpy(writer->strings + reference, &size, sizeof(size));
    memcpy(writer->strings + reference + sizeof(size), bytes, size);
    writer->header.string_bytes += (uint32_t)sizeof(size) + size;
    return reference;
}

static inline uint32_t writer_string(struct writer *writer, const char *text)
{
    return writer_text(writer, text, (uint16_t)strlen(text));
}

static inline uint16_t writer_api(struct writer *writer, const char *name)
{
    size_t size = strlen(name) + 1;
    memcpy(writer->names + writer->names_size, name, size);
    writer->names_size += (uint32_t)size;
    return writer->names_count++;
}

static inline uint16_t writer_module(struct writer *writer, const char *path)
{
    uint16_t number = (uint16_t)writer->header.module_count++;
    writer->modules[number] = (struct gm_module){.path = writer_string(writer, path)};
    return number;
}

static inline uint32_t writer_node(struct writer *writer, uint32_t parent, uint16_t module,
                                   uint64_t address, enum gm_node_kind kind)
{
    uint32_t id = writer->header.node_count++;
    writer->nodes[id] = (struct gm_node){address, parent, module, (uint16_t)kind};
    return id;
}

static inline uint32_t writer_script_frame(struct writer *writer, const char *file,
                                           const char *function, uint32_t line)
{
    uint32_t index = writer->header.frame_count++;
    uint32_t file_reference = writer_string(writer, file);
    writer->frames[index] =
        (struct gm_script_frame){file_reference, writer_string(writer, function), line, 1};
    return index;
}

/* ---- records --------------------------------------------------------------------------------- */

/* Adds a record to the checkpoint of a flight trace. */
static inline void writer_carry(struct writer *writer, uint8_t lane, struct gm_record record)
{
    if (record.time == 0)
        record.time = writer->clock += 10;
    writer->flight = true;
    writer->carried_until = writer->clock;
    writer->carried_lanes[writer->carried_count] = lane;
    writer->carried[writer->carried_count++] = record;
}

/* Adds a record; a time of 0 means "a little later". */
static inline void writer_add(struct writer *writer, unsigned lane, struct gm_record record)
{
    struct writer_lane *to = &writer->lanes[lane];
    if (record.time == 0)
        record.time = writer->clock += 10;
    to->records = realloc(to->records, (to->count + 1) * sizeof(record));
    if (!to->records)
        abort();
    to->records[to->count++] = record;
}

/* ---- layout ---------------------------------------------------------------------------------- */

static inline void *writer_room(struct writer *writer, size_t size)
{
    if (writer->size + size > writer->capacity) {
        size_t capacity = 2 * (writer->size + size);
        unsigned char *bytes = aligned_alloc(64, (capacity + 63) / 64 * 64);
        if (!bytes)
            abort();
        if (writer->size)
            memcpy(bytes, writer->bytes, writer->size);
        free(writer->bytes);
        writer->bytes = bytes;
        writer->capacity = capacity;
    }
    void *at = writer->bytes + writer->size;
    memset(at, 0, size);
    writer->size += size;
    return at;
}

/* Appends an extent with room for `size` bytes and returns their address. */
static inline void *writer_extent(struct writer *writer, enum gm_extent_type type, uint32_t index,
                                  size_t size)
{
    size_t length =
        (sizeof(struct gm_extent) + size + GM_EXTENT_ALIGN - 1) / GM_EXTENT_ALIGN * GM_EXTENT_ALIGN;
    struct gm_extent *extent = writer_room(writer, length);
    *extent = (struct gm_extent){.magic = GM_EXTENT_MAGIC,
                                 .type = (uint16_t)type,
                                 .index = index,
                                 .used = (uint32_t)size,
                                 .length = length};
    return extent + 1;
}

static inline unsigned char *writer_varint(unsigned char *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (unsigned char)(value | 0x80);
    *at++ = (unsigned char)value;
    return at;
}

static inline uint64_t writer_zigzag(uint64_t difference)
{
    return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

/* One field of one record, as encoded in its column. */
static inline unsigned char *writer_field(unsigned char *at, int column,
                                          const struct gm_record *record,
                                          const struct gm_record *model,
                                          const struct gm_record *before)
{
    switch (column) {
    case GM_COLUMN_TYPE:
        *at = record->type;
        return at + 1;
    case GM_COLUMN_TIME:
        return writer_varint(at, before ? record->time - before->time : 0);
    case GM_COLUMN_API:
        return writer_varint(at, record->api);
    case GM_COLUMN_STACK:
        return writer_varint(at, writer_zigzag((uint64_t)record->stack - model->stack));
    case GM_COLUMN_ADDRESS:
        return writer_varint(at, writer_zigzag(record->address - model->address));
    case GM_COLUMN_SIZE:
        return writer_varint(at, record->size);
    case GM_COLUMN_AUX:
        return writer_varint(at, writer_zigzag(record->aux - model->aux));
    case GM_COLUMN_EXTRA:
        return writer_varint(at, record->extra);
    case GM_COLUMN_CONTEXT:
        return writer_varint(at, record->context);
    case GM_COLUMN_KIND:
        *at = record->kind;
        return at + 1;
    case GM_COLUMN_DEVICE:
        *at = (unsigned char)record->device;
        return at + 1;
    default:
        *at = record->flags;
        return at + 1;
    }
}

static inline bool writer_differs(int column, const struct gm_record *record,
                                  const struct gm_record *model)
{
    static const struct gm_record nothing;
    unsigned char one[10], other[10];
    size_t size = (size_t)(writer_field(one, column, record, &nothing, NULL) - one);
    size_t other_size = (size_t)(writer_field(other, column, model, &nothing, NULL) - other);
    return column == GM_COLUMN_TIME || size != other_size || memcmp(one, other, size) != 0;
}

static inline const struct gm_record *writer_model(const struct gm_block *block,
                                                   const struct gm_record *records, uint32_t n)
{
    static const struct gm_record nothing;
    uint32_t back = n >= block->distance ? block->distance : block->near;
    return n >= back ? &records[n - back] : &nothing;
}

/* Writes the column's part of the tile that starts with record `begin`, and sets its bit in the
 * tile's set. */
static inline unsigned char *writer_tile(unsigned char *to, unsigned char *set, int column,
                                         const struct gm_record *records, uint32_t begin,
                                         const struct gm_block *block)
{
    uint32_t end = begin + GM_TILE_RECORDS < block->count ? begin + GM_TILE_RECORDS : block->count;
    bool differs = false;
    for (uint32_t n = begin; n < end; n++)
        differs |= writer_differs(column, &records[n], writer_model(block, records, n));
    if (!differs)
        return to;
    set[column / 8] |= (unsigned char)(1u << column % 8);
    for (uint32_t n = begin; n < end; n++)
        to = writer_field(to, column, &records[n], writer_model(block, records, n),
                          n ? &records[n - 1] : NULL);
    return to;
}

/* Appends a block of `count` records; `lanes` as well if they are carried ones. */
static inline void writer_packed(struct writer *writer, enum gm_extent_type type, uint32_t lane,
                                 uint64_t first, uint32_t count, const struct gm_record *records,
                                 const uint8_t *lanes)
{
    unsigned char *raw = malloc((size_t)count * 96 + 1), *to = raw;
    struct gm_block block = {.lane = lane,
                             .count = count,
                             .first_sequence = first,
                             .first_time = records[0].time,
                             .last_time = records[count - 1].time,
                             .codec = writer->codec,
                             .distance = writer->distance,
                             .near = writer->near};
    if (!raw)
        abort();
    unsigned char *sets = raw;
    memset(sets, 0, gm_block_sets_size(count));
    to += gm_block_sets_size(count);
    for (int column = 0; column < GM_COLUMNS; column++) {
        unsigned char *start = to;
        for (uint32_t tile = 0; tile * GM_TILE_RECORDS < count; tile++)
            to = writer_tile(to, sets + 2 * tile, column, records, tile * GM_TILE_RECORDS, &block);
        block.column_size[column] = (uint32_t)(to - start);
    }
    for (uint32_t n = 0; lanes && n < count; n++)
        *to++ = lanes[n];
    block.lane_column_size = lanes ? count : 0;
    block.raw_size = (uint32_t)(to - raw);
    size_t bound = ZSTD_compressBound(block.raw_size), size = block.raw_size;
    unsigned char *stored = malloc(bound + 1);
    if (!stored)
        abort();
    if (writer->codec == GM_CODEC_ZSTD)
        size = ZSTD_compress(stored, bound, raw, block.raw_size, 1);
    else
        memcpy(stored, raw, size);
    block.stored_size = (uint32_t)size;
    unsigned char *payload = writer_extent(writer, type, 0, sizeof(block) + size);
    memcpy(payload, &block, sizeof(block));
    memcpy(payload + sizeof(block), stored, size);
    free(raw);
    free(stored);
}

static inline void writer_block(struct writer *writer, uint32_t lane, uint64_t first,
                                uint32_t count)
{
    writer_packed(writer, GM_EXTENT_BLOCK, lane, first, count, writer->lanes[lane].records + first,
                  NULL);
}

/* Appends a checkpoint: the carried records, and for each lane the number of records before it. */
static inline void writer_checkpoint(struct writer *writer)
{
    size_t used = sizeof(struct gm_checkpoint) + WRITER_LANES * sizeof(uint64_t);
    struct gm_checkpoint *checkpoint = writer_extent(writer, GM_EXTENT_CHECKPOINT, 0, used);
    *checkpoint = (struct gm_checkpoint){.time = writer->carried_until,
                                         .blocks = writer->carried_count ? 1 : 0,
                                         .lanes = WRITER_LANES,
                                         .carried = writer->carried_count,
                                         .before = {.events = 100, .allocs = 50}};
    memcpy(checkpoint + 1, writer->folded, sizeof(writer->folded));
    if (writer->carried_count)
        writer_packed(writer, GM_EXTENT_CARRIED, 0, 0, writer->carried_count, writer->carried,
                      writer->carried_lanes);
}

/* Turns the extents from `from` on into the area of a flight trace that has wrapped three times. */
static inline void writer_area(struct writer *writer, size_t from)
{
    struct gm_extent *extent = (struct gm_extent *)(writer->bytes + from);
    struct gm_flight *flight = (struct gm_flight *)(extent + 1);
    extent->length = writer->size - from;
    flight->capacity = extent->length - GM_TRACE_PAGE;
    flight->start = 3 * flight->capacity;
    flight->end = 4 * flight->capacity;
    flight->touched = flight->capacity;
    extent->used = sizeof(flight->capacity);
}

static inline void writer_ring(struct writer *writer, uint32_t number)
{
    const struct writer_lane *lane = &writer->lanes[number];
    uint64_t tail = lane->packed - lane->overlap, capacity = 64;
    while (capacity < lane->count - tail)
        capacity *= 2;
    struct gm_lane *ring =
        writer_extent(writer, GM_EXTENT_LANE, number,
                      sizeof(struct gm_lane) + capacity * sizeof(struct gm_record));
    struct gm_record *records = (struct gm_record *)(ring + 1);
    ((struct gm_extent *)ring - 1)->used = GM_LANE_CONSTANT;
    ring->capacity = capacity;
    ring->head = lane->count;
    ring->tail = tail;
    for (uint64_t n = tail; n < lane->count; n++)
        records[n & (capacity - 1)] = lane->records[n];
}

static inline void writer_blocks(struct writer *writer, uint32_t number)
{
    const struct writer_lane *lane = &writer->lanes[number];
    for (uint64_t at = 0; at < lane->packed; at += writer->block_records) {
        uint64_t left = lane->packed - at;
        writer_block(writer, number, at,
                     (uint32_t)(left < writer->block_records ? left : writer->block_records));
    }
}

/* These are shorter than the recorder's tables, which have room to grow. */
static inline void writer_table(struct writer *writer, enum gm_extent_type type, const void *bytes,
                                size_t size)
{
    struct gm_extent *extent = (struct gm_extent *)writer_extent(writer, type, 0, size) - 1;
    extent->used = 0; /* the bytes after it may change */
    memcpy(extent + 1, bytes, size);
}

static inline void writer_finish(struct writer *writer)
{
    writer->size = 0;
    writer_room(writer, GM_TRACE_PAGE);
    memcpy(writer_extent(writer, GM_EXTENT_NAMES, 0, writer->names_size), writer->names,
           writer->names_size);
    for (uint32_t lane = 0; lane < WRITER_LANES; lane++)
        if (writer->lanes[lane].count)
            writer_ring(writer, lane);
    size_t area = writer->size;
    if (writer->flight) {
        writer_extent(writer, GM_EXTENT_FLIGHT, 0, GM_TRACE_PAGE - sizeof(struct gm_extent));
        writer_checkpoint(writer);
        writer->header.flags |= GM_HEADER_FLIGHT;
    }
    for (uint32_t lane = 0; lane < WRITER_LANES; lane++)
        writer_blocks(writer, lane);
    if (writer->flight)
        writer_area(writer, area);
    writer_table(writer, GM_EXTENT_NODES, writer->nodes,
                 writer->header.node_count * sizeof(struct gm_node));
    writer_table(writer, GM_EXTENT_MODULES, writer->modules,
                 writer->header.module_count * sizeof(struct gm_module));
    writer_table(writer, GM_EXTENT_FRAMES, writer->frames,
                 writer->header.frame_count * sizeof(struct gm_script_frame));
    writer_table(writer, GM_EXTENT_STRINGS, writer->strings, writer->header.string_bytes);
    writer->header.file_end = writer->size;
    writer->header.end_time = writer->clock + 1000;
    memcpy(writer->bytes, &writer->header, sizeof(writer->header));
    mend_trace(writer->bytes, writer->size);
}

/* To be called after a change of the finished trace that its checksums must not reveal. */
static inline void writer_mend(struct writer *writer)
{
    mend_trace(writer->bytes, writer->size);
}

#endif
