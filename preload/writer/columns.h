/*
 * Records as the columns of a block (include/gpumem/trace.h, enum gm_column): one column after the
 * other, mostly of differences, which zstd then finds easy.
 */
#ifndef GPUMEM_PRELOAD_WRITER_COLUMNS_H
#define GPUMEM_PRELOAD_WRITER_COLUMNS_H

#include <gpumem/trace.h>
#include <stdint.h>

/* Records [first, first + count) of a ring: record n stands at n & mask. */
struct gm_run {
    const struct gm_record *ring;
    uint64_t mask;
    uint64_t first;
    uint32_t count; /* 1..GM_BLOCK_RECORDS_MAX */
};

static inline const struct gm_record *gm_run_at(const struct gm_run *run, uint32_t n)
{
    return &run->ring[(run->first + n) & run->mask];
}

/*
 * Writes the columns to `to`, GM_BLOCK_RAW_MAX bytes of which all may be changed, and their sizes
 * and what else follows from the records to the block.
 */
void gm_columns_encode(const struct gm_run *run, unsigned char *to, struct gm_block *block);

/*
 * One more column behind those at `to`: the lane of each record of the block, for records that a
 * flight recorder carries over. May write up to 8 bytes behind its end.
 */
void gm_columns_add_lanes(const uint16_t *lanes, unsigned char *to, struct gm_block *block);

#endif
