/* Phases: what memory did while the program was, by its own word, doing something.
 *
 * A phase is a range by its name and the names around it, or the time from one mark to the next by
 * the names of both. All times that it was open are summed. The memory is that of the whole
 * process, whoever took it: ranges that are open at the same time on several threads each see all
 * of it. Names are untrusted bytes.
 *
 * Costs O(1) amortized per event, O(places) per mark and end of a range, with a few places: the
 * devices, PyTorch's pools, pinned memory. What a hostile trace can make of it is bounded.
 */
#ifndef GPUMEM_REPORT_ANALYSIS_PHASES_H
#define GPUMEM_REPORT_ANALYSIS_PHASES_H

#include "base/clock.h"
#include "base/facts.h"
#include "base/map.h"
#include "base/names.h"
#include "input/trace/stream.h"
#include "judge/pool/blocks.h"
#include "replay/ledger/counters.h"
#include "replay/ledger/ledger.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GM_PHASES_KEPT = 16384,    /* further ones are counted only */
    GM_PHASES_OPEN_MAX = 8192, /* at one time */
    GM_PHASE_PLACES = 64       /* further ones are not looked at */
};

struct gm_phase_place {
    enum gm_phase_where where;
    int device;
    uint64_t live; /* bytes, now */
    uint64_t allocs;
    uint64_t frees;
    uint64_t allocated; /* bytes, ever */
    /* What was live at most since each moment at which a phase was opened: bytes fall, moments
     * rise, so that the answer for a moment is found at once. */
    struct gm_phase_maximum {
        uint64_t moment;
        uint64_t bytes;
    } * maxima;
    size_t maximum_count;
    size_t maximum_capacity;
};

struct gm_phase {
    bool is_interval; /* between marks; else a range */
    uint32_t parent;  /* of a range: the one around it; GM_NONE */
    uint32_t name;    /* string reference; of an interval: the mark it ends with, 0 the end */
    uint32_t from;    /* of an interval: the mark it begins with, 0 the start; of a range: whose
                         name it is (an NVTX domain), 0 the program's */
    uint64_t count;
    uint64_t unfinished;            /* times that were never ended */
    uint64_t ticks;                 /* record clock, summed */
    struct gm_phase_memory *memory; /* [place] */
    size_t memory_count;
};

/* A moment that divides the program's time: a mark, or the end of an outermost range. */
struct gm_moment {
    enum gm_moment_kind kind;
    uint32_t name; /* string reference */
};

struct gm_phase_open;

struct gm_phases {
    struct gm_phase *entries; /* one around another comes before it */
    size_t count;
    size_t capacity;
    uint32_t *order;    /* once finished: numbers, highest peak first, then first seen */
    uint64_t not_kept;  /* times of phases beyond GM_PHASES_KEPT */
    uint64_t unmatched; /* ends of ranges without a beginning */
    uint64_t marks;     /* that divide the process's time */

    struct gm_phase_place places[GM_PHASE_PLACES];
    size_t place_count;
    struct gm_phase_place *place_of[GM_PHASE_PINNED + 1][GM_DEVICES]; /* NULL: none yet */

    struct gm_map by_key;
    struct gm_phase_lane {
        struct gm_phase_open *open; /* outermost first */
        size_t count;
        uint64_t too_deep;
        uint64_t thread;
    } * lanes;
    size_t lane_count;
    struct gm_phase_open *started; /* ranges that any thread can end */
    size_t started_count;
    size_t started_capacity;
    struct gm_map by_number;        /* of a started range -> index */
    struct gm_phase_open *interval; /* since the latest mark, or the start */
    uint64_t moment;                /* counts openings */
    size_t open_count;
};

/* None yet. The time before the first mark begins at `start_time`. Phases cannot be moved. */
void gm_phases_begin(struct gm_phases *phases, uint64_t start_time);

/* A place that is not there yet; NULL if it is one too many. */
struct gm_phase_place *gm_phases_add_place(struct gm_phases *phases, enum gm_phase_where where,
                                           uint8_t slot);

/* `slot`: of the device, 0 for pinned memory. NULL if there is no room for it. */
static inline struct gm_phase_place *gm_phases_place(struct gm_phases *phases,
                                                     enum gm_phase_where where, uint8_t slot)
{
    struct gm_phase_place *place = phases->place_of[where][slot];
    return place ? place : gm_phases_add_place(phases, where, slot);
}

/* Where a life counts; NULL if nowhere. */
static inline struct gm_phase_place *gm_phases_place_of_life(struct gm_phases *phases,
                                                             const struct gm_life *life)
{
    if (life->kind == GM_KIND_PINNED)
        return gm_phases_place(phases, GM_PHASE_PINNED, 0);
    if (gm_kind_is_host(life->kind) || life->kind == GM_KIND_EXTERNAL)
        return NULL;
    return gm_phases_place(phases, GM_PHASE_DEVICE, life->slot);
}

/* What is live is no less than the latest maximum, or there is none of this moment. */
void gm_phases_add_maximum(const struct gm_phases *phases, struct gm_phase_place *place);

/* More is live than before: whatever was lower in the past is no maximum any more. */
static inline void gm_phases_raise(const struct gm_phases *phases, struct gm_phase_place *place)
{
    size_t count = place->maximum_count;
    if (!count || place->maxima[count - 1].bytes <= place->live ||
        place->maxima[count - 1].moment != phases->moment)
        gm_phases_add_maximum(phases, place);
}

/* Allocations come and go. */
static inline void gm_phases_life_begins(struct gm_phases *phases, const struct gm_life *life)
{
    struct gm_phase_place *place = gm_phases_place_of_life(phases, life);
    if (!place)
        return;
    place->live += life->size;
    place->allocated += life->size;
    place->allocs++;
    gm_phases_raise(phases, place);
}

static inline void gm_phases_life_ends(struct gm_phases *phases, const struct gm_life *life)
{
    struct gm_phase_place *place = gm_phases_place_of_life(phases, life);
    if (!place)
        return;
    place->live -= life->size;
    place->frees++;
}

void gm_phases_turned(struct gm_phases *phases, const struct gm_turn *turn);
void gm_phases_life_goes_on(struct gm_phases *phases, const struct gm_life *life);

/* A record: marks and ranges matter. Returns the moment that it is. */
struct gm_moment gm_phases_note(struct gm_phases *phases, const struct gm_entry *entry);

/* A block of a pool that comes or goes, after `blocks` took notice of it: they have totals already. */
static inline void gm_phases_note_block(struct gm_phases *phases, const struct gm_record *record,
                                        const struct gm_blocks *blocks)
{
    uint8_t slot = gm_device_slot(record->device);
    struct gm_phase_place *place = gm_phases_place(phases, GM_PHASE_POOL, slot);
    const struct gm_block_totals *totals = &blocks->device[slot];
    if (!place)
        return;
    place->live = totals->live;
    place->allocs = totals->allocs;
    place->frees = totals->frees;
    if (record->type == GM_EVENT_BLOCK_ALLOC) {
        place->allocated += record->size;
        gm_phases_raise(phases, place);
    }
}

/* Ends what is open at the end of the trace, and sorts. */
void gm_phases_finish(struct gm_phases *phases, uint64_t end_time);
void gm_phases_free(struct gm_phases *phases);

/* The time that a phase was open, in nanoseconds. */
uint64_t gm_phase_time(const struct gm_phase *phase, const struct gm_clock_scale *clock);

/* Whether a phase did anything at a place. */
bool gm_phase_is_touched(const struct gm_phase_memory *memory);

#endif
