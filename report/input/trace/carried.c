/* See carried.h. */
#include "input/trace/carried.h"

void gm_carried_begin(struct gm_carried_reader *reader, struct gm_trace *trace)
{
    *reader = (struct gm_carried_reader){.trace = trace};
}

void gm_carried_end(struct gm_carried_reader *reader)
{
    gm_block_end(&reader->columns);
}

static void call_damaged(struct gm_carried_reader *reader, struct gm_block_place *place)
{
    reader->trace->damaged += !place->bad;
    place->bad = true;
    reader->columns.left = 0;
}

/* Decodes on until there is something. */
static bool next_batch(struct gm_carried_reader *reader, ZSTD_DCtx *context)
{
    for (;;) {
        struct gm_block_place *place;
        while (reader->columns.left == 0) {
            if (reader->block == reader->trace->carried_count)
                return false;
            place = &reader->trace->carried[reader->block++];
            if (place->bad || !gm_block_begin(&reader->columns, place->block, context))
                call_damaged(reader, place);
        }
        place = &reader->trace->carried[reader->block - 1];
        int count = gm_block_read(&reader->columns, &reader->batch, GM_TILE_RECORDS);
        if (count > 0 && gm_block_read_lanes(&reader->columns, reader->lanes, (uint32_t)count)) {
            reader->count = (uint32_t)count;
            reader->at = 0;
            return true;
        }
        call_damaged(reader, place);
    }
}

const struct gm_record *gm_carried_next(struct gm_carried_reader *reader, ZSTD_DCtx *context,
                                        uint32_t *lane)
{
    if (reader->at == reader->count && !next_batch(reader, context))
        return NULL;
    *lane = reader->lanes[reader->at];
    return &reader->batch[reader->at++];
}
