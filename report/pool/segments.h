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

#include "pool/block_order.h"
#include "replay/replay.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gm_libraries;

/* PyTorch keeps blocks of at most 1 MiB apart, in segments of 2 MiB. */
#define GM_SMALL_BLOCK ((uint64_t)1 << 20)
#define GM_SMALL_SEGMENT ((uint64_t)2 << 20)

enum gm_segment_pool { GM_SEGMENTS_SMALL, GM_SEGMENTS_LARGE, GM_SEGMENT_POOLS };

enum {
    GM_SEGMENTS_KEPT = 16, /* of one moment, sorts of them, those with most free */
    GM_SEGMENT_PINS = 2    /* the largest blocks in one */
};

struct gm_segment {
    uint64_t address;
    uint64_t size;
    uint64_t free;
    uint64_t largest_hole;
    uint64_t
        returnable; /* bytes that empty_cache() would give back: whole pieces without a block */
    uint64_t blocks;
    uint64_t count; /* segments like this one: equal sizes, blocks of the same stacks */
    bool expandable;
    enum gm_segment_pool pool;
    struct gm_pool_block pins[GM_SEGMENT_PINS]; /* its largest blocks; not alive: no more */
};

struct gm_segment_sums {
    uint64_t count;
    uint64_t size;
    uint64_t free;
    uint64_t largest_hole;
    uint64_t empty;      /* segments without a block */
    uint64_t returnable; /* bytes */
    uint64_t blocks;
};

struct gm_segments {
    struct gm_segment_sums sums[GM_SEGMENT_POOLS];
    struct gm_segment kept[GM_SEGMENTS_KEPT]; /* of those with blocks and free space; most first */
    size_t kept_count;
};

/* The segments of a device, with these blocks in them. */
struct gm_segments gm_segments_find(const struct gm_replay *replay,
                                    const struct gm_block_order *order,
                                    struct gm_libraries *libraries, int device);

/* Both pools together. */
struct gm_segment_sums gm_segments_all(const struct gm_segments *segments);

#endif
