/*
 * See columns.h.
 *
 * The drainer has to keep up with a program that does nothing but allocate, and where all CPUs
 * record it is the program that pays. So this is made to read each record once: the columns grow
 * side by side, a tile of records at a time, which stays in the nearest cache while each column
 * that has a part in it takes that. What repeats the records of `distance` before, which is most of
 * most programs, is only compared. At the end the columns move together.
 */
#include "writer/columns.h"
#include "base/platform.h"
#include <stdbool.h>
#include <string.h>

/* Where the columns grow: as far from each other as their longest records take, and not at the same
 * place of a page each, where they would push each other out of the cache. */
static const uint8_t bytes_max[GM_COLUMNS] = {
    [GM_COLUMN_TYPE] = 1,     [GM_COLUMN_TIME] = 10, [GM_COLUMN_API] = 3,    [GM_COLUMN_STACK] = 5,
    [GM_COLUMN_ADDRESS] = 10, [GM_COLUMN_SIZE] = 10, [GM_COLUMN_AUX] = 10,   [GM_COLUMN_EXTRA] = 5,
    [GM_COLUMN_CONTEXT] = 3,  [GM_COLUMN_KIND] = 1,  [GM_COLUMN_DEVICE] = 1, [GM_COLUMN_FLAGS] = 1,
};
#define BYTES_MAX_ALL 60u
#define APART 320u /* also room for what put_varint writes too much */
#define SETS_MAX (GM_BLOCK_RECORDS_MAX / GM_TILE_RECORDS * 2)

_Static_assert(SETS_MAX + GM_BLOCK_RECORDS_MAX * BYTES_MAX_ALL + GM_COLUMNS * APART <=
                   GM_BLOCK_RAW_MAX,
               "the columns have room side by side");

/* Records [first, end) of a run and how far before each its model stands (struct gm_block). Handed
 * on by value: what is in memory would be read again after each byte that is written. */
struct tile {
    struct gm_run run;
    uint32_t first;
    uint32_t end;
    uint32_t distance;
    uint32_t near;
};

static inline const struct gm_record *model_of(const struct tile *tile, uint32_t n)
{
    static const struct gm_record nothing;
    if (gm_likely(n >= tile->distance))
        return gm_run_at(&tile->run, n - tile->distance);
    return n >= tile->near ? gm_run_at(&tile->run, n - tile->near) : &nothing;
}

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

/* What a column takes of a tile, when any record there differs from its model in the field. */
#define COLUMN(name, put)                                                                          \
    static unsigned char *put_##name(struct tile tile, unsigned char *to)                          \
    {                                                                                              \
        for (uint32_t n = tile.first; n < tile.end; n++) {                                         \
            const struct gm_record *record = gm_run_at(&tile.run, n);                              \
            put;                                                                                   \
        }                                                                                          \
        return to;                                                                                 \
    }
#define BYTE(name) COLUMN(name, *to++ = (unsigned char)record->name)
#define VALUE(name) COLUMN(name, to = put_varint(to, record->name))
#define DIFFERENCE(name)                                                                           \
    COLUMN(name, to = put_varint(to, zigzag((uint64_t)record->name - model_of(&tile, n)->name)))

BYTE(type)
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

/* All but the time, which find_changes puts. */
static unsigned char *(*const put[GM_COLUMNS])(struct tile tile, unsigned char *to) = {
    [GM_COLUMN_TYPE] = put_type,       [GM_COLUMN_API] = put_api,
    [GM_COLUMN_STACK] = put_stack,     [GM_COLUMN_ADDRESS] = put_address,
    [GM_COLUMN_SIZE] = put_size,       [GM_COLUMN_AUX] = put_aux,
    [GM_COLUMN_EXTRA] = put_extra,     [GM_COLUMN_KIND] = put_kind,
    [GM_COLUMN_CONTEXT] = put_context, [GM_COLUMN_DEVICE] = put_device,
    [GM_COLUMN_FLAGS] = put_flags,
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

/*
 * The bits in which any record of the tile differs from its model. On the way the column of times
 * takes its part, since each tile has one.
 */
static struct gm_record find_changes(struct tile tile, unsigned char **times)
{
    /* Each by itself: an array of them would stay in memory and be waited for. */
    words bits_0 = {0}, bits_1 = {0}, bits_2 = {0};
    unsigned char *to = *times;
    uint64_t time = gm_run_at(&tile.run, tile.first ? tile.first - 1 : 0)->time;
    for (uint32_t n = tile.first; n < tile.end; n++) {
        const struct gm_record *record = gm_run_at(&tile.run, n), *model = model_of(&tile, n);
        __builtin_prefetch(record + 24); /* they come from another CPU's cache */
        bits_0 |= load_words(record, 0) ^ load_words(model, 0);
        bits_1 |= load_words(record, 1) ^ load_words(model, 1);
        bits_2 |= load_words(record, 2) ^ load_words(model, 2);
        to = put_varint(to, record->time - time);
        time = record->time;
    }
    *times = to;
    words bits[3] = {bits_0, bits_1, bits_2};
    struct gm_record changes;
    /* cppcheck-suppress bufferAccessOutOfBounds */ /* it takes `words`, a vector, for one word */
    memcpy(&changes, bits, sizeof(changes));
    return changes;
}

static uint32_t columns_of(const struct gm_record *changes)
{
#define HAS(COLUMN, field) (uint32_t)(changes->field != 0) << GM_COLUMN_##COLUMN
    return 1u << GM_COLUMN_TIME | HAS(TYPE, type) | HAS(API, api) | HAS(STACK, stack) |
           HAS(ADDRESS, address) | HAS(SIZE, size) | HAS(AUX, aux) | HAS(EXTRA, extra) |
           HAS(CONTEXT, context) | HAS(KIND, kind) | HAS(DEVICE, device) | HAS(FLAGS, flags);
#undef HAS
}

/* ---- the distance ---------------------------------------------------------------------------- */

#define SAMPLE 64u    /* records by which a distance is judged */
#define PROMISING 16u /* so many of them must be alike, or it is not judged at all */
#define JUDGED_MAX 6u

/* But for the address: what is allocated again is the same, and need not stand in the same place.
 */
static bool is_alike(const struct gm_record *one, const struct gm_record *other)
{
    return one->size == other->size && one->stack == other->stack && one->type == other->type;
}

static bool is_promising(const struct gm_run *run, uint32_t first, uint32_t distance)
{
    for (uint32_t n = first; n < first + PROMISING; n++)
        if (!is_alike(gm_run_at(run, n), gm_run_at(run, n - distance)))
            return false;
    return true;
}

/* Columns that have a part of the sample at this distance. */
static int count_columns(const struct gm_run *run, uint32_t first, uint32_t distance)
{
    unsigned char times[SAMPLE * 10], *to = times;
    struct tile sample = {*run, first, first + SAMPLE, distance, distance};
    struct gm_record changes = find_changes(sample, &to);
    return __builtin_popcount(columns_of(&changes));
}

/*
 * How far back the records in the middle of the run have their like: the distance, of a few that
 * promise something, at which the fewest columns change. What is freed as soon as it is allocated
 * repeats itself at 2 whatever it is; the body of a loop, or a step of a training, at its length.
 */
static void find_distances(struct tile *tile)
{
    const struct gm_run *run = &tile->run;
    uint32_t middle = run->count / 2, judged = 0;
    int fewest = GM_COLUMNS + 1;
    tile->distance = tile->near = 1;
    if (middle < SAMPLE)
        return;
    uint32_t most = middle < GM_DISTANCE_MAX ? middle : GM_DISTANCE_MAX;
    for (uint32_t distance = 1; distance <= most && judged < JUDGED_MAX; distance++) {
        if (distance > 2 && !is_promising(run, middle, distance))
            continue;
        int columns = count_columns(run, middle, distance);
        judged++;
        if (columns >= fewest)
            continue;
        fewest = columns;
        tile->distance = distance;
        if (distance <= 2)
            tile->near = distance;
    }
}

void gm_columns_encode(const struct gm_run *run, unsigned char *to, struct gm_block *block)
{
    unsigned char *start[GM_COLUMNS], *at[GM_COLUMNS], *sets = to, *end = to + SETS_MAX;
    for (unsigned i = 0; i < GM_COLUMNS; i++) {
        start[i] = at[i] = end;
        end += (size_t)bytes_max[i] * GM_BLOCK_RECORDS_MAX + APART;
    }
    struct tile tile = {.run = *run};
    find_distances(&tile);
    for (; tile.first < run->count; tile.first = tile.end) {
        uint32_t left = run->count - tile.first;
        tile.end = tile.first + (left < GM_TILE_RECORDS ? left : GM_TILE_RECORDS);
        struct gm_record changes = find_changes(tile, &at[GM_COLUMN_TIME]);
        uint32_t set = columns_of(&changes);
        *sets++ = (unsigned char)set;
        *sets++ = (unsigned char)(set >> 8);
        for (uint32_t rest = set & ~(1u << GM_COLUMN_TIME); rest; rest &= rest - 1) {
            int i = __builtin_ctz(rest);
            at[i] = put[i](tile, at[i]);
        }
    }
    end = sets;
    for (unsigned i = 0; i < GM_COLUMNS; i++) {
        size_t size = (size_t)(at[i] - start[i]);
        memmove(end, start[i], size);
        block->column_size[i] = (uint32_t)size;
        end += size;
    }
    block->distance = tile.distance;
    block->near = tile.near;
    block->raw_size = (uint32_t)(end - to);
}

void gm_columns_add_lanes(const uint16_t *lanes, unsigned char *to, struct gm_block *block)
{
    unsigned char *at = to + block->raw_size;
    for (uint32_t n = 0; n < block->count; n++)
        at = put_varint(at, lanes[n]);
    block->lane_column_size = (uint32_t)(at - to) - block->raw_size;
    block->raw_size += block->lane_column_size;
}
