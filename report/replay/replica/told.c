/* Streams, pools and what waits for other streams, where a trace tells them. See history.h. */
#include "base/map.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/ranges.h"
#include "replay/replica/history.h"
#include <stdlib.h>

/* ---- pools ----------------------------------------------------------------------------------- */

/*
 * A trace has a number for each of PyTorch's pools: the place of a structure, in words. There are two for each private
 * pool, and two common ones: that for large blocks comes first, that for small ones behind it, always as far apart.
 */
#define APART_MAX 256u /* words */

struct part {
    uint64_t number;
    uint64_t pool; /* what it is a part of; 0: the common one */
    bool small;
};

GM_ORDER(by_number, struct part, GM_UP(number))

/* How far small parts lie behind those of the same pool: the least that occurs. */
static uint64_t find_distance(const struct part *parts, size_t count)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 1; i < count; i++) {
        uint64_t distance = parts[i].number - parts[i - 1].number;
        if (parts[i].small && !parts[i - 1].small && distance <= APART_MAX && distance < least)
            least = distance;
    }
    return least;
}

/* `common`: a number of the common pool. */
static void name_pools(struct part *parts, size_t count, uint64_t common_number)
{
    qsort(parts, count, sizeof(*parts), by_number);
    uint64_t distance = find_distance(parts, count), common = 0;
    for (size_t i = 0; i < count; i++) {
        bool joins = parts[i].small && i && !parts[i - 1].small &&
                     parts[i].number - parts[i - 1].number == distance;
        parts[i].pool = joins ? parts[i - 1].pool : i + 1;
        common = parts[i].number == common_number ? parts[i].pool : common;
    }
    for (size_t i = 0; i < count; i++)
        parts[i].pool = parts[i].pool == common ? 0 : parts[i].pool;
}

struct naming {
    struct part *parts;
    size_t count, capacity;
    struct gm_map known; /* number -> place in `parts` */
    uint64_t first;      /* of the first request: programs make other pools later */
};

static void note_part(struct naming *naming, uint64_t number, uint64_t size)
{
    if (number == 0 || gm_map_get(&naming->known, number) != GM_NONE)
        return;
    if (!naming->count)
        naming->first = number;
    gm_map_set(&naming->known, number, (uint32_t)naming->count);
    GM_APPEND(naming->parts, naming->capacity, naming->count,
              (struct part){.number = number, .small = size <= (uint64_t)1 << 20});
}

static uint64_t named_pool(const struct naming *naming, uint64_t number)
{
    struct part wanted = {.number = number};
    const struct part *part =
        naming->count ? bsearch(&wanted, naming->parts, naming->count, sizeof(wanted), by_number)
                      : NULL;
    return part ? part->pool : 0;
}

void gm_history_name_pools(struct gm_history *history, uint64_t common)
{
    struct naming naming = {0};
    for (size_t i = 0; i < history->block_count; i++)
        note_part(&naming, history->blocks[i].pool, history->blocks[i].size);
    for (size_t i = 0; i < history->step_count; i++)
        if (history->steps[i].kind == GM_STEP_ALLOC)
            note_part(&naming, history->steps[i].pool, history->steps[i].size);
    if (naming.count)
        name_pools(naming.parts, naming.count, common ? common : naming.first);
    for (size_t i = 0; i < history->block_count; i++)
        history->blocks[i].pool = named_pool(&naming, history->blocks[i].pool);
    for (size_t i = 0; i < history->step_count; i++)
        history->steps[i].pool = named_pool(&naming, history->steps[i].pool);
    free(naming.parts);
    gm_map_free(&naming.known);
}

/* ---- segments -------------------------------------------------------------------------------- */

/* A segment has the stream and the pool of the request that it came for. `value` of a range: the step it came at, or,
 * from the number of steps on, the segment that was there. */
struct placing {
    struct gm_history *history;
    struct gm_ranges there;
};

static void add_place(struct placing *placing, uint64_t address, uint64_t size, size_t value)
{
    struct gm_range found;
    uint64_t end = gm_range_end(address, size);
    if (value < UINT32_MAX && !gm_ranges_find(&placing->there, address, end, &found))
        gm_ranges_add(&placing->there, (struct gm_range){address, end, (uint32_t)value});
}

static void tell_first_segments(struct placing *placing)
{
    struct gm_history *history = placing->history;
    size_t at = 0;
    for (size_t i = 0; i < history->segment_count; i++) {
        struct gm_there *segment = &history->segments[i];
        while (at < history->block_count && history->blocks[at].address < segment->address)
            at++;
        if (at < history->block_count &&
            history->blocks[at].address - segment->address < segment->size) {
            segment->stream = history->blocks[at].stream;
            segment->pool = history->blocks[at].pool;
            segment->small |= history->blocks[at].size <= (uint64_t)1 << 20 && segment->expandable;
        }
        add_place(placing, segment->address, segment->size, history->step_count + i);
    }
}

static void tell_departure(struct placing *placing, struct gm_step *step)
{
    struct gm_history *history = placing->history;
    uint64_t end = gm_range_end(step->address, step->size);
    struct gm_range found;
    while (gm_ranges_find(&placing->there, step->address, end, &found)) {
        bool is_step = found.value < history->step_count;
        const struct gm_there *first =
            is_step ? NULL : &history->segments[found.value - history->step_count];
        step->stream = is_step ? history->steps[found.value].stream : first->stream;
        step->pool = is_step ? history->steps[found.value].pool : first->pool;
        gm_ranges_remove(&placing->there, found.start);
        if (found.start < step->address)
            gm_ranges_add(&placing->there,
                          (struct gm_range){found.start, step->address, found.value});
        if (found.end > end)
            gm_ranges_add(&placing->there, (struct gm_range){end, found.end, found.value});
    }
}

void gm_history_tell_segments(struct gm_history *history)
{
    struct placing placing = {.history = history};
    const struct gm_step *request = NULL;
    for (size_t i = history->step_count; i > 0; i--) {
        struct gm_step *step = &history->steps[i - 1];
        if (step->kind == GM_STEP_ALLOC || step->kind == GM_STEP_FAIL)
            request = step;
        if (step->kind == GM_STEP_ARRIVE && request) {
            step->stream = request->stream;
            step->pool = request->pool;
        }
    }
    tell_first_segments(&placing);
    for (size_t i = 0; i < history->step_count; i++) {
        struct gm_step *step = &history->steps[i];
        if (step->kind == GM_STEP_ARRIVE)
            add_place(&placing, step->address, step->size, i);
        else if (step->kind == GM_STEP_DEPART)
            tell_departure(&placing, step);
    }
    gm_ranges_free(&placing.there);
}

/* ---- what waits ------------------------------------------------------------------------------ */

/*
 * When the other streams are done is not told. The allocator asks at the next request, so the earliest is before that;
 * the simulated GPU is always that fast.
 */
void gm_history_end_waits(struct gm_history *history)
{
    size_t waits = 0, kept = 0, pending = 0;
    for (size_t i = 0; i < history->step_count; i++)
        waits += history->steps[i].kind == GM_STEP_WAIT;
    if (waits == 0)
        return;
    struct gm_step *steps = gm_allocate(history->step_count + waits, sizeof(*steps));
    struct gm_step *open = gm_allocate(waits, sizeof(*open));
    for (size_t i = 0; i <= history->step_count; i++) {
        const struct gm_step *step = i < history->step_count ? &history->steps[i] : NULL;
        bool is_given_back = step && (step->kind == GM_STEP_FREE || step->kind == GM_STEP_WAIT);
        for (size_t k = 0; k < pending && !is_given_back; k++) {
            steps[kept] = open[k];
            steps[kept].kind = GM_STEP_FREE;
            steps[kept++].entries = 0; /* it is not of the recording */
        }
        pending = is_given_back ? pending : 0;
        if (!step)
            break;
        if (step->kind == GM_STEP_WAIT)
            open[pending++] = *step;
        steps[kept++] = *step;
    }
    free(open);
    free(history->steps);
    history->steps = steps;
    history->step_capacity = history->step_count + waits;
    history->step_count = kept;
}
