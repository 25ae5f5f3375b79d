/* What each place in the program does over time: how much it holds now, how often it allocates, and
 * how long its allocations live. A place is a stack, an API, a kind and a device; blocks of a
 * framework's pool have places of their own.
 *
 * One look into a table per birth and death. Memory: distinct places.
 */
#ifndef GPUMEM_REPORT_ANALYSIS_ACTIVITY_H
#define GPUMEM_REPORT_ANALYSIS_ACTIVITY_H

#include "analysis/growth.h"
#include "base/clock.h"
#include "base/map.h"
#include "ledger/lives.h"
#include "pool/blocks.h"
#include "trace/stream.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GM_SHORT_LIFE_NS 1000000u /* what lives shorter was temporary */

struct gm_active_site {
    uint32_t stack;
    uint16_t api;
    uint8_t kind; /* enum gm_kind */
    int8_t device;
    bool is_block;
    uint64_t live; /* bytes, now */
    uint64_t peak; /* bytes of this place at one time */
    uint64_t live_count;
    uint64_t allocs;
    uint64_t allocated;   /* bytes, ever */
    uint64_t short_lived; /* of the allocations that ended: within GM_SHORT_LIFE_NS */
    uint64_t short_bytes;
};

struct gm_activity {
    struct gm_active_site *sites; /* in the order of their first allocations */
    size_t count;
    size_t capacity;
    struct gm_map by_key;
    uint64_t live[2]; /* [is_block]: bytes of all places, now */
    struct gm_growth growth;
    uint64_t short_ticks; /* GM_SHORT_LIFE_NS on the record clock */
};

void gm_activity_begin(struct gm_activity *activity, const struct gm_clock_scale *clock);

/* Allocations come and go; `time` is now. */
void gm_activity_life_begins(struct gm_activity *activity, const struct gm_life *life);
void gm_activity_life_ends(struct gm_activity *activity, const struct gm_life *life, uint64_t time);
void gm_activity_life_goes_on(struct gm_activity *activity, const struct gm_life *life,
                              uint64_t time);

/* A record, before `blocks` takes notice of it: blocks of a pool matter. */
void gm_activity_note(struct gm_activity *activity, const struct gm_record *record,
                      const struct gm_blocks *blocks);

void gm_activity_free(struct gm_activity *activity);

#endif
