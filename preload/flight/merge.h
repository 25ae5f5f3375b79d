/*
 * The records of all lanes in the order of time, as far as that is settled: what folds them (fold.h)
 * sees them so. A flight recorder merges its rings before they are packed (flight.c); a trace that
 * grows is merged when the program asks what is alive (live/live.c).
 *
 * Guarantees: of one lane the records come in the order of their sequence; of several in that of
 * time, then of the lanes' numbers, as a reader merges them. A record is given only when no thread
 * can commit an earlier one any more, but for lanes that were given up.
 *
 * One thread at a time: whoever folds holds the lock of that.
 */
#ifndef GPUMEM_PRELOAD_FLIGHT_MERGE_H
#define GPUMEM_PRELOAD_FLIGHT_MERGE_H

#include "ring/lane.h"

struct gm_merge_lane {
    const struct gm_record *records; /* record n, of those up to `loaded`: at (n - first) & mask */
    uint64_t first;
    uint64_t mask;
    uint64_t next;   /* first record that is not folded */
    uint64_t loaded; /* what `records` reaches to */
    uint64_t head;   /* what was committed at the latest look */
    uint64_t latest; /* time of the last of those */
    uint64_t time;   /* of its latest record folded: within a lane time does not go back */
    uint32_t waited; /* for others, with a full ring */
    bool awaited;    /* it may commit a record of before the latest look */
    bool given_up;   /* others have waited in vain for its next record */
};

extern struct gm_merge_lane *gm_merge_lanes; /* GM_LANES_MAX, once prepared */
extern uint32_t gm_merge_lane_count;         /* at the latest look */
extern uint64_t gm_merge_latest_time;        /* of the records folded */

/* Before the first look. `load` replaces a lane's records by those from `loaded` on, and keeps the
 * one at `next` if it is not folded. If some are lost there, it moves `next` over them, but false
 * while that one is left: so it is if there are no more. NULL: all are in the rings.
 * False: there is no room. */
bool gm_merge_prepare(bool (*load)(uint32_t lane));

/* Begins a look at all lanes: sets gm_merge_lane_count, and returns the present. */
uint64_t gm_merge_begin_look(void);

/* Notes what the lane has committed. Lowers *safe_time to the lane's latest record if its owner may
 * still commit one behind that. Nothing may be packed of the lane meanwhile beyond what was seen. */
void gm_merge_look_at(uint32_t lane, uint64_t *safe_time);

/* Folds what was committed before `cut`. */
void gm_merge_fold_before(uint64_t cut);

void gm_merge_forget(void);

#endif
