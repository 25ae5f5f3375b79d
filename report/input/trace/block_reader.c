/* See block_reader.h. */
#include "input/trace/block_reader.h"
#include "base/limit.h"
#include "base/memory.h"
#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that may be read behind the columns before their end is checked: by one batch of the
 * longest numbers, and by looking at 8 bytes at a time. */
#define VARINT_MAX 10u
#define SLACK (GM_TILE_RECORDS * VARINT_MAX + 8)

/* The buffer of columns is as large as the block needs: of many lanes each has one. */
static bool have_room(struct gm_block_reader *reader, size_t size)
{
    if (size <= reader->capacity)
        return true;
    if (!gm_limits_take_columns(size - reader->capacity))
        return false;
    reader->columns = gm_resize(reader->columns, size + SLACK, 1);
    memset(reader->columns + size, 0, SLACK);
    reader->capacity = size;
    return true;
}

static bool unpack(struct gm_block_reader *reader, const struct gm_block *block, ZSTD_DCtx *context)
{
    const unsigned char *stored = (const unsigned char *)(block + 1);
    if (!gm_limits_spend(block->raw_size / GM_BYTES_UNPACKED_A_STEP) ||
        !have_room(reader, block->raw_size))
        return false;
    if (block->codec == GM_CODEC_ZSTD)
        return ZSTD_decompressDCtx(context, reader->columns, block->raw_size, stored,
                                   block->stored_size) == block->raw_size;
    if (block->stored_size != block->raw_size)
        return false;
    if (block->raw_size)
        memcpy(reader->columns, stored, block->raw_size);
    return true;
}

bool gm_block_begin(struct gm_block_reader *reader, const struct gm_block *block,
                    ZSTD_DCtx *context)
{
    if (!unpack(reader, block, context))
        return false;
    const unsigned char *at = reader->columns + gm_block_sets_size(block->count);
    for (int column = 0; column < GM_COLUMNS; column++) {
        reader->at[column] = at;
        at += block->column_size[column];
        reader->end[column] = at;
    }
    reader->lane_at = at;
    reader->lane_end = at + block->lane_column_size;
    reader->sets = reader->columns;
    reader->time = block->first_time;
    reader->distance = block->distance;
    reader->near = block->near;
    reader->next = 0;
    reader->left = block->count;
    /* Models that the block does not reach back to are zeros. */
    uint32_t wanted = block->distance + block->distance / 4 + 2 * GM_TILE_RECORDS;
    uint32_t all = block->near + block->count;
    GM_RESERVE(reader->window, reader->window_capacity, wanted < all ? wanted : all);
    memset(reader->window, 0, block->near * sizeof(*reader->window));
    reader->window_count = block->near;
    return true;
}

void gm_block_end(struct gm_block_reader *reader)
{
    gm_limits_return_columns(reader->capacity);
    free(reader->columns);
    free(reader->window);
    *reader = (struct gm_block_reader){0};
}

/* One LEB128 number. False if it exceeds 64 bits. */
static bool get_long_varint(const unsigned char **at, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        unsigned char byte = *(*at)++;
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = result;
            return shift < 63 || byte <= 1;
        }
    }
    return false;
}

/* Most take one byte, and most others, such as times, two; how many the rest take is hard to foretell, so
 * that they are read without a branch for each. */
static inline bool get_varint(const unsigned char **at, uint64_t *value)
{
    uint64_t word;
    if (**at < 0x80) {
        *value = *(*at)++;
        return true;
    }
    if ((*at)[1] < 0x80) {
        *value = ((*at)[0] & 0x7f) | (uint64_t)(*at)[1] << 7;
        *at += 2;
        return true;
    }
    memcpy(&word, *at, sizeof(word));
    word = le64toh(word);
    uint64_t ends = ~word & 0x8080808080808080;
    if (__builtin_expect(ends == 0, 0))
        return get_long_varint(at, value);
    *at += (unsigned)__builtin_ctzll(ends) / 8 + 1;
    word &= ends ^ (ends - 1); /* up to the first byte that ends a number */
    word = (word & 0x007f007f007f007f) | (word & 0x7f007f007f007f00) >> 1;
    word = (word & 0x00003fff00003fff) | (word & 0x3fff00003fff0000) >> 2;
    *value = (word & 0x000000000fffffff) | (word & 0x0fffffff00000000) >> 4;
    return true;
}

static inline uint64_t unzigzag(uint64_t value)
{
    return (value >> 1) ^ (0 - (value & 1));
}

/* ---- one batch of records, all of one tile --------------------------------------------------- */

/* Records [0, count) are decoded; the model of each stands `back` before it. */
struct batch {
    struct gm_record *records;
    uint32_t count;
    uint32_t back;
};

/* Makes each record a copy of its model. Where that stands in the batch itself, only what does not
 * change in the tile counts yet. */
static void copy_models(const struct batch *batch)
{
    for (uint32_t n = 0; n < batch->count; n++)
        batch->records[n] = batch->records[(ptrdiff_t)n - batch->back];
}

/* The column loops: one column at a time keeps each loop trivial. They may pass the end of the
 * column, and find out behind. */

#define COLUMN(column, field, get, decoded)                                                        \
    static bool get_##field(struct gm_block_reader *reader, struct batch batch)                    \
    {                                                                                              \
        const unsigned char *at = reader->at[column];                                              \
        for (uint32_t n = 0; n < batch.count; n++) {                                               \
            struct gm_record *record = &batch.records[n];                                          \
            uint64_t value;                                                                        \
            if (!get(&at, &value))                                                                 \
                return false;                                                                      \
            record->field = (__typeof__(record->field))(decoded);                                  \
        }                                                                                          \
        reader->at[column] = at;                                                                   \
        return at <= reader->end[column];                                                          \
    }

static inline bool get_byte(const unsigned char **at, uint64_t *value)
{
    *value = *(*at)++;
    return true;
}

#define BYTES(column, field) COLUMN(column, field, get_byte, value)
#define VARINTS(column, field) COLUMN(column, field, get_varint, value)
#define TIMES(column, field) COLUMN(column, field, get_varint, reader->time += value)
#define DIFFERENCES(column, field)                                                                 \
    COLUMN(column, field, get_varint, unzigzag(value) + record[-(ptrdiff_t)batch.back].field)

BYTES(GM_COLUMN_TYPE, type)
TIMES(GM_COLUMN_TIME, time)
VARINTS(GM_COLUMN_API, api)
DIFFERENCES(GM_COLUMN_STACK, stack)
DIFFERENCES(GM_COLUMN_ADDRESS, address)
VARINTS(GM_COLUMN_SIZE, size)
DIFFERENCES(GM_COLUMN_AUX, aux)
VARINTS(GM_COLUMN_EXTRA, extra)
VARINTS(GM_COLUMN_CONTEXT, context)
BYTES(GM_COLUMN_KIND, kind)
BYTES(GM_COLUMN_DEVICE, device)
BYTES(GM_COLUMN_FLAGS, flags)

static bool (*const columns[GM_COLUMNS])(struct gm_block_reader *reader, struct batch batch) = {
    [GM_COLUMN_TYPE] = get_type,       [GM_COLUMN_TIME] = get_time,
    [GM_COLUMN_API] = get_api,         [GM_COLUMN_STACK] = get_stack,
    [GM_COLUMN_ADDRESS] = get_address, [GM_COLUMN_SIZE] = get_size,
    [GM_COLUMN_AUX] = get_aux,         [GM_COLUMN_EXTRA] = get_extra,
    [GM_COLUMN_CONTEXT] = get_context, [GM_COLUMN_KIND] = get_kind,
    [GM_COLUMN_DEVICE] = get_device,   [GM_COLUMN_FLAGS] = get_flags,
};

static bool read_batch(struct gm_block_reader *reader, struct batch batch, uint32_t set)
{
    copy_models(&batch);
    for (; set; set &= set - 1)
        if (!columns[__builtin_ctz(set)](reader, batch))
            return false;
    return true;
}

/* Where the next records go: behind those that are their models. */
static struct gm_record *make_room_for_records(struct gm_block_reader *reader, uint32_t count)
{
    if (reader->window_count + count > reader->window_capacity) {
        memmove(reader->window, reader->window + reader->window_count - reader->distance,
                reader->distance * sizeof(*reader->window));
        reader->window_count = reader->distance;
    }
    return reader->window + reader->window_count;
}

int gm_block_read(struct gm_block_reader *reader, const struct gm_record **records, uint32_t max)
{
    uint32_t tile = reader->next / GM_TILE_RECORDS;
    uint32_t count = GM_TILE_RECORDS - reader->next % GM_TILE_RECORDS;
    if (count > reader->left)
        count = reader->left;
    if (count > max)
        count = max;
    if (count == 0)
        return 0;
    const unsigned char *bytes = reader->sets + 2 * (size_t)tile;
    uint32_t set = (bytes[0] | (uint32_t)bytes[1] << 8) & ((1u << GM_COLUMNS) - 1);
    if (!(set >> GM_COLUMN_TIME & 1))
        return -1;
    struct gm_record *first = make_room_for_records(reader, count);
    uint32_t near = 0; /* how many have their model near by */
    if (reader->next < reader->distance)
        near = reader->distance - reader->next < count ? reader->distance - reader->next : count;
    if (near && !read_batch(reader, (struct batch){first, near, reader->near}, set))
        return -1;
    if (near < count &&
        !read_batch(reader, (struct batch){first + near, count - near, reader->distance}, set))
        return -1;
    reader->window_count += count;
    reader->next += count;
    reader->left -= count;
    *records = first;
    return (int)count;
}

bool gm_block_read_lanes(struct gm_block_reader *reader, uint32_t *lanes, uint32_t count)
{
    for (uint32_t n = 0; n < count; n++) {
        uint64_t lane;
        if (!get_varint(&reader->lane_at, &lane) || reader->lane_at > reader->lane_end ||
            lane >= GM_LANES_MAX)
            return false;
        lanes[n] = (uint32_t)lane;
    }
    return true;
}
