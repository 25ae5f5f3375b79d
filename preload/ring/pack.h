/*
 * Packs a lane's records into a block, and hands it to the sink.
 *
 * Guarantees: what the sink took is part of the trace before the lane's tail moves, so a record
 * stands in the ring, in a block, or (killed in between) in both. Only committed records are packed,
 * and the owner cannot overwrite them meanwhile, because tail has not passed them. Blocks of a lane
 * follow each other without gap or overlap, but for records the sink would not take: those are
 * counted and the gap tells how many. One packer at a time of a lane (gm_pack_lock): the drainer, or
 * the thread whose ring it is.
 */
#ifndef GPUMEM_PRELOAD_RING_PACK_H
#define GPUMEM_PRELOAD_RING_PACK_H

#include "ring/block.h"

/*
 * Packs records from the lane's tail on into a block of the trace: all that are committed, or as
 * many as a block takes. Caller holds the lane's gm_pack_lock. Records that cannot be written (disk
 * full) are counted and given up: the host never waits for a disk.
 */
void gm_pack(struct gm_thread *thread);

#endif
