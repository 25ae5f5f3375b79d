/* Blocks: see pack.c. */
#ifndef GPUMEM_PRELOAD_RING_PACK_H
#define GPUMEM_PRELOAD_RING_PACK_H

#include "writer/columns.h"

/*
 * Encodes and compresses records, fills in what the block says of its bytes, and returns them:
 * block->stored_size of them, valid until the next call. `lanes` is NULL, or has the lane of each
 * record. NULL if there is no memory. Caller holds the gm_pack_lock of block->lane.
 */
const unsigned char *gm_pack_records(const struct gm_run *run, const uint16_t *lanes,
                                     struct gm_block *block);

#endif
