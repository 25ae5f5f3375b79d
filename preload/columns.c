/*
 * See columns.h.
 *
 * The drainer has to keep up with a program that does nothing but allocate, so this is made to read
 * each record once: the columns grow side by side, a tile of records at a time, which stays in the
 * nearest cache while each column takes its part of it. What does not change within a tile (most
 * columns of most tiles) is not looked at record by record. At the end the columns move together.
 */
#include "columns.h"
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include "platform.h"

#define TILE 128u /* records: 6 KiB */

/* Where the columns grow: as far from each other as their longest records take, and not at the same
 * place of a page each, where they would push each other out of the cache. */
static const uint8_t bytes_max[GM_COLUMNS] = {
    [GM_COLUMN_TYPE] = 1,     [GM_COLUMN_TIME] = 10, [GM_COLUMN_API] = 3,    [GM_COLUMN_STACK] = 5,
    [GM_COLUMN_ADDRESS] = 10, [GM_COLUMN_SIZE] = 10, [GM_COLUMN_AUX] = 10,   [GM_COLUMN_EXTRA] = 5,
    [GM_COLUMN_CONTEXT] = 3,  [GM_COLUMN_KIND] = 1,  [GM_COLUMN_DEVICE] = 1, [GM_COLUMN_FLAGS] = 1,
};
#define BYTES_MAX_ALL 60u
#define APART 320u /* also room for what put_varint writes too much */

_Static_assert(GM_BLOCK_RECORDS_MAX *BYTES_MAX_ALL + GM_COLUMNS * APART <= GM_BLOCK_RAW_MAX,
               "the columns have room side by side");

struct tile {
    const struct gm_record *records;
    const struct gm_record *before; /* the record before the first; zeros at the block's start */
    uint32_t count;
};

/* Writes up to 8 bytes, of which those up to the returned place count. */
static inline unsigned char *put_varint(unsigned char *at, uint64_t value)
{
    if (gm_likely(value < UINT64_C(1) << 14)) {
        uint32_t upper = (uint32_t)value & 0x3f80;
        unsigned two = upper != 0;
        uint32_t word = ((uint32_t)value + upper) | two << 7;
        at[0] = (unsigned char)word;
        at[1] = (unsigned char)(word >> 8);
        return at + 1 + two;
    }
    if (gm_likely(value < UINT64_C(1) << 56)) { /* spread to 7 bits a byte, by halves */
        unsigned length = (unsigned)(63 - __builtin_clzll(value)) / 7 + 1;
        value = (value & 0x0fffffff) | (value & 0xfffffff0000000) << 4;
        value = (value & 0x3fff00003fff) | (value & 0xfffc0000fffc000) << 2;
        value = (value & 0x7f007f007f007f) | (value & 0x3f803f803f803f80) << 1;
        value |= 0x8080808080808080 & ((UINT64_C(1) << (8 * length - 8)) - 1);
        for (unsigned i = 0; i < 8; i++)
            at[i] = (unsigned char)(value >> 8 * i);
        return at + length;
    }
    while (value >= 0x80) {
        *at++ = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    *at++ = (unsigned char)value;
    return at;
}

static inline uint64_t zigzag(uint64_t difference)
{
    return (difference << 1) ^ (uint64_t)((int64_t)difference >> 63);
}

/* One column of one tile: all records, or all alike and like the one before. */
#define COLUMN(name, each, all)                                                                    \
    static unsigned char *put_##name(const struct tile *tile, unsigned char *to)                   \
    {                                                                                              \
        const struct gm_record *before = tile->before;                                             \
        const struct gm_record *record = tile->records;                                            \
        const struct gm_record *end = record + tile->count;                                        \
        for (; record < end; record++) {                                                           \
            each;                                                                                  \
            before = record;                                                                       \
        }                                                                                          \
        (void)before;                                                                              \
        return to;                                                                                 \
    }                                                                                              \
    static uint64_t same_##name(const struct gm_record *record)                                    \
    {                                                                                              \
        (void)record;                                                                              \
        return all;                                                                                \
    }
#define BYTE(name) COLUMN(name, *to++ = (unsigned char)record->name, (unsigned char)record->name)
#define VALUE(name) COLUMN(name, to = put_varint(to, record->name), record->name)
#define DIFFERENCE(name)                                                                           \
    COLUMN(name, to = put_varint(to, zigzag((uint64_t)record->name - before->name)), 0)

BYTE(type)
COLUMN(time, to = put_varint(to, record->time - before->time), 0)
VALUE(api)
DIFFERENCE(stack)
DIFFERENCE(address)
VALUE(size)
DIFFERENCE(aux)
VALUE(extra)
VALUE(context)
BYTE(kind)
BYTE(device)
BYTE(flags)

static const struct column {
    unsigned char *(*put)(const struct tile *tile, unsigned char *to);
    uint64_t (*same)(const struct gm_record *record); /* what put would put each time */
    uint8_t offset;                                   /* of the field */
    uint8_t size;
} columns[GM_COLUMNS] = {
#define FIELD(name)                                                                                \
    {                                                                                              \
        put_##name, same_##name, offsetof(struct gm_record, name),                                 \
            sizeof(((struct gm_record *)0)->name)                                                  \
    }
    [GM_COLUMN_TYPE] = FIELD(type),       [GM_COLUMN_TIME] = FIELD(time),
    [GM_COLUMN_API] = FIELD(api),         [GM_COLUMN_STACK] = FIELD(stack),
    [GM_COLUMN_ADDRESS] = FIELD(address), [GM_COLUMN_SIZE] = FIELD(size),
    [GM_COLUMN_AUX] = FIELD(aux),         [GM_COLUMN_EXTRA] = FIELD(extra),
    [GM_COLUMN_CONTEXT] = FIELD(context), [GM_COLUMN_KIND] = FIELD(kind),
    [GM_COLUMN_DEVICE] = FIELD(device),   [GM_COLUMN_FLAGS] = FIELD(flags),
};

/* A third of a record, in words that the machine compares two at a time. */
typedef uint64_t words __attribute__((vector_size(16)));

_Static_assert(sizeof(struct gm_record) == 3 * sizeof(words), "three of them make a record");

static inline words load_words(const struct gm_record *record, unsigned n)
{
    words value;
    memcpy(&value, (const char *)record + n * sizeof(words), sizeof(words));
    return value;
}

/* The bits in which any record of the tile differs from the one before it. */
static struct gm_record find_changes(const struct tile *tile)
{
    /* Each by itself: an array of them would stay in memory and be waited for. */
    words bits_0 = {0}, bits_1 = {0}, bits_2 = {0};
    words last_0 = load_words(tile->before, 0);
    words last_1 = load_words(tile->before, 1);
    words last_2 = load_words(tile->before, 2);
    const struct gm_record *end = tile->records + tile->count;
    for (const struct gm_record *record = tile->records; record < end; record++) {
        __builtin_prefetch(record + 24); /* they come from another CPU's cache */
        words now_0 = load_words(record, 0);
        words now_1 = load_words(record, 1);
        words now_2 = load_words(record, 2);
        bits_0 |= now_0 ^ last_0;
        bits_1 |= now_1 ^ last_1;
        bits_2 |= now_2 ^ last_2;
        last_0 = now_0;
        last_1 = now_1;
        last_2 = now_2;
    }
    words bits[3] = {bits_0, bits_1, bits_2};
    struct gm_record changes;
    memcpy(&changes, bits, sizeof(changes));
    return changes;
}

static bool has_changed(const struct gm_record *changes, const struct column *column)
{
    uint64_t bits = 0;
    memcpy(&bits, (const char *)changes + column->offset, column->size);
    return bits != 0;
}

/* What is a byte in the record is one in its column, too, and no varint. */
static unsigned char *repeat(const struct column *column, unsigned char *to, uint64_t value,
                             uint32_t count)
{
    if (value < 0x80 || column->size == 1) {
        memset(to, (int)value, count);
        return to + count;
    }
    for (; count > 0; count--)
        to = put_varint(to, value);
    return to;
}

static uint64_t allocated_bytes(const struct tile *tile)
{
    uint64_t sum = 0;
    for (uint32_t n = 0; n < tile->count; n++)
        sum += tile->records[n].type == GM_EVENT_ALLOC ? tile->records[n].size : 0;
    return sum;
}

/* Appends the tile to the columns. `is_zero`: nothing has changed so far since the zeros that stand
 * before the first record. */
static void put_tile(const struct tile *tile, unsigned char *at[GM_COLUMNS],
                     bool is_zero[GM_COLUMNS])
{
    struct gm_record changes = find_changes(tile);
    for (unsigned i = 0; i < GM_COLUMNS; i++) {
        const struct column *column = &columns[i];
        if (has_changed(&changes, column)) {
            at[i] = column->put(tile, at[i]);
            is_zero[i] = false;
        } else {
            at[i] = repeat(column, at[i], column->same(tile->records), tile->count);
        }
    }
}

void gm_columns_encode(const struct gm_run *run, unsigned char *to, struct gm_block *block)
{
    struct gm_record nothing = {.time = gm_run_at(run, 0)->time}; /* the first difference is 0 */
    struct tile tile = {.before = &nothing};
    unsigned char *start[GM_COLUMNS], *at[GM_COLUMNS], *end = to;
    bool is_zero[GM_COLUMNS];
    for (unsigned i = 0; i < GM_COLUMNS; i++) {
        is_zero[i] = true;
        start[i] = at[i] = end;
        end += (size_t)bytes_max[i] * GM_BLOCK_RECORDS_MAX + APART;
    }
    block->allocated_bytes = 0;
    for (uint32_t done = 0; done < run->count; done += tile.count) {
        uint64_t until_wrap = run->mask + 1 - ((run->first + done) & run->mask);
        tile.records = gm_run_at(run, done);
        tile.count = run->count - done < TILE ? run->count - done : TILE;
        if (tile.count > until_wrap)
            tile.count = (uint32_t)until_wrap;
        put_tile(&tile, at, is_zero);
        block->allocated_bytes += allocated_bytes(&tile);
        tile.before = &tile.records[tile.count - 1];
    }
    end = to;
    for (unsigned i = 0; i < GM_COLUMNS; i++) {
        size_t size = is_zero[i] ? 0 : (size_t)(at[i] - start[i]);
        memmove(end, start[i], size);
        block->column_size[i] = (uint32_t)size;
        end += size;
    }
    block->raw_size = (uint32_t)(end - to);
}
