/* See block_reader.h. */
#include "trace/block_reader.h"
#include "base/limit.h"
#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

/* The buffer of columns is as large as the block needs: of many lanes each has one. */
static bool have_room(struct gm_block_reader *reader, size_t size)
{
    if (size <= reader->capacity)
        return true;
    if (!gm_limits_take_columns(size - reader->capacity))
        return false;
    reader->columns = gm_resize(reader->columns, size, 1);
    reader->capacity = size;
    return true;
}

static bool unpack(struct gm_block_reader *reader, const struct gm_block *block, ZSTD_DCtx *context)
{
    const unsigned char *stored = (const unsigned char *)(block + 1);
    if (!have_room(reader, block->raw_size))
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
    GM_RESERVE(reader->models, reader->models_capacity, block->distance);
    return true;
}

void gm_block_end(struct gm_block_reader *reader)
{
    gm_limits_return_columns(reader->capacity);
    free(reader->columns);
    free(reader->models);
    *reader = (struct gm_block_reader){0};
}

/* One LEB128 number. False if it does not end before `end` or exceeds 64 bits. */
static inline bool get_varint(const unsigned char **at, const unsigned char *end, uint64_t *value)
{
    if (*at < end && **at < 0x80) {
        *value = *(*at)++;
        return true;
    }
    uint64_t result = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        unsigned char byte = *(*at)++;
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = result;
            return shift < 63 || byte <= 1;
        }
    }
    return false;
}

static inline uint64_t unzigzag(uint64_t value)
{
    return (value >> 1) ^ (0 - (value & 1));
}

/* ---- one batch of records, all of one tile --------------------------------------------------- */

struct batch {
    struct gm_record *records; /* each like its model in the columns the tile has no part in */
    uint32_t count;
    uint32_t set;
    const struct gm_record *models[GM_TILE_RECORDS];
};

/* Makes each record a copy of its model. Where that stands in the batch itself, only what does not
 * change in the tile counts yet. */
static void copy_models(const struct gm_block_reader *reader, struct batch *batch)
{
    static const struct gm_record nothing;
    uint32_t slot = reader->next % reader->distance; /* of the batch's record n: slot + n */
    for (uint32_t n = 0; n < batch->count; n++) {
        uint32_t back = reader->next + n >= reader->distance ? reader->distance : reader->near;
        if (reader->next + n < back) {
            batch->models[n] = &nothing;
        } else if (n >= back) {
            batch->models[n] = &batch->records[n - back];
        } else {
            uint32_t from = slot + n + reader->distance - back;
            while (from >= reader->distance)
                from -= reader->distance;
            batch->models[n] = &reader->models[from];
        }
        batch->records[n] = *batch->models[n];
    }
}

static void keep_models(struct gm_block_reader *reader, const struct gm_record *records,
                        uint32_t count)
{
    uint32_t n = count > reader->distance ? count - reader->distance : 0;
    uint32_t to = (reader->next + n) % reader->distance;
    for (; n < count; n++) {
        reader->models[to] = records[n];
        to = to + 1 == reader->distance ? 0 : to + 1;
    }
}

/* The column loops: one column at a time keeps each loop trivial. */

#define COLUMN(column, field, get, decoded)                                                        \
    static bool get_##field(struct gm_block_reader *reader, const struct batch *batch)             \
    {                                                                                              \
        const unsigned char *at = reader->at[column], *end = reader->end[column];                  \
        if (!(batch->set >> (column) & 1))                                                           \
            return true;                                                                           \
        for (uint32_t n = 0; n < batch->count; n++) {                                              \
            struct gm_record *record = &batch->records[n];                                         \
            uint64_t value;                                                                        \
            if (!get(&at, end, &value))                                                            \
                return false;                                                                      \
            record->field = (__typeof__(record->field))(decoded);                                  \
        }                                                                                          \
        reader->at[column] = at;                                                                   \
        return true;                                                                               \
    }

static inline bool get_byte(const unsigned char **at, const unsigned char *end, uint64_t *value)
{
    if (*at == end)
        return false;
    *value = *(*at)++;
    return true;
}

#define BYTES(column, field) COLUMN(column, field, get_byte, value)
#define VARINTS(column, field) COLUMN(column, field, get_varint, value)
#define TIMES(column, field) COLUMN(column, field, get_varint, reader->time += value)
#define DIFFERENCES(column, field)                                                                 \
    COLUMN(column, field, get_varint, unzigzag(value) + batch->models[n]->field)

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

int gm_block_read(struct gm_block_reader *reader, struct gm_record *records, uint32_t max)
{
    uint32_t tile = reader->next / GM_TILE_RECORDS;
    uint32_t left_of_tile = GM_TILE_RECORDS - reader->next % GM_TILE_RECORDS;
    uint32_t count = reader->left < left_of_tile ? reader->left : left_of_tile;
    if (count > max)
        count = max;
    if (count == 0)
        return 0;
    const unsigned char *set = reader->sets + 2 * (size_t)tile;
    struct batch batch;
    batch.records = records;
    batch.count = count;
    batch.set = set[0] | (uint32_t)set[1] << 8;
    if (!(batch.set >> GM_COLUMN_TIME & 1))
        return -1;
    copy_models(reader, &batch);
    if (!(get_type(reader, &batch) && get_time(reader, &batch) && get_api(reader, &batch) &&
          get_stack(reader, &batch) && get_address(reader, &batch) && get_size(reader, &batch) &&
          get_aux(reader, &batch) && get_extra(reader, &batch) && get_context(reader, &batch) &&
          get_kind(reader, &batch) && get_device(reader, &batch) && get_flags(reader, &batch)))
        return -1;
    keep_models(reader, records, count);
    reader->next += count;
    reader->left -= count;
    return (int)count;
}

bool gm_block_read_lanes(struct gm_block_reader *reader, uint32_t *lanes, uint32_t count)
{
    for (uint32_t n = 0; n < count; n++) {
        uint64_t lane;
        if (!get_varint(&reader->lane_at, reader->lane_end, &lane) || lane >= GM_LANES_MAX)
            return false;
        lanes[n] = (uint32_t)lane;
    }
    return true;
}
