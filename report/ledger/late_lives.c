/* See late_lives.h. */
#include "ledger/late_lives.h"
#include "base/limit.h"
#include "base/memory.h"
#include <stdlib.h>

void gm_late_lives_grow(struct gm_late_lives *late)
{
    GM_RESERVE(late->entries, late->capacity, late->count + 1);
}

/* The latest, nearly always. */
void gm_late_lives_remove(struct gm_late_lives *late, const struct gm_life *life)
{
    for (size_t i = late->count; i-- > 0 && gm_limits_spend(1);)
        if (late->entries[i].address == life->address && late->entries[i].birth == life->birth) {
            late->entries[i] = late->entries[--late->count];
            return;
        }
}

void gm_late_lives_free(struct gm_late_lives *late)
{
    free(late->entries);
}
