/*
 * Records as the bytes of a block: columns (columns.c), compressed. No malloc: workspaces are mapped
 * once.
 */
#ifndef GPUMEM_PRELOAD_RING_BLOCK_H
#define GPUMEM_PRELOAD_RING_BLOCK_H

#include "base/lock.h"
#include "ring/lane.h"
#include "writer/columns.h"

/* Who packs the lane holds it: one thread at a time. Other lanes may share it. */
struct gm_lock *gm_pack_lock(const struct gm_thread *thread);

/* All of them: nothing is packed until they are released, and threads whose rings are full wait. */
void gm_pack_lock_all(void);
void gm_pack_release_all(void);

/*
 * Encodes and compresses records, fills in what the block says of its bytes, and returns them:
 * block->stored_size of them, valid until the next call. `lanes` is NULL, or has the lane of each
 * record. NULL if there is no memory. Caller holds the gm_pack_lock of block->lane.
 */
const unsigned char *gm_block_encode(const struct gm_run *run, const uint16_t *lanes,
                                     struct gm_block *block);

/* In a child: who packed is not there, nor are the workspaces. */
void gm_blocks_forget(void);

#endif
