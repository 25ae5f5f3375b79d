/* Allocations that ended after the last one was made. When a program ends it gives back what it
 * held all along: with these, what it held until then can be told. */
#ifndef GPUMEM_REPORT_LEDGER_LATE_LIVES_H
#define GPUMEM_REPORT_LEDGER_LATE_LIVES_H

#include "ledger/lives.h"
#include <stddef.h>

/* All zero: none. */
struct gm_late_lives {
    struct gm_life *entries;
    size_t count;
    size_t capacity;
    uint64_t turned; /* further ones, of a turn (see ledger.h) */
};

/* An allocation: what ended before did not end late. */
static inline void gm_late_lives_forget(struct gm_late_lives *late)
{
    late->count = late->turned = 0;
}

/* Makes room for one life more. */
void gm_late_lives_grow(struct gm_late_lives *late);

static inline void gm_late_lives_add(struct gm_late_lives *late, const struct gm_life *life)
{
    if (late->count == late->capacity)
        gm_late_lives_grow(late);
    late->entries[late->count++] = *life;
}

/* It goes on after all: its free failed. */
void gm_late_lives_remove(struct gm_late_lives *late, const struct gm_life *life);

void gm_late_lives_free(struct gm_late_lives *late);

#endif
