/*
 * The blocks of this process's own trace, read back (live.c). What does not have its checksum, or
 * is not what it says, counts as lost. One thread at a time.
 */
#ifndef GPUMEM_PRELOAD_LIVE_STORED_H
#define GPUMEM_PRELOAD_LIVE_STORED_H

#include <gpumem/trace.h>
#include <stdbool.h>

/* Where a block of a lane is. */
struct gm_stored {
    uint64_t offset; /* of its extent */
    uint64_t first;  /* sequence number */
    uint32_t count;  /* records */
    uint32_t next;   /* of the lane; 0: none */
};

/* Notes the blocks up to `end`, which header.file_end had. False: not all could be noted. */
bool gm_stored_find(uint64_t end);

/* The next block of the lane; NULL if no more is noted. Valid until the next call here. */
const struct gm_stored *gm_stored_next(uint32_t lane);
void gm_stored_pass(uint32_t lane);

/* Reads the lane's next block: its `count` records. */
bool gm_stored_read(uint32_t lane, struct gm_record *records);

/* Gives the memory back that reading took. What is noted stays. */
void gm_stored_rest(void);

void gm_stored_forget(void);

#endif
