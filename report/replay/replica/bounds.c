/* The least that a history needs. See replay.h.
 *
 * The best packing: every allocation has its time, and all may be placed knowing the future. The largest are placed
 * first, each as low as those allow that are in use at the same time. That is not the optimum, which nobody can
 * compute, but as a rule close to the largest live set.
 */
#include "base/map.h"
#include "base/memory.h"
#include "base/order.h"
#include "replay/replica/allocator.h"
#include "replay/replica/replay.h"
#include <stdlib.h>

/* Beyond, comparing each with all takes too long, and the best of the allocators stands for it. */
#define PACKED_MAX 20000u
#define PAGE ((uint64_t)2 << 20) /* memory of a device comes in such */

struct use {
    uint64_t requested, size; /* bytes; rounded */
    uint64_t place;
    size_t from, to; /* steps */
};

GM_ORDER(largest_first, struct use, GM_DOWN(size) GM_UP(from))

static struct use *find_uses(const struct gm_history *history, size_t *count)
{
    struct use *uses = gm_allocate((size_t)history->numbers + 1, sizeof(*uses));
    for (size_t i = 0; i < history->block_count; i++)
        uses[history->blocks[i].block] =
            (struct use){.requested = history->blocks[i].requested, .to = SIZE_MAX};
    for (size_t i = 0; i < history->step_count; i++) {
        const struct gm_step *step = &history->steps[i];
        if (step->block >= history->numbers)
            continue;
        if (step->kind == GM_STEP_ALLOC)
            uses[step->block] =
                (struct use){.requested = step->size, .from = i + 1, .to = SIZE_MAX};
        else if (uses[step->block].to == SIZE_MAX && step->kind == GM_STEP_FREE)
            uses[step->block].to = i + 1;
    }
    *count = history->numbers;
    for (size_t i = 0; i < *count; i++)
        uses[i].size = gm_allocator_round(&history->settings, uses[i].requested);
    return uses;
}

static uint64_t live_peak(const struct gm_history *history)
{
    uint64_t *sizes = gm_allocate((size_t)history->numbers + 1, sizeof(*sizes));
    uint64_t live = 0, peak;
    for (size_t i = 0; i < history->block_count; i++)
        if (!history->blocks[i].waiting)
            live += sizes[history->blocks[i].block] = history->blocks[i].requested;
    peak = live;
    for (size_t i = 0; i < history->step_count; i++) {
        const struct gm_step *step = &history->steps[i];
        if (step->block >= history->numbers)
            continue;
        if (step->kind == GM_STEP_ALLOC) {
            live += sizes[step->block] = step->size;
        } else { /* what other streams still use is no longer the program's */
            live -= sizes[step->block];
            sizes[step->block] = 0;
        }
        peak = live > peak && live <= INT64_MAX ? live : peak;
    }
    free(sizes);
    return peak;
}

/* The lowest place for `use` among those placed, which are in the order of their places. */
static uint64_t lowest_place(const struct use *use, struct use *const *placed, size_t count)
{
    uint64_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const struct use *other = placed[i];
        if (other->to <= use->from || use->to <= other->from)
            continue;
        if (other->place >= at && other->place - at >= use->size)
            break;
        uint64_t end = other->place + other->size;
        at = end > at ? end : at;
    }
    return at;
}

static uint64_t pack_uses(struct use *uses, size_t count)
{
    struct use **placed = gm_allocate(count + 1, sizeof(struct use *));
    uint64_t height = 0;
    if (count)
        qsort(uses, count, sizeof(*uses), largest_first);
    for (size_t i = 0; i < count; i++) {
        struct use *use = &uses[i];
        use->place = lowest_place(use, placed, i);
        size_t at = i;
        for (; at > 0 && placed[at - 1]->place > use->place; at--)
            placed[at] = placed[at - 1];
        placed[at] = use;
        height = use->place + use->size > height ? use->place + use->size : height;
    }
    free(placed);
    return height;
}

struct gm_bounds gm_replay_bounds(const struct gm_history *history)
{
    struct gm_bounds bounds = {.live_peak = live_peak(history)};
    struct gm_allocator_settings settings = history->settings;
    size_t count;
    settings.expandable = true;
    bounds.best_packing = gm_replay_under(history, &settings, 0, history->total).reserved_peak;
    struct use *uses = find_uses(history, &count);
    uint64_t packed = count <= PACKED_MAX ? pack_uses(uses, count) : UINT64_MAX;
    if (packed <= UINT64_MAX - PAGE) {
        packed = (packed + PAGE - 1) / PAGE * PAGE;
        bounds.best_packing = packed < bounds.best_packing ? packed : bounds.best_packing;
    }
    uint64_t recorded = gm_replay_recorded(history).reserved_peak;
    bounds.best_packing = recorded < bounds.best_packing ? recorded : bounds.best_packing;
    free(uses);
    return bounds;
}
