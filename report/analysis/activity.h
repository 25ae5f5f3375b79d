/* What each place in the program does over time: how much it holds now, how often it allocates, and
 * how long its allocations live. A place is a stack, an API, a kind and a device; blocks of a
 * framework's pool have places of their own, and so has what the program says is no leak
 * (gpumem_ignore_begin), which never counts as growth.
 *
 * One look into a table per birth and death. Memory: distinct places.
 */
#ifndef GPUMEM_REPORT_ANALYSIS_ACTIVITY_H
#define GPUMEM_REPORT_ANALYSIS_ACTIVITY_H

#include "analysis/growth.h"
#include "base/clock.h"
#include "base/map.h"
#include "ledger/ledger.h"
#include "pool/blocks.h"
#include "rounds/birthplace.h"
#include "trace/stream.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GM_SHORT_LIFE_NS 1000000u /* what lives shorter was temporary */

struct gm_activity {
    const struct gm_trace *trace;
    struct gm_active_site *sites; /* in the order of their first allocations */
    size_t count;
    size_t capacity;
    struct gm_map by_key;
    uint64_t live[2]; /* [is_block]: bytes of all places but ignored ones, now */
    struct gm_growth growth;
    struct gm_rounds rounds; /* its sites have the numbers of `sites` */
    struct gm_round_tellers tellers;
    uint64_t short_ticks; /* GM_SHORT_LIFE_NS on the record clock */
};

void gm_activity_begin(struct gm_activity *activity, const struct gm_trace *trace,
                       const struct gm_round_tellers *tellers);

/* Allocations come and go; `time` is now. The first sets life->place, the number of its site, which
 * the others rely on. */
void gm_activity_life_begins(struct gm_activity *activity, struct gm_life *life, uint64_t time);
void gm_activity_life_ends(struct gm_activity *activity, const struct gm_life *life, uint64_t time);
/* A turn whose memory was observed before, life by life: its places are known. */
void gm_activity_turned(struct gm_activity *activity, const struct gm_turn *turn);
void gm_activity_life_goes_on(struct gm_activity *activity, const struct gm_life *life,
                              uint64_t time);

/* Blocks of a pool come and go; `time` is now. The first sets block->place. `is_ignoring`: the program
 * says of its thread that what it allocates now is no leak. */
void gm_activity_block_begins(struct gm_activity *activity, struct gm_pool_block *block,
                              bool is_ignoring);
void gm_activity_block_ends(struct gm_activity *activity, const struct gm_pool_block *block,
                            uint64_t time);

/* A request that was refused for lack of memory. */
void gm_activity_refuse(struct gm_activity *activity, const struct gm_record *record,
                        bool is_block);

/* A mark (growth.h), after the records before it. */
void gm_activity_mark(struct gm_activity *activity, struct gm_moment moment);

/* Nothing comes any more: finds what grew. */
void gm_activity_finish(struct gm_activity *activity);

void gm_activity_free(struct gm_activity *activity);

#endif
