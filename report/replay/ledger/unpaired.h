/* Allocations and frees of one address that two threads stamped in the wrong order.
 *
 * Frees are recorded before their call and allocations after it, so an address is never seen given
 * out again before its free; but two processors' clocks may disagree by GM_CLOCK_SKEW, and what a
 * graph's launch frees is recorded when the launch has returned. An address cannot be allocated
 * while it lives. So a birth at a live address is owed a free, and a free of it on another thread
 * that may have come before pays it: it ends what lived there then, not what lives there now. In
 * the same way a free of an unknown address may be of an allocation that is stamped just behind it.
 *
 * It holds for addresses that the driver chooses. A handle of physical memory needs no such rule: its
 * release and the creation that gives it out anew are a system call each, which take longer than
 * clocks disagree.
 *
 * Guarantees: what is not paid in that time stays a free, or an allocation, that was not seen.
 * Births and frees of an address are as many as before, so that nothing missing is ever hidden.
 * Memory is fixed: of more than GM_UNPAIRED_KEPT at a time the oldest is given up. preload/flight/fold.c
 * has the same rule.
 */
#ifndef GPUMEM_REPORT_LEDGER_UNPAIRED_H
#define GPUMEM_REPORT_LEDGER_UNPAIRED_H

#include <gpumem/trace.h>
#include <stdbool.h>
#include <stdint.h>

#define GM_UNPAIRED_KEPT 64u /* as in preload/flight/fold.c */

enum gm_unpaired_kind { GM_UNPAIRED_NONE, GM_UNPAIRED_BIRTH, GM_UNPAIRED_FREE };

struct gm_unpaired_note {
    uint64_t address;
    uint64_t time; /* record clock */
    uint32_t lane;
    uint8_t kind; /* enum gm_unpaired_kind */
};

/* All zero: none. */
struct gm_unpaired {
    struct gm_unpaired_note notes[GM_UNPAIRED_KEPT];
    uint32_t next;
    uint32_t count; /* of those in use */
};

/* When a record's call may have taken effect at the earliest, by the clock of any processor. */
uint64_t gm_unpaired_since(const struct gm_record *record);

void gm_unpaired_note(struct gm_unpaired *unpaired, enum gm_unpaired_kind kind,
                      const struct gm_record *record, uint64_t address, uint32_t lane);

/* Takes out a note of this kind and address that another lane made, not before `since`. False if
 * there is none; else `lane` becomes that lane. */
bool gm_unpaired_take(struct gm_unpaired *unpaired, enum gm_unpaired_kind kind, uint64_t address,
                      uint64_t since, uint32_t *lane);

/* Whether there are notes of addresses from `low` to `high`. */
bool gm_unpaired_is_in(const struct gm_unpaired *unpaired, uint64_t low, uint64_t high);

/* A free that was noted failed: takes out the lane's own note. */
void gm_unpaired_drop(struct gm_unpaired *unpaired, uint64_t address, uint32_t lane);

#endif
