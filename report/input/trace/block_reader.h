/* Decodes one block of a trace, a batch of records at a time.
 *
 * Guarantees: a block whose checksum, compression or columns are wrong is told apart from one that
 * ends; nothing outside the block counts. Memory: the columns of one block, and a quarter more
 * records than its distance.
 */
#ifndef GPUMEM_REPORT_TRACE_BLOCK_READER_H
#define GPUMEM_REPORT_TRACE_BLOCK_READER_H

#include <gpumem/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zstd.h>

struct gm_block_reader {
    unsigned char *columns; /* decompressed, and zeros behind them: see SLACK */
    size_t capacity;
    struct gm_record *window; /* the latest records, as models of the next */
    size_t window_capacity;
    size_t window_count; /* records in it, the zeros before the block's first ones among them */
    uint32_t distance;
    uint32_t near;
    uint32_t next;                       /* of the block's records, the next to be decoded */
    uint32_t left;                       /* records */
    uint64_t time;                       /* of the record before */
    const unsigned char *sets;           /* two bytes for each tile */
    const unsigned char *at[GM_COLUMNS]; /* where the next batch starts */
    const unsigned char *end[GM_COLUMNS];
    const unsigned char *lane_at; /* of carried records: the column of lanes */
    const unsigned char *lane_end;
};

/* Starts on a block whose header the trace file has checked. False if it is damaged. */
bool gm_block_begin(struct gm_block_reader *reader, const struct gm_block *block,
                    ZSTD_DCtx *context);

/* Decodes the next records, up to `max`, of one tile. Returns how many stand at `*records` until
 * the next call; 0 at the end of the block, -1 if the block turns out to be damaged here. */
int gm_block_read(struct gm_block_reader *reader, const struct gm_record **records, uint32_t max);

/* The lanes of the `count` records just read, of a block of carried records. False if the block
 * turns out to be damaged here. */
bool gm_block_read_lanes(struct gm_block_reader *reader, uint32_t *lanes, uint32_t count);

void gm_block_end(struct gm_block_reader *reader);

#endif
