/* The records that a flight trace carried over, in the order in which they are to be replayed. */
#ifndef GPUMEM_REPORT_TRACE_CARRIED_H
#define GPUMEM_REPORT_TRACE_CARRIED_H

#include "input/trace/block_reader.h"
#include "input/trace/trace_file.h"

struct gm_carried_reader {
    struct gm_trace *trace;
    size_t block; /* next to open */
    struct gm_block_reader columns;
    const struct gm_record *batch;
    uint32_t lanes[GM_TILE_RECORDS];
    uint32_t at;
    uint32_t count;
};

void gm_carried_begin(struct gm_carried_reader *reader, struct gm_trace *trace);

/* The next record and its lane; NULL at the end. Valid until the next call. */
const struct gm_record *gm_carried_next(struct gm_carried_reader *reader, ZSTD_DCtx *context,
                                        uint32_t *lane);

void gm_carried_end(struct gm_carried_reader *reader);

#endif
