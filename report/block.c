/* See block.h. */
#define XXH_INLINE_ALL /* the header alone: no library is linked for one function */
#include "block.h"
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "memory.h"

static bool unpack(struct gm_block_reader *reader, const struct gm_block *block, ZSTD_DCtx *context)
{
    const unsigned char *stored = (const unsigned char *)(block + 1);
    if (XXH3_64bits(stored, block->stored_size) != block->checksum)
        return false;
    GM_RESERVE(reader->columns, reader->capacity, block->raw_size);
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
    const unsigned char *at = reader->columns;
    for (int column = 0; column < GM_COLUMNS; column++) {
        uint32_t size = block->column_size[column];
        reader->at[column] = size ? at : NULL;
        reader->end[column] = size ? at + size : NULL;
        at += size;
    }
    reader->lane_at = at;
    reader->lane_end = at + block->lane_column_size;
    reader->time = block->first_time;
    reader->stack = reader->address = reader->aux = 0;
    reader->left = block->count;
    return true;
}

void gm_block_end(struct gm_block_reader *reader)
{
    free(reader->columns);
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

/* The column loops: one column at a time keeps each loop trivial. A column that is not stored is
 * zero: for a column of differences that is "the same as before". */

#define VARINTS(column, field, type)                                                               \
    static bool get_##field(struct gm_block_reader *reader, struct gm_record *to, uint32_t count)  \
    {                                                                                              \
        const unsigned char *at = reader->at[column], *end = reader->end[column];                  \
        for (uint32_t n = 0; at && n < count; n++) {                                               \
            uint64_t value;                                                                        \
            if (!get_varint(&at, end, &value))                                                     \
                return false;                                                                      \
            to[n].field = (type)value;                                                             \
        }                                                                                          \
        reader->at[column] = at;                                                                   \
        return true;                                                                               \
    }

#define DIFFERENCES(column, field, type, decode)                                                   \
    static bool get_##field(struct gm_block_reader *reader, struct gm_record *to, uint32_t count)  \
    {                                                                                              \
        const unsigned char *at = reader->at[column], *end = reader->end[column];                  \
        uint64_t now = reader->field;                                                              \
        for (uint32_t n = 0; n < count; n++) {                                                     \
            uint64_t value = 0;                                                                    \
            if (at && !get_varint(&at, end, &value))                                               \
                return false;                                                                      \
            now += decode(value);                                                                  \
            to[n].field = (type)now;                                                               \
        }                                                                                          \
        reader->at[column] = at;                                                                   \
        reader->field = now;                                                                       \
        return true;                                                                               \
    }

#define BYTES(column, field, type)                                                                 \
    static bool get_##field(struct gm_block_reader *reader, struct gm_record *to, uint32_t count)  \
    {                                                                                              \
        const unsigned char **at = &reader->at[column];                                            \
        if (!*at)                                                                                  \
            return true;                                                                           \
        if ((size_t)(reader->end[column] - *at) < count)                                           \
            return false;                                                                          \
        for (uint32_t n = 0; n < count; n++)                                                       \
            to[n].field = (type)(*at)[n];                                                          \
        *at += count;                                                                              \
        return true;                                                                               \
    }

BYTES(GM_COLUMN_TYPE, type, uint8_t)
DIFFERENCES(GM_COLUMN_TIME, time, uint64_t, )
VARINTS(GM_COLUMN_API, api, uint16_t)
DIFFERENCES(GM_COLUMN_STACK, stack, uint32_t, unzigzag)
DIFFERENCES(GM_COLUMN_ADDRESS, address, uint64_t, unzigzag)
VARINTS(GM_COLUMN_SIZE, size, uint64_t)
DIFFERENCES(GM_COLUMN_AUX, aux, uint64_t, unzigzag)
VARINTS(GM_COLUMN_EXTRA, extra, uint32_t)
VARINTS(GM_COLUMN_CONTEXT, context, uint16_t)
BYTES(GM_COLUMN_KIND, kind, uint8_t)
BYTES(GM_COLUMN_DEVICE, device, int8_t)
BYTES(GM_COLUMN_FLAGS, flags, uint8_t)

int gm_block_read(struct gm_block_reader *reader, struct gm_record *records, uint32_t max)
{
    uint32_t count = reader->left < max ? reader->left : max;
    if (count == 0)
        return 0;
    memset(records, 0, count * sizeof(*records));
    reader->left -= count;
    bool good = get_type(reader, records, count) && get_time(reader, records, count) &&
                get_api(reader, records, count) && get_stack(reader, records, count) &&
                get_address(reader, records, count) && get_size(reader, records, count) &&
                get_aux(reader, records, count) && get_extra(reader, records, count) &&
                get_context(reader, records, count) && get_kind(reader, records, count) &&
                get_device(reader, records, count) && get_flags(reader, records, count);
    return good ? (int)count : -1;
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
