/* What each place in the program does over time: how much it holds now, how often it allocates, and
 * how long its allocations live. A place is a stack, an API, a kind and a device; blocks of a
 * framework's pool have places of their own, and so has what the program says is no leak
 * (gpumem_ignore_begin), which never counts as growth.
 *
 * One look into a table per birth and death. Memory: distinct places.
 */
#ifndef GPUMEM_REPORT_ANALYSIS_ACTIVITY_H
#define GPUMEM_REPORT_ANALYSIS_ACTIVITY_H

#include "base/clock.h"
#include "base/map.h"
#include "input/trace/stream.h"
#include "judge/analysis/growth.h"
#include "judge/pool/blocks.h"
#include "judge/rounds/birthplace.h"
#include "replay/ledger/ledger.h"
#include "replay/ledger/sites.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GM_RECENT_SITES 256u
#define GM_SHORT_LIFE_NS 1000000u /* what lives shorter was temporary */

struct gm_activity {
    const struct gm_trace *trace;
    struct gm_active_site *sites; /* in the order of their first allocations */
    size_t count;
    size_t capacity;
    struct gm_map by_key;
    struct {
        uint64_t key; /* 0: none yet */
        uint32_t number;
    } recent[GM_RECENT_SITES]; /* of `by_key`, by the stack: few take turns */
    uint64_t live[2];          /* [is_block]: bytes of all places but ignored ones, now */
    struct gm_growth growth;
    struct gm_rounds rounds; /* its sites have the numbers of `sites` */
    struct gm_round_tellers tellers;
    uint64_t short_ticks; /* GM_SHORT_LIFE_NS on the record clock */
};

void gm_activity_begin(struct gm_activity *activity, const struct gm_trace *trace,
                       const struct gm_round_tellers *tellers);

/* The number of the place where a life, or a block, begins. */
uint32_t gm_activity_find_place(struct gm_activity *activity, const struct gm_life *life,
                                bool is_block, uint64_t key);
static inline uint32_t gm_activity_place(struct gm_activity *activity, const struct gm_life *life,
                                         bool is_block)
{
    int device = gm_kind_is_host(life->kind) ? -1 : life->device;
    unsigned class = is_block | (life->flags & GM_LIFE_IGNORED ? 2u : 0u);
    uint64_t key = gm_place_key(life->stack, life->api, life->kind, device, class);
    size_t at = life->stack % GM_RECENT_SITES;
    if (activity->recent[at].key != key) {
        activity->recent[at].number = gm_activity_find_place(activity, life, is_block, key);
        activity->recent[at].key = key;
    }
    return activity->recent[at].number;
}

/* More or less is live there: to be looked at when the next mark comes. */
static inline void gm_activity_touch(struct gm_activity *activity, uint32_t place)
{
    if (activity->growth.series_count)
        gm_growth_touch(&activity->growth, place);
}

/* So many bytes more are live there. */
static inline void gm_activity_add(struct gm_activity *activity, uint32_t place, uint64_t size)
{
    struct gm_active_site *site = &activity->sites[place];
    site->live += size;
    site->live_count++;
    if (site->live > site->peak)
        site->peak = site->live;
    if (site->is_ignored)
        return;
    activity->live[site->is_block] += size;
    gm_activity_touch(activity, place);
}

/* What was allocated at a place comes to life, and its life ends; `now` is on the record clock. */
static inline void gm_activity_begins(struct gm_activity *activity, uint32_t place, uint64_t size,
                                      uint64_t now)
{
    struct gm_active_site *site = &activity->sites[place];
    site->allocs++;
    site->allocated = gm_add_saturated(site->allocated, size);
    gm_activity_add(activity, place, size);
    gm_rounds_alloc(&activity->rounds, place, size, now);
}

static inline void gm_activity_ends(struct gm_activity *activity, uint32_t place, uint64_t size,
                                    uint64_t birth, uint64_t now)
{
    struct gm_active_site *site = &activity->sites[place];
    site->live -= size;
    site->live_count--;
    if (now - birth < activity->short_ticks || now < birth) {
        site->short_lived++;
        site->short_bytes = gm_add_saturated(site->short_bytes, size);
    }
    if (!site->is_ignored) {
        activity->live[site->is_block] -= size;
        gm_activity_touch(activity, place);
    }
    gm_rounds_free(&activity->rounds, place, size, birth);
}

/* More of what lives at a place came to be known. */
void gm_activity_grows(struct gm_activity *activity, const struct gm_life *life, uint64_t before);
/* A turn whose memory was observed before, life by life: its places are known. */
void gm_activity_turned(struct gm_activity *activity, const struct gm_turn *turn);
/* A life of a known place is alive again. */
void gm_activity_life_goes_on(struct gm_activity *activity, const struct gm_life *life,
                              uint64_t time);

/* Blocks of a pool come and go; `time` is now. The first sets block->place. `is_ignoring`: the program
 * says of its thread that what it allocates now is no leak. */
void gm_activity_block_begins(struct gm_activity *activity, struct gm_pool_block *block,
                              bool is_ignoring);
static inline void gm_activity_block_ends(struct gm_activity *activity,
                                          const struct gm_pool_block *block, uint64_t time)
{
    gm_activity_ends(activity, block->place, block->size, block->time, time);
}

/* A request that was refused for lack of memory. */
void gm_activity_refuse(struct gm_activity *activity, const struct gm_record *record,
                        bool is_block);

/* A mark (growth.h), after the records before it. */
void gm_activity_mark(struct gm_activity *activity, struct gm_moment moment);

/* Nothing comes any more: finds what grew. */
void gm_activity_finish(struct gm_activity *activity);

void gm_activity_free(struct gm_activity *activity);

#endif
