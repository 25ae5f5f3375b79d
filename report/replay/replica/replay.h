/* A history replayed: as it was recorded, or under other settings. */
#ifndef GPUMEM_REPORT_REPLICA_REPLAY_H
#define GPUMEM_REPORT_REPLICA_REPLAY_H

#include "replay/replica/allocator.h"
#include "replay/replica/history.h"

/* What the recording says. */
struct gm_recorded {
    uint64_t reserved_peak; /* bytes */
    uint64_t device_allocations;
    uint64_t out_of_memory;
    uint64_t live_peak; /* bytes asked for (of a trace: given) */
    uint64_t device_ns; /* time in the calls that took memory from the device; 0 not told */
    uint64_t segment_ns,
        mapping_ns; /* means of a segment's, and of those for a part of an expandable one */
};

/* How far the replica does what was recorded, under the settings that were recorded. */
struct gm_as_recorded {
    uint64_t events; /* of the recording */
    uint64_t
        equal_events; /* of these the replica did the same: place, new segment, segment given back */
    uint64_t
        equal_reserved; /* of these, after which as much was reserved, with addresses of our own */
    uint64_t reserved_peak; /* with addresses of our own, bytes */
};

/* A history under some settings. */
struct gm_outcome {
    uint64_t reserved_peak; /* bytes */
    uint64_t device_allocations;
    uint64_t out_of_memory; /* requests refused */
    uint64_t retries;       /* requests for which the cache was emptied */
    uint64_t refused_size;  /* of the first request refused, bytes asked */
    size_t refused_step;    /* number of its step */
};

/* The least that is needed. */
struct gm_bounds {
    uint64_t live_peak;    /* the largest live set, bytes asked for */
    uint64_t best_packing; /* the best packing found with knowledge of the future, bytes */
};

/* How long `count` calls take, in ns, by the mean of those recorded; 0: none of the kind was told. */
uint64_t gm_recorded_device_ns(const struct gm_recorded *recorded, bool expandable, uint64_t count);

struct gm_recorded gm_replay_recorded(const struct gm_history *history);
/* Versions of PyTorch differ in the order of free blocks of one size. Nothing tells the version, so the order that does
 * more as it was recorded becomes one of the history's settings. */
struct gm_as_recorded gm_replay_as_recorded(struct gm_history *history);

/* Instead of gm_history_guess() and gm_replay_as_recorded(), where nothing else is wanted of them: whether the replica does
 * all but one in `share` events as they were recorded. That it does not is often found at once. */
bool gm_replay_is_trusted(struct gm_history *history, uint64_t share);

/* `capacity`: bytes that the allocator can have; 0: without limit. `total`: of the device, for
 * per_process_memory_fraction; 0 unknown. */
struct gm_outcome gm_replay_under(const struct gm_history *history,
                                  const struct gm_allocator_settings *settings, uint64_t capacity,
                                  uint64_t total);

/* How much would have been reserved had the device given new segments other addresses: best fit takes the lowest of
 * equal blocks, so addresses decide which block is cut. All are bytes. */
struct gm_placements {
    uint64_t recorded;
    uint64_t least, most; /* over descending and several scattered addresses, and as recorded */
    bool
        is_known; /* the replica came to what was recorded; else least and most are what was recorded */
};
struct gm_placements gm_replay_placements(struct gm_history *history);

struct gm_bounds gm_replay_bounds(const struct gm_history *history);

/* ---- the allocator, driven by a history (follow.c) ----------------------------------------------- */

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
