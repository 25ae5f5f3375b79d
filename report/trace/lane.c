/* See lane.h. */
#include "trace/lane.h"

void gm_lane_begin(struct gm_lane_reader *reader, struct gm_trace *trace,
                   struct gm_lane_source *source)
{
    *reader = (struct gm_lane_reader){.trace = trace, .source = source, .next = source->first};
}

void gm_lane_end(struct gm_lane_reader *reader)
{
    gm_block_end(&reader->columns);
}

static void skip_to(struct gm_lane_reader *reader, uint64_t sequence)
{
    if (sequence > reader->next) {
        reader->lost += sequence - reader->next;
        reader->next = sequence;
    }
}

static void call_damaged(struct gm_lane_reader *reader, struct gm_block_place *place)
{
    reader->trace->damaged += !place->bad;
    place->bad = true;
    skip_to(reader, reader->block_end);
    reader->block_next = reader->block_end;
}

/* Opens the next block that holds something new. */
static bool next_block(struct gm_lane_reader *reader, ZSTD_DCtx *context)
{
    while (reader->block < reader->source->block_count) {
        struct gm_block_place *place = &reader->source->blocks[reader->block++];
        const struct gm_block *block = place->block;
        if (block->first_sequence + block->count <= reader->next)
            continue; /* seen already */
        reader->block_next = block->first_sequence;
        reader->block_end = block->first_sequence + block->count;
        skip_to(reader, block->first_sequence);
        if (!place->bad && gm_block_begin(&reader->columns, block, context))
            return true;
        call_damaged(reader, place);
    }
    gm_block_end(&reader->columns); /* none is behind: its memory is for other lanes */
    return false;
}

/* Decodes on until there is a batch with something new in it. */
static bool next_batch(struct gm_lane_reader *reader, ZSTD_DCtx *context)
{
    for (;;) {
        if (reader->block_next == reader->block_end && !next_block(reader, context))
            return false;
        int count = gm_block_read(&reader->columns, reader->batch, GM_LANE_BATCH);
        if (count <= 0) {
            call_damaged(reader, &reader->source->blocks[reader->block - 1]);
            continue;
        }
        uint64_t first = reader->block_next;
        reader->block_next += (uint32_t)count;
        reader->batch_count = (uint32_t)count;
        if (reader->block_next > reader->next) {
            reader->batch_at = (uint32_t)(reader->next - first);
            return true;
        }
    }
}

const struct gm_record *gm_lane_next(struct gm_lane_reader *reader, ZSTD_DCtx *context)
{
    if (reader->batch_at == reader->batch_count) {
        reader->batch_at = reader->batch_count = 0;
        if (!next_batch(reader, context)) {
            const struct gm_lane_source *source = reader->source;
            if (!source->ring)
                return NULL;
            skip_to(reader, source->ring_first);
            if (reader->next >= source->ring_end)
                return NULL;
            return &source->ring[(reader->next++ - source->ring_origin) & source->ring_mask];
        }
    }
    reader->next++;
    return &reader->batch[reader->batch_at++];
}
