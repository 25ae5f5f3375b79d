/* Replays the records of a trace by docs/accounting.md: what was alive when, and whose it was.
 *
 * Guarantees: linear time in the records; memory for what is alive, not for what has been. Every
 * birth (and every refused allocation) is one step; the same trace always gives the same steps, so
 * that a second replay can stop where the first one found a peak. Any record is taken, also a
 * hostile one: what makes no sense is counted in `malformed`.
 */
#ifndef GPUMEM_REPORT_REPLAY_REPLAY_H
#define GPUMEM_REPORT_REPLAY_REPLAY_H

#include "ledger/counters.h"
#include "ledger/journal.h"
#include "ledger/lives.h"
#include "ledger/sites.h"
#include "ledger/unpaired.h"
#include "replay/context.h"
#include "replay/graph.h"
#include "replay/vmm.h"
#include "trace/stream.h"
#include <stdbool.h>
#include <stdint.h>

/* A memory pool that was created (not a device's default pool). */
struct gm_pool {
    uint64_t address;
    uint64_t time;
    uint32_t stack;
    uint16_t api;
    int8_t device;
    bool alive;
};

/* Who wants to know of births and deaths, as they are booked. */
struct gm_life_observer {
    void (*begins)(void *argument, const struct gm_life *life);
    void (*ends)(void *argument, const struct gm_life *life, bool implicit);
    void (*undone)(void *argument, const struct gm_life *life, bool implicit); /* alive again */
    void *argument;
};

struct gm_replay {
    struct gm_counters counters;
    struct gm_lives lives;
    struct gm_contexts contexts;
    struct gm_vmm vmm;
    struct gm_graphs graphs;
    struct gm_pool *pools;
    size_t pool_count;
    size_t pool_capacity;
    struct gm_map pool_by_address;
    struct gm_journal *journals; /* [lane] */
    size_t journal_count;

    struct gm_life_observer observer; /* functions may be NULL */
    uint64_t stop; /* after this step `stopped` is called, which may set another; 0: never */
    void (*stopped)(struct gm_replay *replay, void *argument);
    void *stop_argument;

    bool carrying;    /* carried records come first */
    bool has_history; /* it has begun, behind them */
    const struct gm_checkpoint
        *checkpoint;            /* it begins with; to be set by the caller, may be NULL */
    const struct gm_entry *now; /* being applied */
    struct gm_unpaired unpaired;

    uint64_t step;
    uint64_t events;
    uint64_t time;           /* of the latest record */
    uint64_t unknown_frees;  /* frees of addresses and handles that are not known to live */
    uint64_t lost_frees;     /* addresses, handles and places of mappings given out again without
                                their end on record */
    uint64_t malformed;      /* records that make no sense */
    uint64_t not_understood; /* records of types that a newer recorder has */
};

void gm_replay_begin(struct gm_replay *replay);
void gm_replay_end(struct gm_replay *replay);

/* Applies one record. */
void gm_replay_apply(struct gm_replay *replay, const struct gm_entry *entry);

/* All records are applied. */
void gm_replay_finish(struct gm_replay *replay);

/* ---- for the families (vmm.c, graph.c, context.c) -------------------------------------------- */

/* A life as a record tells of it. */
struct gm_life gm_replay_life(const struct gm_record *record, unsigned kind);

/* What a carried record says of its life besides: enum gm_life_flag. */
unsigned gm_replay_carried_flags(const struct gm_entry *entry);

/* An allocation call succeeded: a birth, counted in `allocs`. Returns its number. */
uint32_t gm_replay_begin_life(struct gm_replay *replay, const struct gm_life *life);

/* A death, counted in `frees` or `implicit_frees`. `journal` may be NULL: it cannot be undone. */
void gm_replay_end_life(struct gm_replay *replay, uint32_t number, bool implicit,
                        struct gm_journal *journal);

/* A death, a LIFE, is undone: its free failed. `late`: the driver was shut down already; `is_past`:
 * the death came before the history of a flight trace. Returns the life's number. */
uint32_t gm_replay_revive(struct gm_replay *replay, const struct gm_undo *undo, bool late,
                          bool is_past);

/* Notes in `journal` (which may be NULL) what was just done. */
void gm_replay_note(struct gm_replay *replay, struct gm_journal *journal,
                    const struct gm_undo *undo);

/* Whether a free of this address by the record being applied came before a birth there that was
 * stamped earlier: then it is of what lived there until then. See unpaired.h. */
bool gm_replay_pays(struct gm_replay *replay, uint64_t address);

#endif
