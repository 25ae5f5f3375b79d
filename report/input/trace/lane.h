/* The records of one lane in the order of their sequence numbers: from its blocks, then from its
 * ring. */
#ifndef GPUMEM_REPORT_TRACE_LANE_H
#define GPUMEM_REPORT_TRACE_LANE_H

#include "input/trace/block_reader.h"
#include "input/trace/trace_file.h"
#include <stdbool.h>

struct gm_lane_reader {
    struct gm_trace *trace;
    struct gm_lane_source *source;
    size_t block;        /* next to open */
    uint64_t next;       /* sequence number of the next record wanted */
    uint64_t block_next; /* of the next record the open block gives */
    uint64_t block_end;  /* one past its last */
    uint64_t lost;       /* sequence numbers that nothing was found for */
    struct gm_block_reader columns;
};

void gm_lane_begin(struct gm_lane_reader *reader, struct gm_trace *trace,
                   struct gm_lane_source *source);

/* The next records: how many stand at `*records` until the next call, 0 at the end. If `lost` has
 * grown, what is missing stood before them. */
size_t gm_lane_next(struct gm_lane_reader *reader, ZSTD_DCtx *context,
                    const struct gm_record **records);

void gm_lane_end(struct gm_lane_reader *reader);

#endif
