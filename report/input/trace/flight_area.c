/* See flight_area.h. */
#include "input/trace/flight_area.h"
#include "base/each.h"
#include "base/memory.h"
#include <gpumem/checksum.h>
#include <string.h>

/* Where position p stands, and what is known of the walk. */
struct walk {
    struct gm_trace *trace;
    const unsigned char *area;
    size_t present; /* bytes of the area that are in the file */
    uint64_t capacity;
    uint64_t start;
    uint64_t end;
    uint32_t wanted; /* CARRIED extents of the checkpoint that must come next */
};

/* ---- the area -------------------------------------------------------------------------------- */

static bool is_sound(const struct walk *walk)
{
    return walk->capacity != 0 && walk->capacity % GM_EXTENT_ALIGN == 0 &&
           walk->start % GM_EXTENT_ALIGN == 0 && walk->end % GM_EXTENT_ALIGN == 0 &&
           walk->start <= walk->end && walk->end - walk->start <= walk->capacity;
}

/* The area as of one moment. What the writer overwrote while it was copied lies before the start
 * that it has moved by then. False if it overtook us entirely. */
static bool copy_area(struct walk *walk, const struct gm_flight *flight)
{
    unsigned char *copy = walk->trace->area;
    for (int attempt = 0; attempt < 100; attempt++) {
        walk->start = __atomic_load_n(&flight->start, __ATOMIC_ACQUIRE);
        walk->end = __atomic_load_n(&flight->end, __ATOMIC_ACQUIRE);
        memcpy(copy, walk->area, walk->present);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        walk->start = __atomic_load_n(&flight->start, __ATOMIC_ACQUIRE);
        if (walk->start <= walk->end) {
            walk->area = copy;
            return true;
        }
    }
    return false;
}

static const struct gm_extent *extent_at(const struct walk *walk, uint64_t position)
{
    uint64_t offset = position % walk->capacity;
    const struct gm_extent *extent = (const struct gm_extent *)(walk->area + offset);
    if (walk->present - offset < sizeof(*extent) || extent->magic != GM_EXTENT_MAGIC ||
        extent->length < sizeof(*extent) || extent->length % GM_EXTENT_ALIGN != 0 ||
        extent->length > walk->present - offset || extent->length > walk->end - position ||
        !gm_trace_extent_is_intact(extent))
        return NULL;
    return extent;
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

static void drop_checkpoint(struct walk *walk)
{
    walk->trace->checkpoint = NULL;
    walk->trace->carried_count = 0;
    walk->wanted = 0;
}

static bool begin_checkpoint(struct walk *walk, const unsigned char *payload, size_t size)
{
    const struct gm_checkpoint *checkpoint = (const struct gm_checkpoint *)payload;
    if (size < sizeof(*checkpoint) || checkpoint->lanes > GM_LANES_MAX)
        return false;
    if (size < sizeof(*checkpoint) + checkpoint->lanes * sizeof(uint64_t))
        return false;
    walk->trace->checkpoint = checkpoint;
    walk->wanted = checkpoint->blocks;
    return true;
}

static bool add_carried(struct gm_trace *trace, const unsigned char *payload, size_t size)
{
    const struct gm_block *block = (const struct gm_block *)payload;
    if (!gm_trace_block_is_sound(block, size))
        return false;
    GM_APPEND(trace->carried, trace->carried_capacity, trace->carried_count,
              (struct gm_block_place){.block = block});
    return true;
}

/* ---- all extents ----------------------------------------------------------------------------- */

static void take_extent(struct walk *walk, const struct gm_extent *extent, bool is_first)
{
    struct gm_trace *trace = walk->trace;
    const unsigned char *payload = (const unsigned char *)(extent + 1);
    size_t size = extent->used;
    trace->damaged += !gm_trace_rest_is_zero(extent);
    bool wants_carried = walk->wanted && extent->type != GM_EXTENT_PAD;
    if (wants_carried &&
        (extent->type != GM_EXTENT_CARRIED || !add_carried(trace, payload, size))) {
        trace->damaged++;
        drop_checkpoint(walk);
    } else if (wants_carried) {
        walk->wanted--;
        return;
    }
    switch (extent->type) {
    case GM_EXTENT_CHECKPOINT:
        /* Behind the first one they matter only if that is damaged. */
        if (!trace->checkpoint && (is_first || walk->start != 0) &&
            !begin_checkpoint(walk, payload, size) && is_first)
            trace->damaged++;
        break;
    case GM_EXTENT_BLOCK:
        trace->damaged += !gm_trace_add_block(trace, payload, size);
        break;
    default:
        break;
    }
}

static void walk_all(struct walk *walk)
{
    bool lost = false; /* inside something damaged, which is counted once */
    for (uint64_t position = walk->start; position < walk->end;) {
        uint64_t offset = position % walk->capacity;
        if (offset >= walk->present) { /* the end of the file cuts the area */
            position += walk->capacity - offset;
            continue;
        }
        const struct gm_extent *extent = extent_at(walk, position);
        if (!extent) {
            walk->trace->damaged += !lost && !walk->trace->truncated;
            lost = true;
            if (walk->wanted)
                drop_checkpoint(walk);
            position += GM_EXTENT_ALIGN;
            continue;
        }
        lost = false;
        take_extent(walk, extent, position == walk->start);
        position += extent->length;
    }
    if (walk->wanted) {
        walk->trace->damaged++;
        drop_checkpoint(walk);
    }
    if (walk->start != 0 && !walk->trace->checkpoint && walk->trace->damaged == 0)
        walk->trace->damaged++; /* what came before is unknown */
}

bool gm_flight_is_sealed(const struct gm_extent *extent)
{
    const struct gm_flight *flight = (const struct gm_flight *)(extent + 1);
    if (extent->length <= GM_TRACE_PAGE)
        return false;
    struct walk walk = {.present = (size_t)extent->length - GM_TRACE_PAGE,
                        GM_SAME(flight, capacity, start, end)};
    const unsigned char *area = (const unsigned char *)extent + GM_TRACE_PAGE;
    return is_sound(&walk) && walk.capacity <= walk.present && flight->touched <= walk.capacity &&
           gm_flight_seal(flight) == extent->seal &&
           gm_trace_is_zero(area + flight->touched, walk.present - (size_t)flight->touched);
}

void gm_flight_scan(struct gm_trace *trace, const unsigned char *payload, size_t size, bool alive)
{
    const struct gm_flight *flight = (const struct gm_flight *)payload;
    const size_t header = GM_TRACE_PAGE - sizeof(struct gm_extent);
    struct walk walk = {.trace = trace};
    if (size >= sizeof(*flight)) {
        GM_COPY_MEMBERS(&walk, flight, capacity, start, end);
        walk.area = payload + header;
        walk.present = size > header ? size - header : 0;
        if (walk.present > walk.capacity)
            walk.present = (size_t)walk.capacity;
    }
    bool good =
        is_sound(&walk) && !trace->has_area && (walk.present == walk.capacity || trace->truncated);
    trace->has_area = true;
    if (good && alive) {
        trace->area = gm_resize(trace->area, walk.present, 1);
        good = copy_area(&walk, flight) && is_sound(&walk);
    }
    if (!good) {
        trace->damaged++;
        return;
    }
    walk_all(&walk);
    for (uint32_t lane = 0; trace->checkpoint && lane < trace->checkpoint->lanes; lane++)
        gm_trace_lane(trace, lane)->first = ((const uint64_t *)(trace->checkpoint + 1))[lane];
}
