/* Decodes one block of a trace, a batch of records at a time.
 *
 * Guarantees: a block whose checksum, compression or columns are wrong is told apart from one that
 * ends; nothing outside the block is read. Memory: the columns of one block.
 */
#ifndef GM_REPORT_BLOCK_H
#define GM_REPORT_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zstd.h>
#include <gpumem/trace.h>

struct gm_block_reader {
    unsigned char *columns; /* decompressed */
    size_t capacity;
    const unsigned char *at[GM_COLUMNS]; /* where the next batch starts; NULL: all zero */
    const unsigned char *end[GM_COLUMNS];
    uint64_t time; /* of the record before; likewise the others */
    uint64_t stack;
    uint64_t address;
    uint64_t aux;
    uint32_t left;                /* records */
    const unsigned char *lane_at; /* of carried records: the column of lanes */
    const unsigned char *lane_end;
};

/* Starts on a block whose header the trace file has checked. False if it is damaged. */
bool gm_block_begin(struct gm_block_reader *reader, const struct gm_block *block,
                    ZSTD_DCtx *context);

/* Decodes up to `max` records to `records`. Returns how many; 0 at the end of the block, -1 if the
 * block turns out to be damaged here. */
int gm_block_read(struct gm_block_reader *reader, struct gm_record *records, uint32_t max);

/* The lanes of the `count` records just read, of a block of carried records. False if the block
 * turns out to be damaged here. */
bool gm_block_read_lanes(struct gm_block_reader *reader, uint32_t *lanes, uint32_t count);

void gm_block_end(struct gm_block_reader *reader);

#endif
