/* Which requests found no room, and in which pool they looked. See history.h. */
#include "replay/replica/replay.h"
#include <stdlib.h>

/*
 * What asks for too much is of one stream and one pool, of which PyTorch tells nothing when it refuses (up to 2.11;
 * gpumem learns of neither). It looked for a free block before it asked the device. So it was of a place in which there
 * was none: that of the next request if possible, else the first one that occurs.
 */
#define PLACES_MAX 64u

struct place {
    uint64_t stream, pool;
};

static bool is_same_place(struct place one, struct place other)
{
    return one.stream == other.stream && one.pool == other.pool;
}

static size_t find_places(const struct gm_history *history, struct place places[PLACES_MAX])
{
    size_t count = 0, last = 0;
    for (size_t i = 0; i < history->step_count && count < PLACES_MAX; i++) {
        const struct gm_step *step = &history->steps[i];
        struct place place = {step->stream, step->pool};
        if (step->kind != GM_STEP_ALLOC || (count && is_same_place(places[last], place)))
            continue;
        for (last = 0; last < count && !is_same_place(places[last], place);)
            last++;
        if (last == count)
            places[count++] = place;
    }
    return count;
}

static bool is_refused_at(struct gm_follower *follower, struct gm_step *step, struct place place)
{
    if (gm_allocator_would_find(&follower->run.allocator, step->size, place.stream, place.pool))
        return false;
    step->stream = place.stream;
    step->pool = place.pool;
    return true;
}

static const struct gm_step *next_request(const struct gm_history *history, size_t at)
{
    while (++at < history->step_count)
        if (history->steps[at].kind == GM_STEP_ALLOC)
            return &history->steps[at];
    return NULL;
}

/* What of a private pool went first for a request, or before anything of the common one: the request made room in its own
 * pool, for all caches are emptied only then. NULL: there is no such. */
static const struct gm_step *own_departure(const struct gm_history *history, size_t from, size_t at)
{
    const struct gm_step *found = NULL;
    for (size_t i = from; i < at && history->steps[i].kind == GM_STEP_DEPART; i++) {
        const struct gm_step *step = &history->steps[i];
        if (found && !step->pool)
            return found;
        found = found || !step->pool ? found : step;
    }
    return found == &history->steps[from] ? found : NULL;
}

static void find_place(struct gm_follower *follower, struct gm_history *history, size_t from,
                       size_t at, const struct place *places, size_t count)
{
    struct gm_step *step = &history->steps[at];
    const struct gm_step *next = next_request(history, at);
    const struct gm_step *gone = own_departure(history, from, at);
    if (gone && is_refused_at(follower, step, (struct place){gone->stream, gone->pool}))
        return;
    if (is_refused_at(follower, step, (struct place){step->stream, step->pool}) ||
        (next && is_refused_at(follower, step, (struct place){next->stream, next->pool})))
        return;
    for (size_t i = 0; i < count; i++)
        if (is_refused_at(follower, step, places[i]))
            return;
}

/* ---- a part of the cache --------------------------------------------------------------------- */

/*
 * A request that finds no room gives back a part of the cache: what is older than other blocks, or too large to be
 * split. If the device refused, or the stacks are the same, that is known to be by a request. Else it looks like a program
 * that emptied its cache and then asked; but that would have given back all.
 */
static bool is_other_order(struct gm_follower *follower, size_t at, size_t end, uint64_t pool,
                           bool exact)
{
    const struct gm_history *history = follower->run.history;
    size_t count, given = 0;
    struct gm_replica_range *cached = gm_allocator_cached(&follower->run.allocator, pool, &count);
    bool is_other = false;
    for (size_t i = at; i < end; i++) {
        const struct gm_step *step = &history->steps[i];
        if (step->pool != pool)
            continue;
        is_other |= given == count || cached[given].size != step->size ||
                    (exact && cached[given].address != step->address);
        given += given < count;
    }
    free(cached);
    return is_other || given < count;
}

/* Where in [at, end) begins what a request gave back: behind all of the common pool, if the program emptied its cache
 * before it asked. `end`: nowhere. */
static size_t find_partial(struct gm_follower *follower, size_t at, size_t end, bool exact)
{
    const struct gm_step *steps = follower->run.history->steps;
    size_t common = at;
    while (common < end && steps[common].pool == 0)
        common++;
    if (common > at && is_other_order(follower, at, common, 0, exact))
        return at;
    for (size_t i = common; i < end; i++)
        if ((i == common || steps[i].pool != steps[i - 1].pool) &&
            is_other_order(follower, common, end, steps[i].pool, exact))
            return common;
    return end;
}

/* A request gives back for the sake of a new segment, which it then gets or not. Where neither follows, it was served from
 * what was there. */
static bool is_of_request(const struct gm_history *history, size_t at)
{
    return at < history->step_count &&
           (history->steps[at].kind == GM_STEP_ARRIVE || history->steps[at].kind == GM_STEP_FAIL);
}

static void settle_partial(struct gm_follower *follower, struct gm_history *history, size_t at,
                           bool exact)
{
    size_t end = gm_follow_group_end(history, at);
    if (!gm_history_empties_cache(history, at) || !is_of_request(history, end))
        return;
    for (size_t i = find_partial(follower, at, end, exact); i < end; i++)
        history->steps[i].by_request = history->steps[i].by_limit = true;
}

/* Whether there may be something to settle in the group that begins with a step, or at the refusal that the step is. */
static bool is_open(const struct gm_history *history, size_t at)
{
    const struct gm_step *step = &history->steps[at];
    if (step->kind == GM_STEP_FAIL)
        return step->is_untold;
    return gm_history_empties_cache(history, at) &&
           is_of_request(history, gm_follow_group_end(history, at));
}

size_t gm_history_settles_from(const struct gm_history *history)
{
    size_t at = 0;
    while (at < history->step_count && !is_open(history, at))
        at++;
    return at;
}

/* One past the last step with which there may be something to settle. */
static size_t settles_until(const struct gm_history *history)
{
    size_t end = history->step_count;
    while (end > 0 && !is_open(history, end - 1))
        end--;
    return end;
}

void gm_history_settle(struct gm_history *history, bool exact)
{
    struct place places[PLACES_MAX];
    size_t count = find_places(history, places), end = settles_until(history);
    struct gm_follower follower = {0};
    if (!end)
        return;
    gm_replica_run_begin(&follower.run, history, &history->settings, 0, history->total);
    follower.run.keeps_moves = true;
    for (size_t at = 0; at < end; at = gm_follow(&follower, at)) {
        settle_partial(&follower, history, at, exact);
        size_t last = gm_follow_group_end(history, at) - 1;
        if (count > 1 && history->steps[last].kind == GM_STEP_FAIL &&
            history->steps[last].is_untold)
            find_place(&follower, history, at, last, places, count);
    }
    gm_replica_run_end(&follower.run);
}
