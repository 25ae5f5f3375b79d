/* See segments.h. */
#include "judge/pool/segments.h"
#include "judge/pool/libraries.h"
#include <string.h>

#define PYTORCH "PyTorch"

struct search {
    const struct gm_replay *replay;
    const struct gm_block_order *order;
    struct gm_libraries *libraries;
    int device;
    struct gm_segments found;
};

static bool is_pytorchs(const struct search *search, const struct gm_life *life)
{
    const char *pool = gm_libraries_of(search->libraries, life->kind, life->stack).pool;
    return pool && strcmp(pool, PYTORCH) == 0;
}

/* ---- one segment ----------------------------------------------------------------------------- */

static void add_pin(struct gm_segment *segment, const struct gm_pool_block *block)
{
    size_t at = GM_SEGMENT_PINS;
    while (at > 0 && (!segment->pins[at - 1].alive || segment->pins[at - 1].size < block->size))
        at--;
    if (at == GM_SEGMENT_PINS)
        return;
    memmove(&segment->pins[at + 1], &segment->pins[at],
            (GM_SEGMENT_PINS - 1 - at) * sizeof(segment->pins[0]));
    segment->pins[at] = *block;
}

/* Goes through the blocks of a segment whose address and size are known. */
static void measure_segment(const struct gm_block_order *order, struct gm_segment *segment)
{
    uint64_t end = gm_range_end(segment->address, segment->size), at = segment->address;
    for (size_t i = gm_block_order_at(order, segment->address);
         i < order->count && order->blocks[i].address < end; i++) {
        const struct gm_pool_block *block = &order->blocks[i];
        uint64_t block_end = gm_range_end(block->address, block->size);
        if (block->address > at) {
            uint64_t hole = block->address - at;
            segment->free += hole;
            segment->largest_hole = hole > segment->largest_hole ? hole : segment->largest_hole;
        }
        at = block_end > at ? block_end : at;
        segment->blocks++;
        add_pin(segment, block);
    }
    if (end > at) {
        segment->free += end - at;
        segment->largest_hole = end - at > segment->largest_hole ? end - at : segment->largest_hole;
    }
}

static bool is_alike(const struct gm_segment *one, const struct gm_segment *other)
{
    bool alike = one->size == other->size && one->free == other->free &&
                 one->blocks == other->blocks && one->expandable == other->expandable;
    for (size_t i = 0; i < GM_SEGMENT_PINS; i++)
        alike &=
            one->pins[i].stack == other->pins[i].stack && one->pins[i].size == other->pins[i].size;
    return alike;
}

static void keep_segment(struct gm_segments *segments, const struct gm_segment *segment)
{
    for (size_t i = 0; i < segments->kept_count; i++)
        if (is_alike(&segments->kept[i], segment)) {
            segments->kept[i].count++;
            return;
        }
    size_t at = segments->kept_count;
    while (at > 0 && segments->kept[at - 1].free < segment->free)
        at--;
    if (at == GM_SEGMENTS_KEPT)
        return;
    if (segments->kept_count < GM_SEGMENTS_KEPT)
        segments->kept_count++;
    memmove(&segments->kept[at + 1], &segments->kept[at],
            (segments->kept_count - 1 - at) * sizeof(segments->kept[0]));
    segments->kept[at] = *segment;
    segments->kept[at].count = 1;
}

static void add_pool_segment(struct gm_segments *segments, const struct gm_segment *segment)
{
    struct gm_segment_sums *sums = &segments->sums[segment->pool];
    sums->count++;
    sums->size += segment->size;
    sums->free += segment->free;
    sums->blocks += segment->blocks;
    sums->returnable += segment->returnable;
    sums->empty += segment->blocks == 0;
    if (segment->largest_hole > sums->largest_hole)
        sums->largest_hole = segment->largest_hole;
    if (segment->blocks && segment->free)
        keep_segment(segments, segment);
}

/* ---- segments of allocations ----------------------------------------------------------------- */

static void look_at_life(struct search *search, const struct gm_life *life)
{
    if (life->kind != GM_KIND_DEVICE || life->device != search->device)
        return;
    struct gm_segment segment = {.address = life->address, .size = life->size};
    measure_segment(search->order, &segment);
    if (segment.blocks == 0 && !is_pytorchs(search, life))
        return;
    segment.pool = life->size <= GM_SMALL_SEGMENT ? GM_SEGMENTS_SMALL : GM_SEGMENTS_LARGE;
    if (segment.blocks == 0)
        segment.returnable = segment.size;
    add_pool_segment(&search->found, &segment);
}

/* ---- segments of mappings -------------------------------------------------------------------- */

static const struct gm_life *mapped_life(const struct search *search, const struct gm_range *range)
{
    uint32_t life = search->replay->vmm.objects[range->value].life;
    return life == GM_NONE ? NULL : &search->replay->ledger.lives.slots[life];
}

/* Mappings that touch are one segment: PyTorch lets it grow. All pieces of it are of one size. */
static void look_at_mappings(struct search *search)
{
    const struct gm_ranges *mappings = &search->replay->vmm.mappings;
    struct gm_range range = {0};
    bool more = gm_ranges_find(mappings, 0, UINT64_MAX, &range);
    while (more) {
        struct gm_segment segment = {.address = range.start, .expandable = true};
        const struct gm_life *first = mapped_life(search, &range), *life = first;
        uint64_t end = range.start;
        segment.pool =
            first && first->size <= GM_SMALL_SEGMENT ? GM_SEGMENTS_SMALL : GM_SEGMENTS_LARGE;
        while (more && range.start == end && life && life->device == first->device &&
               life->size == first->size) {
            if (!gm_block_order_touches(search->order, range.start, range.end))
                segment.returnable += range.end - range.start;
            end = range.end;
            more = gm_ranges_find(mappings, end, UINT64_MAX, &range);
            life = more ? mapped_life(search, &range) : NULL;
        }
        if (end == segment.address) { /* nothing is known of its memory */
            more = gm_ranges_find(mappings, range.end, UINT64_MAX, &range);
            continue;
        }
        segment.size = end - segment.address;
        if (first->device != search->device)
            continue;
        measure_segment(search->order, &segment);
        if (segment.blocks || is_pytorchs(search, first))
            add_pool_segment(&search->found, &segment);
    }
}

struct gm_segments gm_segments_find(const struct gm_replay *replay,
                                    const struct gm_block_order *order,
                                    struct gm_libraries *libraries, int device)
{
    struct search search = {
        .replay = replay, .order = order, .libraries = libraries, .device = device};
    for (uint32_t i = 0; i < replay->ledger.lives.used; i++)
        look_at_life(&search, &replay->ledger.lives.slots[i]);
    look_at_mappings(&search);
    return search.found;
}
