/* See snapshot.h. */
#include "base/each.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/ranges.h"
#include "input/torch/snapshot.h"
#include <stdlib.h>

struct rewind {
    struct gm_torch_device *device;
    struct gm_map live; /* address -> place in `blocks` */
    struct gm_torch_block *blocks;
    size_t block_count, block_capacity;
    struct gm_ranges ranges; /* reserved memory; value: place in `segments` */
    struct gm_torch_segment *segments;
    size_t segment_count, segment_capacity;
};

/* ---- who gave back --------------------------------------------------------------------------- */

/* A block is given back when the program asks for it. A recording can have been told to leave those events out: then
 * it is given back when it is free again. */
static void find_frees(struct gm_torch_device *device)
{
    bool has_requests = false;
    for (size_t i = 0; i < device->event_count; i++)
        has_requests |= device->events[i].action == GM_TORCH_FREE_REQUESTED;
    for (size_t i = 0; i < device->event_count; i++) {
        struct gm_torch_event *event = &device->events[i];
        event->gives_back =
            event->action == (has_requests ? GM_TORCH_FREE_REQUESTED : GM_TORCH_FREE_COMPLETED);
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void add_rewind_block(struct rewind *rewind, const struct gm_torch_block *block)
{
    uint32_t known = gm_map_get(&rewind->live, block->address);
    if (known != GM_NONE) {
        rewind->device->contradictions++;
        rewind->blocks[known] = *block;
        return;
    }
    gm_map_set(&rewind->live, block->address, (uint32_t)rewind->block_count);
    GM_APPEND(rewind->blocks, rewind->block_capacity, rewind->block_count, *block);
}

/* Takes out the block of an allocation. */
static void remove_block(struct rewind *rewind, struct gm_torch_event *event)
{
    uint32_t known = gm_map_get(&rewind->live, event->address);
    if (known == GM_NONE) {
        rewind->device->contradictions++;
        return;
    }
    event->block_size = rewind->blocks[known].size;
    gm_map_remove(&rewind->live, event->address);
    const struct gm_torch_block *last = &rewind->blocks[--rewind->block_count];
    if (known != rewind->block_count) {
        rewind->blocks[known] = *last;
        gm_map_set(&rewind->live, last->address, known);
    }
}

/* ---- segments -------------------------------------------------------------------------------- */

static void add_range(struct rewind *rewind, uint64_t start, uint64_t end, uint32_t segment)
{
    gm_ranges_add(&rewind->ranges, (struct gm_range){start, end, segment});
}

static void add_rewind_segment(struct rewind *rewind, const struct gm_torch_segment *segment)
{
    uint64_t end = gm_range_end(segment->address, segment->size);
    struct gm_range found;
    if (gm_ranges_find(&rewind->ranges, segment->address, end, &found)) {
        rewind->device->contradictions++;
        return;
    }
    add_range(rewind, segment->address, end, (uint32_t)rewind->segment_count);
    GM_APPEND(rewind->segments, rewind->segment_capacity, rewind->segment_count, *segment);
}

/* Takes out a piece, which may be a part of one that is there. */
static void remove_segment(struct rewind *rewind, const struct gm_torch_event *event)
{
    uint64_t end = gm_range_end(event->address, event->size), covered = 0;
    struct gm_range found;
    while (gm_ranges_find(&rewind->ranges, event->address, end, &found)) {
        gm_ranges_remove(&rewind->ranges, found.start);
        if (found.start < event->address)
            add_range(rewind, found.start, event->address, found.value);
        if (found.end > end)
            add_range(rewind, end, found.end, found.value);
        covered += (found.end < end ? found.end : end) -
                   (found.start > event->address ? found.start : event->address);
    }
    rewind->device->contradictions += covered != event->size;
}

static struct gm_torch_segment segment_of(const struct gm_torch_event *event)
{
    return (struct gm_torch_segment){
        GM_SAME(event, address, size, stream, pool),
        .small = event->size == (uint64_t)2 << 20,
        .expandable = event->action == GM_TORCH_SEGMENT_UNMAP,
    };
}

/* ---- all ------------------------------------------------------------------------------------- */

static void undo_event(struct rewind *rewind, struct gm_torch_event *event)
{
    if (event->synthetic)
        return;
    if (event->action == GM_TORCH_ALLOC)
        remove_block(rewind, event);
    if (event->gives_back)
        add_rewind_block(rewind, &(struct gm_torch_block){.address = event->address,
                                                          .requested = event->size,
                                                          .stream = event->stream,
                                                          .pool = event->pool,
                                                          .allocated = true});
    struct gm_torch_segment segment = segment_of(event);
    if (event->action == GM_TORCH_SEGMENT_ALLOC || event->action == GM_TORCH_SEGMENT_MAP)
        remove_segment(rewind, event);
    if (event->action == GM_TORCH_SEGMENT_FREE || event->action == GM_TORCH_SEGMENT_UNMAP)
        add_rewind_segment(rewind, &segment);
}

GM_ORDER(by_rewound_address, struct gm_torch_block, GM_UP(address))

/* In the order of addresses, each as large as it was then. */
static void keep_segments(struct rewind *rewind)
{
    struct gm_torch_device *device = rewind->device;
    struct gm_range range = {0};
    while (gm_ranges_find(&rewind->ranges, range.end, UINT64_MAX, &range)) {
        GM_RESERVE(device->first_segments, device->first_segment_capacity,
                   device->first_segment_count + 1);
        struct gm_torch_segment *segment = &device->first_segments[device->first_segment_count++];
        *segment = rewind->segments[range.value];
        segment->address = range.start;
        segment->size = range.end - range.start;
    }
}

void gm_torch_rewind(struct gm_torch_device *device)
{
    struct rewind rewind = {.device = device};
    GM_RESERVE(rewind.segments, rewind.segment_capacity, device->segment_count + 1);
    find_frees(device);
    for (size_t i = 0; i < device->segment_count; i++)
        add_rewind_segment(&rewind, &device->segments[i]);
    for (size_t i = 0; i < device->block_count; i++)
        if (device->blocks[i].allocated)
            add_rewind_block(&rewind, &device->blocks[i]);
    for (size_t i = device->event_count; i > 0; i--)
        undo_event(&rewind, &device->events[i - 1]);
    keep_segments(&rewind);
    if (rewind.block_count)
        qsort(rewind.blocks, rewind.block_count, sizeof(*rewind.blocks), by_rewound_address);
    device->first_blocks = rewind.blocks;
    device->first_block_count = rewind.block_count;
    free(rewind.segments);
    gm_map_free(&rewind.live);
    gm_ranges_free(&rewind.ranges);
}
