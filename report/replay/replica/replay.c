/* See replay.h. */
#include "replay/replica/replay.h"
#include "base/each.h"

static uint64_t reserved_at_beginning(const struct gm_history *history)
{
    uint64_t reserved = 0;
    for (size_t i = 0; i < history->segment_count; i++)
        reserved += history->segments[i].size;
    return reserved;
}

/* `own`: with addresses of our own. Then what is equal is the bytes reserved after each group of steps. */
static struct gm_as_recorded follow_all(const struct gm_history *history, bool own)
{
    struct gm_follower follower = {.own_addresses = own};
    uint64_t reserved = reserved_at_beginning(history), equal = 0;
    gm_replica_run_begin(&follower.run, history, &history->settings, 0, history->total);
    follower.run.keeps_moves = true;
    for (size_t at = 0, next; at < history->step_count; at = next) {
        uint64_t entries = 0;
        next = gm_follow(&follower, at);
        for (; at < next; at++) {
            const struct gm_step *step = &history->steps[at];
            reserved += step->kind == GM_STEP_ARRIVE ? step->size : 0;
            reserved -= step->kind == GM_STEP_DEPART ? step->size : 0;
            entries += step->entries;
        }
        equal += follower.run.allocator.reserved == reserved ? entries : 0;
    }
    follower.result.equal_reserved = equal;
    follower.result.reserved_peak = follower.run.allocator.reserved_peak;
    gm_replica_run_end(&follower.run);
    return follower.result;
}

/* With the recording's addresses, in the order of free blocks that does more alike, and settled. */
static struct gm_as_recorded follow_best(struct gm_history *history)
{
    struct gm_as_recorded result = follow_all(history, false);
    if (result.equal_events < result.events) {
        history->settings.oldest_first = true;
        struct gm_as_recorded other = follow_all(history, false);
        history->settings.oldest_first = other.equal_events > result.equal_events;
        result = history->settings.oldest_first ? other : result;
    }
    if (result.equal_events < result.events) {
        gm_history_settle(history, true);
        result = follow_all(history, false);
    }
    return result;
}

struct gm_as_recorded gm_replay_as_recorded(struct gm_history *history)
{
    struct gm_as_recorded result = follow_best(history);
    struct gm_as_recorded own = follow_all(history, true);
    result.equal_reserved = own.equal_reserved;
    result.reserved_peak = own.reserved_peak;
    return result;
}

/* ---- whether it can be trusted --------------------------------------------------------------- */

/* So much of a history tells of nearly all that cannot be followed. */
#define LOOK_SHARE 8u

/* Whether more than `allowed` events differ before a step, in one order of free blocks. */
static bool differs_before(const struct gm_history *history, size_t end, uint64_t allowed,
                           bool oldest_first)
{
    struct gm_follower follower = {0};
    struct gm_allocator_settings settings = history->settings;
    bool differs = false;
    settings.oldest_first = oldest_first;
    gm_replica_run_begin(&follower.run, history, &settings, 0, history->total);
    follower.run.keeps_moves = true;
    for (size_t at = 0; at < end && !differs;) {
        at = gm_follow(&follower, at);
        differs = at < end && follower.result.events - follower.result.equal_events > allowed;
    }
    gm_replica_run_end(&follower.run);
    return differs;
}

/* Whether more than one in `share` events will differ, by what differs near the beginning and nothing puts right:
 * follow_best() does the same there, in either order. */
static bool is_hopeless(const struct gm_history *history, uint64_t share)
{
    size_t end = gm_history_settles_from(history);
    uint64_t events = 0;
    if (end > history->step_count / LOOK_SHARE)
        end = history->step_count / LOOK_SHARE;
    for (size_t i = 0; i < history->step_count; i++)
        events += history->steps[i].entries;
    return differs_before(history, end, events / share, false) &&
           differs_before(history, end, events / share, true);
}

bool gm_replay_is_trusted(struct gm_history *history, uint64_t share)
{
    gm_history_guess_groups(history);
    if (is_hopeless(history, share))
        return false;
    gm_history_guess_rest(history);
    struct gm_as_recorded as = follow_best(history);
    return as.equal_events >= as.events - as.events / share;
}

/* ---- what was recorded ----------------------------------------------------------------------- */

/* What calls of a kind took in the mean. One that is not told was faster than a slow call. 0: none is told. */
static uint64_t mean_ns(const struct gm_history *history, bool expandable)
{
    uint64_t sum = 0, count = 0;
    for (size_t i = 0; i < history->step_count; i++) {
        const struct gm_step *step = &history->steps[i];
        if (step->kind != GM_STEP_ARRIVE || step->expandable != expandable)
            continue;
        sum += step->took_ns;
        count++;
    }
    return count ? sum / count : 0;
}

uint64_t gm_recorded_device_ns(const struct gm_recorded *recorded, bool expandable, uint64_t count)
{
    uint64_t each = expandable ? recorded->mapping_ns : recorded->segment_ns;
    return each && count > UINT64_MAX / each ? UINT64_MAX : each * count;
}

struct gm_recorded gm_replay_recorded(const struct gm_history *history)
{
    uint64_t reserved = reserved_at_beginning(history);
    struct gm_recorded recorded = {.reserved_peak = reserved};
    for (size_t i = 0; i < history->step_count; i++) {
        const struct gm_step *step = &history->steps[i];
        bool arrives = step->kind == GM_STEP_ARRIVE;
        reserved += arrives ? step->size : 0;
        reserved -= step->kind == GM_STEP_DEPART ? step->size : 0;
        recorded.device_allocations += arrives;
        recorded.out_of_memory += step->kind == GM_STEP_FAIL;
        recorded.device_ns += step->took_ns;
        if (reserved > recorded.reserved_peak && reserved <= INT64_MAX)
            recorded.reserved_peak = reserved;
    }
    recorded.segment_ns = mean_ns(history, false);
    recorded.mapping_ns = mean_ns(history, true);
    return recorded;
}

/* ---- under other settings -------------------------------------------------------------------- */

static void request(struct gm_replica_run *run, size_t at, struct gm_outcome *outcome)
{
    const struct gm_step *step = &run->history->steps[at];
    uint32_t number = gm_allocator_malloc(&run->allocator, step->asked, step->stream, step->pool);
    if (!number && outcome->out_of_memory++ == 0) {
        outcome->refused_size = step->asked;
        outcome->refused_step = at;
    }
    if (step->kind == GM_STEP_FAIL) /* what the program would have done with it is not known */
        gm_allocator_free(&run->allocator, number);
    else if (step->block < run->history->numbers)
        run->blocks[step->block] = number;
}

/* `reserve`: says where new segments lie, with `places` as its argument; NULL: they lie one behind the other. */
static struct gm_outcome replay(const struct gm_history *history,
                                const struct gm_allocator_settings *settings, uint64_t capacity,
                                uint64_t total, uint64_t (*reserve)(void *, uint64_t, bool),
                                void *places)
{
    struct gm_replica_run run;
    struct gm_outcome outcome = {0};
    gm_replica_run_begin(&run, history, settings, capacity, total);
    if (reserve)
        run.allocator.device = (struct gm_allocator_device){.reserve = reserve, .argument = places};
    size_t since = 0; /* the steps of segments before a request begin here */
    for (size_t at = 0; at < history->step_count; at++) {
        const struct gm_step *step = &history->steps[at];
        bool continues = at > since && gm_step_is_of_segment(step - 1);
        since = continues || since > at ? since : at;
        if (step->kind == GM_STEP_ALLOC || step->kind == GM_STEP_FAIL) {
            gm_replica_note_drops(&run, since, at);
            request(&run, at, &outcome);
        } else if (!gm_step_is_of_segment(step)) {
            gm_replica_give_back(&run, step);
        } else if (gm_history_empties_cache(history, at)) {
            gm_replica_empty_cache(&run, at, true);
            since = gm_follow_group_end(history, at);
        }
    }
    GM_COPY_MEMBERS(&outcome, &run.allocator, reserved_peak, device_allocations, retries);
    gm_replica_run_end(&run);
    return outcome;
}

struct gm_outcome gm_replay_under(const struct gm_history *history,
                                  const struct gm_allocator_settings *settings, uint64_t capacity,
                                  uint64_t total)
{
    return replay(history, settings, capacity, total, NULL, NULL);
}

/* ---- at other addresses ---------------------------------------------------------------------- */

enum { SLOT_BITS = 20, SLOT_SIZE_BITS = 38 }; /* a slot holds more than any device has */
enum { DESCENDING, SCATTERED };               /* and from there on: scattered otherwise */

struct places {
    unsigned order; /* DESCENDING, SCATTERED and on */
    uint64_t count; /* of segments so far */
};

/* Each of the first 2^SLOT_BITS numbers gets a slot of its own: all three steps can be undone. */
static uint64_t scattered(uint64_t number, unsigned order)
{
    const uint64_t mask = ((uint64_t)1 << SLOT_BITS) - 1;
    uint64_t slot = (number + order * (uint64_t)7919) & mask;
    slot = slot * 0x9e375 & mask; /* odd */
    slot ^= slot >> (SLOT_BITS / 2);
    slot = slot * 0xa2b5d & mask;
    return slot + (number & ~mask);
}

static uint64_t reserve_elsewhere(void *argument, uint64_t size, bool expandable)
{
    struct places *places = argument;
    uint64_t number = places->count++;
    (void)size;
    (void)expandable;
    return (places->order == DESCENDING ? ((uint64_t)1 << (SLOT_BITS + 1)) - number
                                        : scattered(number, places->order) + 1)
           << SLOT_SIZE_BITS;
}

struct gm_placements gm_replay_placements(struct gm_history *history)
{
    enum { ORDERS = 8, ORDERS_OF_LONG = 2, LONG = 2000000 };
    struct gm_placements result = {.recorded = gm_replay_recorded(history).reserved_peak};
    result.least = result.most = result.recorded;
    if (history->settings.expandable || history->settings.async)
        return result;
    gm_replay_as_recorded(history); /* finds the order of blocks of one size */
    struct gm_outcome same =
        gm_replay_under(history, &history->settings, history->capacity, history->total);
    result.is_known = same.reserved_peak == result.recorded;
    unsigned orders = history->step_count < LONG ? ORDERS : ORDERS_OF_LONG;
    for (unsigned order = 0; result.is_known && order < orders; order++) {
        struct places places = {.order = order};
        struct gm_outcome other = replay(history, &history->settings, history->capacity,
                                         history->total, reserve_elsewhere, &places);
        if (other.reserved_peak < result.least)
            result.least = other.reserved_peak;
        if (other.reserved_peak > result.most)
            result.most = other.reserved_peak;
    }
    return result;
}
