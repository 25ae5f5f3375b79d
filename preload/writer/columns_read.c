/* See columns_read.h. A record at a time, because it is rarely asked for; the report's reader is the
 * fast one. */
#include "writer/columns_read.h"
#include <stddef.h>
#include <stdint.h>

struct cursor {
    const unsigned char *at;
    const unsigned char *end;
};

static const uint32_t byte_columns =
    1u << GM_COLUMN_TYPE | 1u << GM_COLUMN_KIND | 1u << GM_COLUMN_DEVICE | 1u << GM_COLUMN_FLAGS;

/* One byte, or one LEB128 number of at most 64 bits. */
static bool take_value(struct cursor *cursor, bool is_byte, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 64 && cursor->at < cursor->end; shift += 7) {
        unsigned char byte = *cursor->at++;
        if (is_byte) {
            *value = byte;
            return true;
        }
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = result;
            return shift < 63 || byte <= 1;
        }
    }
    return false;
}

static uint64_t unzigzag(uint64_t value)
{
    return (value >> 1) ^ (0 - (value & 1));
}

/* `record` is a copy of its model, whose value counts where the column holds differences. */
static void set_column(struct gm_record *record, unsigned column, uint64_t value, uint64_t *time)
{
    switch (column) {
    case GM_COLUMN_TYPE:
        record->type = (uint8_t)value;
        break;
    case GM_COLUMN_TIME:
        record->time = *time += value;
        break;
    case GM_COLUMN_API:
        record->api = (uint16_t)value;
        break;
    case GM_COLUMN_STACK:
        record->stack += (uint32_t)unzigzag(value);
        break;
    case GM_COLUMN_ADDRESS:
        record->address += unzigzag(value);
        break;
    case GM_COLUMN_SIZE:
        record->size = value;
        break;
    case GM_COLUMN_AUX:
        record->aux += unzigzag(value);
        break;
    case GM_COLUMN_EXTRA:
        record->extra = (uint32_t)value;
        break;
    case GM_COLUMN_CONTEXT:
        record->context = (uint16_t)value;
        break;
    case GM_COLUMN_KIND:
        record->kind = (uint8_t)value;
        break;
    case GM_COLUMN_DEVICE:
        record->device = (int8_t)value;
        break;
    default: /* GM_COLUMN_FLAGS */
        record->flags = (uint8_t)value;
    }
}

/* Where each column is; false if they are not all there. */
static bool find_columns(const struct gm_block *block, const unsigned char *columns,
                         struct cursor cursors[GM_COLUMNS])
{
    uint64_t offset = gm_block_sets_size(block->count);
    for (unsigned column = 0; column < GM_COLUMNS; column++) {
        if (offset > block->raw_size || block->column_size[column] > block->raw_size - offset)
            return false;
        cursors[column].at = columns + offset;
        offset += block->column_size[column];
        cursors[column].end = columns + offset;
    }
    return true;
}

static struct gm_record model_of(const struct gm_block *block, const struct gm_record *records,
                                 uint32_t n)
{
    if (n >= block->distance)
        return records[n - block->distance];
    return n >= block->near ? records[n - block->near] : (struct gm_record){0};
}

bool gm_columns_decode(const struct gm_block *block, const unsigned char *columns,
                       struct gm_record *records)
{
    struct cursor cursors[GM_COLUMNS];
    uint64_t time = block->first_time;
    if (block->distance == 0 || block->near == 0 || !find_columns(block, columns, cursors))
        return false;
    for (uint32_t n = 0; n < block->count; n++) {
        const unsigned char *bytes = columns + 2 * (size_t)(n / GM_TILE_RECORDS);
        uint32_t members = (bytes[0] | (uint32_t)bytes[1] << 8) & ((1u << GM_COLUMNS) - 1);
        records[n] = model_of(block, records, n);
        for (; members; members &= members - 1) {
            unsigned column = (unsigned)__builtin_ctz(members);
            uint64_t value;
            if (!take_value(&cursors[column], byte_columns >> column & 1, &value))
                return false;
            set_column(&records[n], column, value, &time);
        }
    }
    return true;
}
