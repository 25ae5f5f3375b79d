/* See facts.h. */
#include "base/facts.h"

unsigned gm_holes_fragmentation(const struct gm_holes *holes)
{
    if (holes->free == 0)
        return 0;
    return (unsigned)(1000.0 - 1000.0 * (double)holes->largest / (double)holes->free + 0.5);
}

bool gm_holes_refuse(const struct gm_holes *holes, uint64_t bytes)
{
    return bytes && holes->free >= bytes && holes->largest < bytes;
}

struct gm_segment_sums gm_segments_all(const struct gm_segment_sums sums[GM_SEGMENT_POOLS])
{
    const struct gm_segment_sums *small = &sums[GM_SEGMENTS_SMALL];
    const struct gm_segment_sums *large = &sums[GM_SEGMENTS_LARGE];
    return (struct gm_segment_sums){
        .count = small->count + large->count,
        .size = small->size + large->size,
        .free = small->free + large->free,
        .largest_hole =
            small->largest_hole > large->largest_hole ? small->largest_hole : large->largest_hole,
        .empty = small->empty + large->empty,
        .returnable = small->returnable + large->returnable,
        .blocks = small->blocks + large->blocks,
    };
}
