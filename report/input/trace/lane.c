/* See lane.h. */
#include "input/trace/lane.h"

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
        if (!place->bad && gm_block_begin(&reader->columns, block, context)) {
            gm_trace_let_go(reader->trace, block->stored_size);
            return true;
        }
        call_damaged(reader, place);
    }
    gm_block_end(&reader->columns); /* none is behind: its memory is for other lanes */
    return false;
}

/* Decodes on until there is something new. Returns how many records, 0 if no block is left. */
static size_t next_of_blocks(struct gm_lane_reader *reader, ZSTD_DCtx *context,
                             const struct gm_record **records)
{
    for (;;) {
        if (reader->block_next == reader->block_end && !next_block(reader, context))
            return 0;
        int count = gm_block_read(&reader->columns, records, GM_TILE_RECORDS);
        if (count <= 0) {
            call_damaged(reader, &reader->source->blocks[reader->block - 1]);
            continue;
        }
        uint64_t first = reader->block_next;
        reader->block_next += (uint32_t)count;
        if (reader->block_next > reader->next) {
            *records += reader->next - first;
            return (size_t)(reader->block_next - reader->next);
        }
    }
}

/* Up to where the ring wraps around. */
static size_t next_of_ring(struct gm_lane_reader *reader, const struct gm_record **records)
{
    const struct gm_lane_source *source = reader->source;
    if (!source->ring)
        return 0;
    skip_to(reader, source->ring_first);
    if (reader->next >= source->ring_end)
        return 0;
    uint64_t slot = (reader->next - source->ring_origin) & source->ring_mask;
    uint64_t count = source->ring_end - reader->next;
    *records = &source->ring[slot];
    return (size_t)(count - 1 < source->ring_mask - slot ? count : source->ring_mask - slot + 1);
}

size_t gm_lane_next(struct gm_lane_reader *reader, ZSTD_DCtx *context,
                    const struct gm_record **records)
{
    size_t count = next_of_blocks(reader, context, records);
    if (!count)
        count = next_of_ring(reader, records);
    reader->next += count;
    return count;
}
