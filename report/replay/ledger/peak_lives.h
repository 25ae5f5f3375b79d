/* Who held the memory when the most was live, noted while the records pass.
 *
 * Whatever lives when a peak is reached either lives on to the end or ends later: what ends is kept
 * here, until a higher peak comes. Then the lives of a peak are those of the ledger that are old
 * enough, and those that were kept. One look per death. Memory: what was alive at the peaks.
 */
#ifndef GPUMEM_REPORT_LEDGER_PEAK_LIVES_H
#define GPUMEM_REPORT_LEDGER_PEAK_LIVES_H

#include "replay/ledger/ledger.h"

/* A life of a peak that ended since. */
struct gm_gone_life {
    uint64_t address;
    uint64_t size;
    uint32_t number; /* that it had in gm_ledger.lives */
    uint32_t stack;
    uint16_t api;
    uint8_t kind;
    int8_t device;
};

struct gm_gone_lives {
    uint64_t step; /* of the peak that they are of */
    struct gm_gone_life *entries;
    size_t count;
    size_t capacity;
};

/* All zero: none. */
struct gm_peak_lives {
    struct gm_gone_lives device[GM_DEVICES]; /* [ordinal + 1] */
    struct gm_gone_lives pinned;
};

/* The observer of `ledger` is told that `life`, still in its slot, ends. */
void gm_peak_lives_keep(struct gm_peak_lives *peaks, const struct gm_ledger *ledger,
                        const struct gm_life *life);
static inline void gm_peak_lives_ends(struct gm_peak_lives *peaks, const struct gm_ledger *ledger,
                                      const struct gm_life *life)
{
    /* Most begin and end between two peaks. */
    if (life->entered <= ledger->counters.device[life->slot].peak.step ||
        life->kind == GM_KIND_PINNED)
        gm_peak_lives_keep(peaks, ledger, life);
}

/* Calls `visit` for all that lived at the peak of a device, or, if `kind` is GM_KIND_PINNED, at that
 * of pinned memory, in the order of their numbers. Of these lives address, size, stack, api, kind
 * and device are told. */
void gm_peak_lives_visit(const struct gm_peak_lives *peaks, const struct gm_ledger *ledger,
                         unsigned kind, int device,
                         void (*visit)(void *argument, const struct gm_life *life), void *argument);

void gm_peak_lives_free(struct gm_peak_lives *peaks);

#endif
