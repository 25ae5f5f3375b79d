/* What a trace does not tell of its history. See history.h. */
#include "base/map.h"
#include "base/memory.h"
#include "base/ranges.h"
#include "replica/follow.h"
#include <stdlib.h>

/* ---- streams --------------------------------------------------------------------------------- */

/*
 * A block is given to a request of its segment's stream and pool, and a segment keeps both: so segments fall into
 * groups, and the allocator never looks beyond one. They are found by what it would have done otherwise:
 *   - a request that got a new segment found nothing in its group;
 *   - a request that got another place than the replica chooses is of another group than the replica's place.
 * Each such place is a pair of segments that are apart; with one more pair all begins anew. Groups are numbers that
 * stand for streams.
 */

#define ROUNDS_MAX 64u
#define STEPS_MAX ((uint64_t)8 << 20) /* of all rounds */
#define GROUPS_MAX 64u

struct pair {
    uint64_t one, other; /* addresses of segments, and when they came, as steps */
    size_t one_came, other_came;
};

struct segment_group {
    uint64_t address;
    size_t came; /* step */
    uint64_t group;
};

struct grouping {
    struct gm_history *history;
    struct gm_follower follower;
    struct gm_ranges there; /* value: place in `segments` */
    struct segment_group *segments;
    size_t segment_count, segment_capacity;
    struct pair *pairs;
    size_t pair_count, pair_capacity;
    struct gm_map by_stack; /* stack -> group of its latest request */
    uint64_t groups;        /* numbers in use are below */
};

static const struct segment_group *segment_at(const struct grouping *grouping, uint64_t address)
{
    struct gm_range found;
    if (!gm_ranges_find(&grouping->there, address, address + 1, &found))
        return NULL;
    return &grouping->segments[found.value];
}

/* Whether a segment that comes at a step may be in a group. */
static bool may_join(const struct grouping *grouping, uint64_t address, size_t came, uint64_t group)
{
    for (size_t i = 0; i < grouping->pair_count; i++) {
        const struct pair *pair = &grouping->pairs[i];
        bool is_one = pair->one == address && pair->one_came == came;
        bool is_other = pair->other == address && pair->other_came == came;
        if (!is_one && !is_other)
            continue;
        uint64_t partner = is_one ? pair->other : pair->one;
        size_t partner_came = is_one ? pair->other_came : pair->one_came;
        const struct segment_group *there = segment_at(grouping, partner);
        if (there && there->came == partner_came && there->group == group)
            return false;
    }
    return true;
}

/* The group of a new segment: one in which nothing was found, that of the same stack if possible. */
static uint64_t choose_group(struct grouping *grouping, const struct gm_step *arrival,
                             const struct gm_step *request, size_t came)
{
    uint32_t latest = gm_map_get(&grouping->by_stack, request->stack);
    uint64_t best = UINT64_MAX;
    for (uint64_t group = 0; group < grouping->groups; group++) {
        if (!may_join(grouping, arrival->address, came, group) ||
            gm_allocator_would_find(&grouping->follower.run.allocator, request->size, group, 0))
            continue;
        if (group == latest)
            return group;
        best = best == UINT64_MAX ? group : best;
    }
    if (best == UINT64_MAX)
        best = grouping->groups < GROUPS_MAX ? grouping->groups++ : 0;
    return best;
}

static void add_segment(struct grouping *grouping, const struct gm_step *arrival, size_t came,
                        uint64_t group)
{
    uint64_t end = gm_range_end(arrival->address, arrival->size);
    struct gm_range found;
    if (gm_ranges_find(&grouping->there, arrival->address, end, &found))
        return;
    gm_ranges_add(&grouping->there,
                  (struct gm_range){arrival->address, end, (uint32_t)grouping->segment_count});
    GM_RESERVE(grouping->segments, grouping->segment_capacity, grouping->segment_count + 1);
    grouping->segments[grouping->segment_count++] =
        (struct segment_group){arrival->address, came, group};
}

/* Gives the steps [at, request] that belong together the stream of their group. */
static void give_streams(struct grouping *grouping, size_t at, size_t request)
{
    struct gm_step *steps = grouping->history->steps, *wanted = &steps[request];
    for (size_t i = at; i < request; i++) {
        if (steps[i].kind == GM_STEP_ARRIVE) {
            steps[i].stream = choose_group(grouping, &steps[i], wanted, i);
            add_segment(grouping, &steps[i], i, steps[i].stream);
        } else {
            const struct segment_group *segment = segment_at(grouping, steps[i].address);
            steps[i].stream = segment ? segment->group : 0;
            gm_ranges_remove(&grouping->there, steps[i].address);
        }
    }
    const struct segment_group *segment = segment_at(grouping, wanted->address);
    wanted->stream = segment ? segment->group : 0;
    if (wanted->kind == GM_STEP_ALLOC)
        gm_map_set(&grouping->by_stack, wanted->stack, (uint32_t)wanted->stream);
}

/* One past the steps that gm_follow() does at once; the last of them is the request, if there is one. */
static size_t end_of_steps(const struct gm_history *history, size_t at)
{
    size_t to = at;
    if (gm_history_empties_cache(history, at)) {
        while (to < history->step_count && history->steps[to].kind == GM_STEP_DEPART &&
               !history->steps[to].by_request)
            to++;
        return to;
    }
    while (to < history->step_count && gm_step_is_of_segment(&history->steps[to]) &&
           !gm_history_empties_cache(history, to))
        to++;
    return to < history->step_count && (to == at || history->steps[to].kind == GM_STEP_ALLOC ||
                                        history->steps[to].kind == GM_STEP_FAIL)
               ? to + 1
               : to;
}

/* The two segments of a place that was recorded and of that which the replica chose are apart. False: they are one, or
 * not known. */
static bool note_pair(struct grouping *grouping, const struct gm_step *step)
{
    const struct segment_group *recorded = segment_at(grouping, step->address);
    const struct segment_group *chosen = segment_at(grouping, grouping->follower.chosen);
    if (!recorded || !chosen || recorded == chosen)
        return false;
    GM_RESERVE(grouping->pairs, grouping->pair_capacity, grouping->pair_count + 1);
    grouping->pairs[grouping->pair_count++] =
        (struct pair){recorded->address, chosen->address, recorded->came, chosen->came};
    return true;
}

/* Follows the history with the groups as they are known. True: one more pair was found. */
static bool follow_groups(struct grouping *grouping)
{
    struct gm_history *history = grouping->history;
    bool has_more = false;
    grouping->follower = (struct gm_follower){0};
    gm_replica_run_begin(&grouping->follower.run, history, &history->settings, 0, history->total);
    grouping->follower.run.keeps_moves = true;
    grouping->groups = 1;
    for (size_t at = 0, next; at < history->step_count && !has_more; at = next) {
        size_t end = end_of_steps(history, at);
        give_streams(grouping, at, end - 1);
        grouping->follower.chosen = 0;
        next = gm_follow(&grouping->follower, at);
        const struct gm_step *last = &history->steps[next - 1];
        if (last->kind == GM_STEP_ALLOC && grouping->follower.chosen &&
            grouping->follower.chosen != last->address)
            has_more = note_pair(grouping, last);
    }
    gm_replica_run_end(&grouping->follower.run);
    gm_ranges_free(&grouping->there);
    grouping->there = (struct gm_ranges){0};
    gm_map_free(&grouping->by_stack);
    grouping->by_stack = (struct gm_map){0};
    grouping->segment_count = 0;
    return has_more;
}

static void guess_streams(struct gm_history *history)
{
    struct grouping grouping = {.history = history};
    if (history->segment_count) /* it does not begin with the program */
        return;
    uint64_t steps = 0;
    for (unsigned round = 0; round < ROUNDS_MAX && steps < STEPS_MAX; round++) {
        steps += history->step_count;
        if (!follow_groups(&grouping))
            break;
    }
    free(grouping.segments);
    free(grouping.pairs);
}

/* ---- sizes asked for ------------------------------------------------------------------------- */

#define SLACK_MAX ((uint64_t)1 << 20) /* kSmallSize: what is not split off */

/* The size of a block that was cut from a larger one is that asked for, rounded up. */
struct cut {
    uint64_t size;
    uint32_t stack;
};

static int by_stack(const void *left, const void *right)
{
    const struct cut *a = left, *b = right;
    if (a->stack != b->stack)
        return a->stack < b->stack ? -1 : 1;
    return a->size < b->size ? -1 : a->size > b->size;
}

/* Follows the history and notes which blocks were cut; those that were not are marked by `asked` 0. */
static struct cut *find_cuts(struct gm_history *history, size_t *count)
{
    struct cut *cuts = NULL;
    size_t capacity = 0;
    struct gm_follower follower = {0};
    gm_replica_run_begin(&follower.run, history, &history->settings, 0, history->total);
    follower.run.keeps_moves = true;
    for (size_t at = 0, next; at < history->step_count; at = next) {
        next = gm_follow(&follower, at);
        struct gm_step *step = &history->steps[next - 1];
        if (step->kind != GM_STEP_ALLOC || step->size <= SLACK_MAX)
            continue;
        if (!follower.run.allocator.has_split_last) {
            step->asked = 0;
            continue;
        }
        GM_RESERVE(cuts, capacity, *count + 1);
        cuts[(*count)++] = (struct cut){step->size, step->stack};
    }
    gm_replica_run_end(&follower.run);
    if (*count)
        qsort(cuts, *count, sizeof(*cuts), by_stack);
    return cuts;
}

/* The largest size of a stack that was given exactly, and of which so much can have been given; 0: there is none. */
static uint64_t size_of_stack(const struct cut *cuts, size_t count, const struct gm_step *step)
{
    size_t low = 0, high = count;
    while (low < high) { /* the first one behind */
        size_t middle = low + (high - low) / 2;
        struct cut wanted = {step->size, step->stack};
        if (by_stack(&cuts[middle], &wanted) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    const struct cut *cut = low ? &cuts[low - 1] : NULL;
    return cut && cut->stack == step->stack && step->size - cut->size <= SLACK_MAX ? cut->size : 0;
}

static void guess_sizes(struct gm_history *history)
{
    size_t count = 0;
    if (history->settings.expandable || history->has_sizes_asked)
        return; /* all are cut, or told */
    struct cut *cuts = find_cuts(history, &count);
    for (size_t i = 0; i < history->step_count; i++) {
        struct gm_step *step = &history->steps[i];
        if (step->asked || step->kind != GM_STEP_ALLOC)
            continue;
        uint64_t size = size_of_stack(cuts, count, step);
        step->asked = size ? size : step->size;
    }
    free(cuts);
}

void gm_history_guess(struct gm_history *history)
{
    if (history->has_streams)
        return;
    guess_streams(history);
    guess_sizes(history);
}
