/* The replica of the allocator, driven by a history: a run, and a run that follows what was recorded. */
#ifndef GPUMEM_REPORT_REPLICA_FOLLOW_H
#define GPUMEM_REPORT_REPLICA_FOLLOW_H

#include "replica/allocator.h"
#include "replica/replay.h"

/* What the allocator asks the device for, or does to it. */
struct gm_replica_move {
    uint64_t address, size;
    bool arrived;
};

struct gm_replica_run {
    const struct gm_history *history;
    struct gm_allocator allocator;
    uint32_t *blocks; /* number of the history -> the allocator's; 0: none */
    uint64_t next_address;
    struct gm_replica_move *moves; /* since the last look */
    size_t move_count, move_capacity;
    bool keeps_moves;
    /* Arrivals of the recording that the next segments take their addresses from. */
    size_t arrival, arrival_end;
    uint64_t looks; /* at blocks, to put right what was done otherwise */
};

void gm_replica_run_begin(struct gm_replica_run *run, const struct gm_history *history,
                          const struct gm_allocator_settings *settings, uint64_t capacity,
                          uint64_t total);
void gm_replica_run_end(struct gm_replica_run *run);

static inline bool gm_step_is_of_segment(const struct gm_step *step)
{
    return step->kind == GM_STEP_ARRIVE || step->kind == GM_STEP_DEPART;
}

/* Whether the program emptied its cache here: the first of the segments that went for no request. */
static inline bool gm_history_empties_cache(const struct gm_history *history, size_t at)
{
    const struct gm_step *step = &history->steps[at];
    if (step->kind != GM_STEP_DEPART || step->by_request)
        return false;
    const struct gm_step *before = at ? step - 1 : NULL;
    return !before || before->kind != GM_STEP_DEPART || before->by_request;
}

/* A block is given back: a step WAIT or FREE. */
void gm_replica_give_back(struct gm_replica_run *run, const struct gm_step *step);

/* The program empties its cache; with `drops`, private pools go whose segments went with it. Returns one past the last
 * of the steps that tell of it. */
size_t gm_replica_empty_cache(struct gm_replica_run *run, size_t at, bool drops);

/* Private pools whose segments went for a request of another pool, in the steps [from, request), were dropped before. */
void gm_replica_note_drops(struct gm_replica_run *run, size_t from, size_t request);

/* ---- as it was recorded ---------------------------------------------------------------------- */

struct gm_follower {
    struct gm_replica_run run;
    bool own_addresses;
    uint64_t chosen; /* address that the latest request got, before it was put right; 0: none */
    struct gm_as_recorded result;
};

/* One past the steps that gm_follow() does at once; the last of them is the request, if there is one. */
size_t gm_follow_group_end(const struct gm_history *history, size_t at);

/* Does the steps from `at` on that belong together: segments that went because the program emptied its cache, or a
 * step with the segments that came and went for it; then puts right what the replica did otherwise. Returns one past
 * the last. */
size_t gm_follow(struct gm_follower *follower, size_t at);

#endif
