/* Virtual memory management: physical memory lives until its last handle reference, its last
 * mapping and its last multicast binding are gone; address ranges have lives of their own.
 *
 * Guarantees: an object is alive exactly while something refers to it. What ended it with its last
 * reference need not be what is undone: any reference that turns out to be still there brings it
 * back, from whichever thread.
 */
#ifndef GPUMEM_REPORT_REPLAY_VMM_H
#define GPUMEM_REPORT_REPLAY_VMM_H

#include "base/map.h"
#include "base/ranges.h"
#include "replay/ledger/ledger.h"
#include <stdbool.h>
#include <stdint.h>

/* Physical memory, or a multicast object. The slot outlives it, with its handle and its bindings,
 * while a journal may still bring it back. */
struct gm_vmm_object {
    uint64_t handle;
    uint32_t life;      /* GM_NONE: a multicast object, or ended */
    struct gm_life was; /* the memory's life when it ended */
    uint32_t handles;   /* references by handle */
    uint32_t mappings;  /* pieces of address ranges */
    uint32_t bindings;  /* to multicast objects that are alive */
    uint32_t held;      /* by journals, and by bindings to multicast objects that have ended */
    bool used;
    bool alive;
    bool is_memory;               /* not a multicast object */
    bool is_past;                 /* it ended before the history of a flight trace */
    bool nameless;                /* its handle is that of another object since */
    uint64_t whole_at;            /* where one mapping shows all of the memory; 0: nowhere */
    struct gm_vmm_binding *bound; /* of a multicast object, in the order of binding */
    size_t bound_count;
    size_t bound_capacity;
};

struct gm_vmm {
    struct gm_ledger *ledger; /* where the memory is booked */
    struct gm_vmm_object *objects;
    size_t count;
    size_t capacity;
    uint32_t *unused; /* slots to be used again */
    size_t unused_count;
    size_t unused_capacity;
    struct gm_map by_handle;   /* the latest object, also one that ended and may come back */
    struct gm_ranges mappings; /* value: object */
    struct gm_ranges reservations;
    uint64_t reserved; /* bytes of addresses */
    uint64_t reserved_peak;

    /* Memory is seen as a whole at an address from now on, where it was not; 0: it no more is. May be
     * NULL. Called before the life ends, or after it goes on. */
    void (*moved)(void *argument, struct gm_life *memory, uint64_t address);
    void *moved_argument;
};

/* Begins empty, and keeps what the journals of `ledger` may bring back. */
void gm_vmm_begin(struct gm_vmm *vmm, struct gm_ledger *ledger);
void gm_vmm_end(struct gm_vmm *vmm);

/* Applies a record of the family; free-like ones note in `journal` what they did. */
void gm_vmm_apply(struct gm_vmm *vmm, const struct gm_entry *entry, struct gm_journal *journal);

/* An array ended, or its context: its tiles, if it is a sparse one, keep nothing any more. */
void gm_vmm_array_ended(struct gm_vmm *vmm, uint64_t array, struct gm_journal *journal);

/* All carried records are applied. Which objects nothing refers to is known only now. */
void gm_vmm_begin_history(struct gm_vmm *vmm);

/* Takes one step back. `late`: the driver was shut down already. */
void gm_vmm_undo(struct gm_vmm *vmm, const struct gm_undo *undo, bool late);

#endif
