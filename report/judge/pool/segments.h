/* Segments of PyTorch's caching allocator at one moment: what it took from CUDA, how much of that
 * is free, in which holes, and which blocks keep the rest from going back.
 *
 * A segment is an allocation of kind `device`, or a run of mappings end to end (expandable
 * segments), that PyTorch's allocator made or that holds blocks of it. A hole is free space between
 * blocks of one segment; blocks cannot span two. What the allocator cannot use just then, because
 * another stream owns it or still waits for it, or a graph does, is not told from what it can.
 */
#ifndef GPUMEM_REPORT_POOL_SEGMENTS_H
#define GPUMEM_REPORT_POOL_SEGMENTS_H

#include "base/facts.h"
#include "judge/pool/block_order.h"
#include "replay/rules/replay.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gm_libraries;

#define GM_SEGMENTS_KEPT 16 /* of one moment, sorts of them, those with most free */

struct gm_segments {
    struct gm_segment_sums sums[GM_SEGMENT_POOLS];
    struct gm_segment kept[GM_SEGMENTS_KEPT]; /* of those with blocks and free space; most first */
    size_t kept_count;
};

/* The segments of a device, with these blocks in them. */
struct gm_segments gm_segments_find(const struct gm_replay *replay,
                                    const struct gm_block_order *order,
                                    struct gm_libraries *libraries, int device);

#endif
