/*
 * What all families of records share as they are folded: entries and their ends, lives of addresses,
 * and what was stamped in the wrong order. Needs gm_pack_lock.
 */
#ifndef GPUMEM_PRELOAD_FLIGHT_FOLD_LIVES_H
#define GPUMEM_PRELOAD_FLIGHT_FOLD_LIVES_H

#include "flight/carry.h"

/* Totals over all records folded so far. */
extern struct gm_flight_totals gm_fold_totals;
extern uint64_t gm_fold_lost_frees;    /* births at addresses and under handles that lived, mappings
                                          over others: a free was not seen */
extern uint64_t gm_fold_unknown_frees; /* frees of addresses and handles that did not */
extern uint64_t gm_fold_late;          /* stamped in the wrong order, and carried over in between */
extern uint64_t gm_fold_missed; /* for which there was no memory: what is carried is not all */

/* The state of each lane. */
struct gm_fold_lane {
    uint32_t ending; /* the latest free-like record, as long as something came of it */
    uint32_t range;  /* the innermost open range */
    bool ignoring;   /* what begins here now is ignored */
    bool told;       /* whether what is being carried over says so of the lane */
    bool unknown;    /* the ending is a free of what was not known to live */
};
extern struct gm_fold_lane *gm_fold_lanes; /* GM_LANES_MAX */

/* Whether its end is one of the frees that docs/accounting.md counts; memory of the VMM counts
 * itself. */
static inline bool gm_fold_is_birth(const struct gm_carried *entry)
{
    return entry->role == GM_CARRY_LIFE && !entry->reference;
}

/* The count that its end goes into. */
static inline uint64_t *gm_fold_frees_of(const struct gm_carried *entry)
{
    return entry->implicit ? &gm_fold_totals.implicit_frees : &gm_fold_totals.frees;
}

/* Adds an entry, and counts it as missed if there is no memory. */
uint32_t gm_fold_add(enum gm_carry_role role, uint64_t key, const struct gm_record *record,
                     const struct gm_record *detail, uint32_t lane);

/* A free-like or birth record whose other half may have been stamped late on another processor. */
void gm_fold_note(enum gm_event type, uint64_t address, uint64_t time, uint32_t lane);

/* The free was undone: it is none of those any more. */
void gm_fold_drop_note(uint64_t address, uint32_t lane);

/* A checkpoint has been written, which takes each for what it seems. */
void gm_fold_notes_are_carried(void);

/* A birth at an address: ends what lived there. `early`: how long before its record it may have
 * been. */
void gm_fold_begin_life(const struct gm_record *record, uint64_t early, uint32_t lane);

/* Ends what lives at an address, for good. */
void gm_fold_end_at(uint64_t address);

/* Whether a free, of which the call may have taken effect `early` before `time`, is of what lived
 * at the address before a birth there. */
bool gm_fold_pays(uint64_t address, uint64_t time, uint64_t early, uint32_t lane);

/* A free of what is not known to live. `ending`, its ENDING, will be kept: it may be undone. */
void gm_fold_unknown_free(uint32_t lane, uint32_t ending);

/* It lives on because a free failed, with this status. */
void gm_fold_mark_late(uint32_t number, uint32_t status);

/* `ending`, an ENDING, ended this entry; 0: it ended for good. */
void gm_fold_end(uint32_t number, uint32_t ending, bool implicit);

/* Before the first record. False: there is no room. */
bool gm_fold_lives_prepare(void);

/* In a child. */
void gm_fold_lives_forget(void);

#endif
