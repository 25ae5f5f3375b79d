/* The ledger of a replay: what is alive, what was ever counted, and what can still be undone.
 *
 * The families of replay/ say what a record means; here it is booked. Guarantees: every birth (and
 * every refused allocation) is one step; the same trace always gives the same steps. What was
 * entered once is taken out once, so that no sum goes below zero.
 */
#ifndef GPUMEM_REPORT_LEDGER_LEDGER_H
#define GPUMEM_REPORT_LEDGER_LEDGER_H

#include "input/trace/stream.h"
#include "replay/ledger/counters.h"
#include "replay/ledger/journal.h"
#include "replay/ledger/lives.h"
#include "replay/ledger/unpaired.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the driver answers when it is shut down already: CUDA_ERROR_DEINITIALIZED,
 * cudaErrorCudartUnloading. */
#define GM_SHUTTING_DOWN 4u

/* What one place took in a turn. */
struct gm_turn_site {
    uint32_t stack;
    uint16_t api;
    uint64_t births;
    uint64_t bytes;
    uint64_t first; /* bytes of the first birth */
    uint64_t live;  /* bytes; none behind the turn */
    uint64_t most;  /* of those, at one time */
};

/* Births and deaths of one kind on one device, by one record, of which none is left behind. */
struct gm_turn {
    uint8_t kind;
    int8_t device;
    uint64_t low, high; /* addresses: the first and the last */
    uint64_t births;
    uint64_t bytes;
    uint64_t most; /* bytes alive at one time */
    struct gm_turn_site *sites;
    size_t site_count;
};

/* Who wants to know of births and deaths, as they are booked. */
struct gm_life_observer {
    void (*begins)(void *argument, struct gm_life *life); /* may set life->place */
    void (*ends)(void *argument, const struct gm_life *life, bool implicit);
    void (*undone)(void *argument, const struct gm_life *life, bool implicit); /* alive again */
    void (*turned)(void *argument, const struct gm_turn *turn); /* if NULL: of each life */
    void (*grew)(void *argument, const struct gm_life *life,
                 uint64_t before); /* from so many bytes */
    void *argument;
};

/* Whoever has to keep what an entry of a journal needs to be undone: an object of the VMM. */
struct gm_undo_keeper {
    void (*hold)(void *argument, const struct gm_undo *undo);
    void (*release)(void *argument, const struct gm_undo *undo);
    void *argument;
};

/* Lists of the lives that end with a context: each begins with a number in gm_ledger.lives. */
struct gm_mortals {
    uint32_t *first; /* [context], as the records number them */
    size_t count;
    size_t capacity;
    uint32_t first_unknown[GM_DEVICES]; /* [device + 1]: allocated in a context that is not known */
    uint32_t first_untold;              /* in one whose end is not on record */
};

struct gm_ledger {
    struct gm_counters counters;
    struct gm_lives lives;
    struct gm_mortals mortals;
    struct gm_journal *journals; /* [lane] */
    size_t journal_count;
    size_t ignoring; /* lanes of which gm_journal.is_ignoring */
    struct gm_unpaired unpaired;

    struct gm_life_observer observer; /* functions may be NULL */
    struct gm_undo_keeper keeper;     /* functions may be NULL */
    uint64_t stop; /* after this step `stopped` is called, which may set another; 0: never */
    void (*stopped)(void *argument);
    void *stop_argument;

    const struct gm_entry *now; /* being applied */
    bool carrying;              /* carried records come first */

    uint64_t step;
    uint64_t addressed; /* births and revivals at addresses, but for turns */
    uint64_t events;
    uint64_t time;          /* of the latest record */
    uint64_t unknown_frees; /* frees of addresses and handles that are not known to live */
    uint64_t lost_frees;    /* addresses, handles and places of mappings given out again without
                               their end on record */
    uint64_t malformed;     /* records that make no sense */
};

void gm_ledger_begin(struct gm_ledger *ledger);
void gm_ledger_end(struct gm_ledger *ledger);

/* Whether its parts agree with one another: what lives, the index, the lists, the sums. Of checked builds
 * (base/assert.h). */
bool gm_ledger_is_valid(const struct gm_ledger *ledger);

static inline void gm_life_set_device(struct gm_life *life, int8_t device)
{
    life->device = device;
    life->slot = gm_device_slot(device);
}

/* A new life, to be begun: as a record tells of it. It is filled in where it stays: what is written
 * in small parts and copied at once has to wait for the parts. */
static inline struct gm_life *gm_ledger_draft(struct gm_ledger *ledger,
                                              const struct gm_record *record, unsigned kind)
{
    struct gm_life *life = gm_lives_draft(&ledger->lives);
    life->address = record->address;
    life->size = record->size;
    life->time = record->time;
    life->stack = record->stack;
    life->object = GM_NONE;
    life->references = 0;
    life->place = 0;
    life->context = record->context;
    life->api = record->api;
    life->kind = (uint8_t)kind;
    gm_life_set_device(life, record->device);
    life->flags = 0;
    return life;
}

/* What a carried record says of its life besides: enum gm_life_flag. */
static inline unsigned gm_life_carried_flags(const struct gm_entry *entry)
{
    return entry->carried && entry->record->extra == GM_SHUTTING_DOWN ? GM_LIFE_LATE : 0;
}

/* An allocation call succeeded: the birth of a draft, counted in `allocs`. Returns its number. */
uint32_t gm_ledger_begin_life(struct gm_ledger *ledger, struct gm_life *life);

/* More of a life's bytes came to be known. */
void gm_ledger_grow(struct gm_ledger *ledger, uint32_t number, uint64_t size);

/* A death, counted in `frees` or `implicit_frees`. `slot`: of its address in the index; NULL: it is to
 * be looked for, if the life has one. `journal` may be NULL: it cannot be undone. */
void gm_ledger_end_life(struct gm_ledger *ledger, uint32_t number, struct gm_index_slot *slot,
                        bool implicit, struct gm_journal *journal);

/* A death, a LIFE, is undone: its free failed. `late`: the driver was shut down already; `is_past`:
 * the death came before the history of a flight trace. Returns the life's number. */
uint32_t gm_ledger_revive(struct gm_ledger *ledger, const struct gm_undo *undo, bool late,
                          bool is_past);

/* Books a turn as its births and deaths would be, where nothing lives at their addresses. False, and
 * nothing is booked, where more comes of them than calls: they are to be booked one by one. */
bool gm_ledger_turn(struct gm_ledger *ledger, const struct gm_turn *turn);

/* The latest life, of those that are left, that ends with `context` (0: not known, and allocated on
 * `device`); GM_NONE if there is none. */
uint32_t gm_ledger_mortal(const struct gm_ledger *ledger, uint32_t context, int device);

/* A birth or a refused allocation is booked. */
static inline void gm_ledger_next_step(struct gm_ledger *ledger)
{
    if (++ledger->step == ledger->stop)
        ledger->stopped(ledger->stop_argument);
}

/* Whether a free of this address by the record being applied came before a birth there that was
 * stamped earlier: then it is of what lived there until then. See unpaired.h. */
bool gm_ledger_pays_one(struct gm_ledger *ledger, uint64_t address);
static inline bool gm_ledger_pays(struct gm_ledger *ledger, uint64_t address)
{
    return ledger->unpaired.count != 0 && gm_ledger_pays_one(ledger, address);
}

/* A free of an address where nothing is known to live. */
void gm_ledger_note_unknown_free(struct gm_ledger *ledger, uint64_t address,
                                 struct gm_journal *journal);

/* The journal of a lane. Valid until another lane's is asked for. */
void gm_ledger_add_journals(struct gm_ledger *ledger, uint32_t lane);
static inline struct gm_journal *gm_ledger_journal(struct gm_ledger *ledger, uint32_t lane)
{
    if (lane >= ledger->journal_count)
        gm_ledger_add_journals(ledger, lane);
    return &ledger->journals[lane];
}

/* Whether the program says of a lane's thread that what it allocates now is no leak. */
static inline bool gm_ledger_is_ignoring(const struct gm_ledger *ledger, uint32_t lane)
{
    return ledger->ignoring && lane < ledger->journal_count && ledger->journals[lane].is_ignoring;
}
void gm_ledger_set_ignoring(struct gm_ledger *ledger, uint32_t lane, bool is_ignoring);

/* Notes in `journal` (which may be NULL) what was just done. */
void gm_ledger_note(struct gm_ledger *ledger, struct gm_journal *journal,
                    const struct gm_undo *undo);

/* Nothing of what the journal holds can be undone any more. */
void gm_ledger_release(struct gm_ledger *ledger, struct gm_journal *journal);
static inline void gm_ledger_forget(struct gm_ledger *ledger, struct gm_journal *journal)
{
    if (journal->holding)
        gm_ledger_release(ledger, journal);
    journal->type = GM_EVENT_NONE;
    journal->count = 0;
}

#endif
