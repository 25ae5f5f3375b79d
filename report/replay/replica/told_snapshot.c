/* What a snapshot tells at its end of the time before: the pools of segments, and how much memory there was. See
 * history.h. */
#include "base/ranges.h"
#include "replay/replica/replay.h"

/* ---- pools ----------------------------------------------------------------------------------- */

/*
 * Up to PyTorch 2.11 the events of a snapshot do not tell the pool, but segments at the end do. Going backward from
 * there, an event is of the pool of the segment it lies in. Segments that went before the end keep 0, and `is_untold`.
 */
enum { UNTOLD = 1 }; /* value of a range; the segments of the end have theirs from 2 on */

struct telling {
    struct gm_history *history;
    const struct gm_torch_device *device;
    struct gm_ranges there;
};

static void tell_step(const struct telling *telling, uint64_t address, struct gm_step *step)
{
    struct gm_range found;
    bool is_there = gm_ranges_find(&telling->there, address, address + 1, &found);
    step->is_untold = !is_there || found.value == UNTOLD;
    step->pool = step->is_untold ? 0 : telling->device->segments[found.value - 2].pool;
}

/* Takes [start, end) out, whatever it is a part of. */
static void take_out_range(struct telling *telling, uint64_t start, uint64_t end)
{
    struct gm_range found;
    while (gm_ranges_find(&telling->there, start, end, &found)) {
        gm_ranges_remove(&telling->there, found.start);
        if (found.start < start)
            gm_ranges_add(&telling->there, (struct gm_range){found.start, start, found.value});
        if (found.end > end)
            gm_ranges_add(&telling->there, (struct gm_range){end, found.end, found.value});
    }
}

static void undo_step(struct telling *telling, struct gm_step *step)
{
    uint64_t end = gm_range_end(step->address, step->size);
    struct gm_range found;
    if (step->kind == GM_STEP_FAIL)
        return;
    if (step->kind == GM_STEP_DEPART &&
        !gm_ranges_find(&telling->there, step->address, end, &found))
        gm_ranges_add(&telling->there, (struct gm_range){step->address, end, UNTOLD});
    tell_step(telling, step->address, step);
    if (step->kind == GM_STEP_ARRIVE)
        take_out_range(telling, step->address, end);
}

static void tell_blocks(const struct telling *telling)
{
    struct gm_history *history = telling->history;
    for (size_t i = 0; i < history->block_count; i++) {
        struct gm_step step;
        tell_step(telling, history->blocks[i].address, &step);
        history->blocks[i].pool = step.pool;
    }
}

void gm_history_tell_pools(struct gm_history *history, const struct gm_torch_device *device)
{
    struct telling telling = {.history = history, .device = device};
    history->has_pools = device->has_pools;
    if (device->has_pools)
        return;
    for (size_t i = 0; i < device->segment_count && i < UINT32_MAX - 2; i++) {
        uint64_t end = gm_range_end(device->segments[i].address, device->segments[i].size);
        struct gm_range found;
        if (!gm_ranges_find(&telling.there, device->segments[i].address, end, &found))
            gm_ranges_add(&telling.there,
                          (struct gm_range){device->segments[i].address, end, (uint32_t)i + 2});
    }
    for (size_t i = history->step_count; i > 0; i--)
        undo_step(&telling, &history->steps[i - 1]);
    tell_blocks(&telling);
    gm_ranges_free(&telling.there);
}

/* ---- how much there was ---------------------------------------------------------------------- */

/* Bytes that the request of steps that belong together asked the device for at least. */
static uint64_t asked_for(const struct gm_history *history, size_t at)
{
    size_t last = gm_follow_group_end(history, at) - 1;
    const struct gm_step *step = &history->steps[last];
    if (step->kind != GM_STEP_ALLOC && step->kind != GM_STEP_FAIL)
        return 0;
    for (size_t i = last; i > at; i--)
        if (history->steps[i - 1].kind == GM_STEP_ARRIVE)
            return history->steps[i - 1].size;
    return gm_allocator_round(&history->settings, step->size);
}

/*
 * A request for which the cache was given back found less left than it asked for. So there was less than what was
 * reserved then and that, and at least what was reserved ever. The most that agrees with all of these is taken.
 */
uint64_t gm_history_limit(const struct gm_history *history)
{
    uint64_t reserved = 0, peak, least = UINT64_MAX;
    for (size_t i = 0; i < history->segment_count; i++)
        reserved += history->segments[i].size;
    peak = reserved;
    bool was_departure = false;
    for (size_t i = 0; i < history->step_count; i++) {
        const struct gm_step *step = &history->steps[i];
        bool departs = step->kind == GM_STEP_DEPART && step->by_request;
        if (departs && !was_departure) {
            uint64_t beyond = gm_range_end(reserved, asked_for(history, i));
            least = beyond > reserved && beyond < least ? beyond : least;
        }
        was_departure = departs;
        reserved += step->kind == GM_STEP_ARRIVE ? step->size : 0;
        reserved -= step->kind == GM_STEP_DEPART ? step->size : 0;
        peak = reserved > peak && reserved <= INT64_MAX ? reserved : peak;
    }
    if (least > INT64_MAX || history->settings.gc_threshold > 0)
        return 0;
    return least - 1 > peak ? least - 1 : peak;
}
