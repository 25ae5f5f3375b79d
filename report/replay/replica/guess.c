/* What a trace does not tell of its history. See history.h. */
#include "base/map.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/ranges.h"
#include "replay/replica/replay.h"
#include <stdlib.h>

/* ---- streams and pools ----------------------------------------------------------------------- */

/*
 * A block is given to a request of its segment's stream and pool, and a segment keeps both: so segments fall into
 * groups, and the allocator never looks beyond one. They are found by what it would have done otherwise:
 *   - a request that got a new segment found nothing in its group;
 *   - a request that got another place than the replica chooses is of another group than the replica's place.
 * Each such place is a pair of segments that are apart; with more pairs all begins anew. Of a trace groups are
 * numbers that stand for streams; of a snapshot that tells the streams they are pools: those that are told, and names
 * of our own.
 */

#define ROUNDS_MAX 64u
#define STEPS_MAX ((uint64_t)8 << 20) /* of all rounds */
#define GROUPS_MAX 64u
#define PAIRS_MAX 1024u
#define OWN_POOLS ((uint64_t)1 << 62) /* names of pools that nothing tells begin here */

struct pair {
    uint64_t one, other; /* addresses of segments, and when they came, as steps */
    size_t one_came, other_came;
};

struct segment_group {
    uint64_t address;
    size_t came; /* step; of those there at the beginning behind all steps */
    uint64_t group;
    bool is_told;
};

struct grouping {
    struct gm_history *history;
    bool by_pool; /* else by stream */
    struct gm_follower follower;
    struct gm_ranges there; /* value: place in `segments` */
    struct segment_group *segments;
    size_t segment_count, segment_capacity;
    struct pair *pairs;
    size_t pair_count, pair_capacity;
    struct gm_map by_stack; /* stack -> number of the group of its latest request */
    uint64_t groups[GROUPS_MAX];
    size_t group_count, told_groups;
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

/* Whether nothing was noted yet by which two segments are apart. */
static bool may_join_both(const struct grouping *grouping, const struct segment_group *one,
                          const struct segment_group *other)
{
    for (size_t i = 0; i < grouping->pair_count; i++) {
        const struct pair *pair = &grouping->pairs[i];
        if ((pair->one == one->address && pair->one_came == one->came &&
             pair->other == other->address && pair->other_came == other->came) ||
            (pair->one == other->address && pair->one_came == other->came &&
             pair->other == one->address && pair->other_came == one->came))
            return false;
    }
    return true;
}

static uint64_t stream_of(const struct grouping *grouping, const struct gm_step *step,
                          uint64_t group)
{
    return grouping->by_pool ? step->stream : group;
}

static uint64_t guessed_pool(const struct grouping *grouping, uint64_t group)
{
    return grouping->by_pool ? group : 0;
}

/* The group of a new segment: one in which nothing was found, that of the same stack if possible. */
static uint64_t choose_group(struct grouping *grouping, const struct gm_step *arrival,
                             const struct gm_step *request, size_t came)
{
    uint32_t latest = gm_map_get(&grouping->by_stack, request->stack);
    size_t best = GROUPS_MAX;
    for (size_t i = 0; i < grouping->group_count; i++) {
        uint64_t group = grouping->groups[i];
        if (!may_join(grouping, arrival->address, came, group) ||
            gm_allocator_would_find(&grouping->follower.run.allocator, request->size,
                                    stream_of(grouping, request, group),
                                    guessed_pool(grouping, group)))
            continue;
        if (i == latest)
            return group;
        best = best == GROUPS_MAX ? i : best;
    }
    if (best < GROUPS_MAX)
        return grouping->groups[best];
    if (grouping->group_count == GROUPS_MAX)
        return grouping->groups[0];
    uint64_t name = (grouping->by_pool ? OWN_POOLS : 0) + grouping->group_count;
    return grouping->groups[grouping->group_count++] = name;
}

static void add_guess_segment(struct grouping *grouping, uint64_t address, uint64_t size,
                              struct segment_group segment)
{
    uint64_t end = gm_range_end(address, size);
    struct gm_range found;
    if (gm_ranges_find(&grouping->there, address, end, &found))
        return;
    gm_ranges_add(&grouping->there,
                  (struct gm_range){address, end, (uint32_t)grouping->segment_count});
    GM_APPEND(grouping->segments, grouping->segment_capacity, grouping->segment_count, segment);
}

static void set_group(const struct grouping *grouping, struct gm_step *step, uint64_t group)
{
    *(grouping->by_pool ? &step->pool : &step->stream) = group;
}

static void remember_stack(struct grouping *grouping, const struct gm_step *wanted, uint64_t group)
{
    for (size_t i = 0; i < grouping->group_count; i++)
        if (grouping->groups[i] == group)
            gm_map_set(&grouping->by_stack, wanted->stack, (uint32_t)i);
}

/* Gives the steps [at, request] that belong together the stream or the pool of their group. */
static void give_groups(struct grouping *grouping, size_t at, size_t request)
{
    struct gm_step *steps = grouping->history->steps, *wanted = &steps[request];
    for (size_t i = at; i < request; i++) {
        struct gm_step *step = &steps[i];
        if (step->kind == GM_STEP_ARRIVE) {
            bool is_told = grouping->by_pool && !step->is_untold;
            uint64_t group = is_told ? step->pool : choose_group(grouping, step, wanted, i);
            set_group(grouping, step, group);
            add_guess_segment(grouping, step->address, step->size,
                              (struct segment_group){step->address, i, group, is_told});
        } else {
            const struct segment_group *segment = segment_at(grouping, step->address);
            set_group(grouping, step, segment ? segment->group : 0);
            gm_ranges_remove(&grouping->there, step->address);
        }
    }
    const struct segment_group *segment = segment_at(grouping, wanted->address);
    if (gm_step_is_of_segment(wanted) || wanted->kind == GM_STEP_FAIL)
        segment = NULL;
    set_group(grouping, wanted, segment ? segment->group : 0);
    if (wanted->kind == GM_STEP_ALLOC && segment)
        remember_stack(grouping, wanted, segment->group);
}

/* The two segments of a place that was recorded and of that which the replica chose are apart. False: they are one,
 * or not known, or that is told. */
static bool note_pair(struct grouping *grouping, const struct gm_step *step)
{
    const struct segment_group *recorded = segment_at(grouping, step->address);
    const struct segment_group *chosen = segment_at(grouping, grouping->follower.chosen);
    if (!recorded || !chosen || recorded == chosen || (recorded->is_told && chosen->is_told) ||
        grouping->pair_count == PAIRS_MAX || !may_join_both(grouping, recorded, chosen))
        return false;
    GM_APPEND(grouping->pairs, grouping->pair_capacity, grouping->pair_count,
              (struct pair){recorded->address, chosen->address, recorded->came, chosen->came});
    return true;
}

/* The groups that are told, and the segments that were there, all of which count as told. */
static void begin_groups(struct grouping *grouping)
{
    const struct gm_history *history = grouping->history;
    grouping->group_count = grouping->told_groups;
    grouping->segment_count = 0;
    for (size_t i = 0; i < history->segment_count; i++) {
        const struct gm_there *there = &history->segments[i];
        add_guess_segment(grouping, there->address, there->size,
                          (struct segment_group){there->address, history->step_count + i,
                                                 there->pool, .is_told = true});
    }
}

/* Follows the history with the groups as they are known. True: one more pair was found. */
static bool follow_groups(struct grouping *grouping)
{
    struct gm_history *history = grouping->history;
    bool has_more = false;
    grouping->follower = (struct gm_follower){0};
    gm_replica_run_begin(&grouping->follower.run, history, &history->settings, 0, history->total);
    grouping->follower.run.keeps_moves = true;
    begin_groups(grouping);
    for (size_t at = 0, next; at < history->step_count; at = next) {
        give_groups(grouping, at, gm_follow_group_end(history, at) - 1);
        grouping->follower.chosen = 0;
        next = gm_follow(&grouping->follower, at);
        const struct gm_step *last = &history->steps[next - 1];
        if (last->kind == GM_STEP_ALLOC && grouping->follower.chosen &&
            grouping->follower.chosen != last->address)
            has_more |= note_pair(grouping, last);
    }
    gm_replica_run_end(&grouping->follower.run);
    gm_ranges_free(&grouping->there);
    grouping->there = (struct gm_ranges){0};
    gm_map_free(&grouping->by_stack);
    grouping->by_stack = (struct gm_map){0};
    return has_more;
}

static void note_told_pool(struct grouping *grouping, uint64_t pool)
{
    for (size_t i = 0; i < grouping->told_groups; i++)
        if (grouping->groups[i] == pool)
            return;
    if (grouping->told_groups < GROUPS_MAX)
        grouping->groups[grouping->told_groups++] = pool;
}

static void guess_groups(struct gm_history *history, bool by_pool)
{
    struct grouping grouping = {.history = history, .by_pool = by_pool, .told_groups = 1};
    if (!by_pool && history->segment_count) /* it does not begin with the program */
        return;
    for (size_t i = 0; i < history->segment_count; i++)
        note_told_pool(&grouping, history->segments[i].pool);
    for (size_t i = 0; by_pool && i < history->step_count; i++)
        if (history->steps[i].kind == GM_STEP_ARRIVE && !history->steps[i].is_untold)
            note_told_pool(&grouping, history->steps[i].pool);
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

GM_ORDER(by_stack, struct cut, GM_UP(stack) GM_UP(size))

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
    struct cut wanted = {step->size, step->stack};
    size_t behind;
    GM_BISECT(behind, count, by_stack(&cuts[behind], &wanted) <= 0);
    const struct cut *cut = behind ? &cuts[behind - 1] : NULL;
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

void gm_history_guess_groups(struct gm_history *history)
{
    if (!history->has_streams)
        guess_groups(history, false);
    else if (!history->has_pools)
        guess_groups(history, true);
}

void gm_history_guess_rest(struct gm_history *history)
{
    if (!history->has_streams)
        guess_sizes(history);
    gm_history_settle(history, false);
}

void gm_history_guess(struct gm_history *history)
{
    gm_history_guess_groups(history);
    gm_history_guess_rest(history);
}
