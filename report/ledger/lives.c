/* See lives.h. */
#include "ledger/lives.h"
#include "base/memory.h"
#include <stdlib.h>

void gm_lives_begin(struct gm_lives *lives)
{
    *lives = (struct gm_lives){.free = GM_NONE};
}

void gm_lives_end(struct gm_lives *lives)
{
    free(lives->slots);
    gm_map_free(&lives->by_address);
}

void gm_lives_grow(struct gm_lives *lives)
{
    GM_RESERVE(lives->slots, lives->capacity, (size_t)lives->used + 1);
}

#define FEW 8192u /* lives that stay in the nearer caches */
#define AHEAD 128u

/* Three looks, each of which needs what the one before brought: the slot of the map, the life, and
 * its neighbours in the list of its context. Each goes for all records at once. */
void gm_lives_prefetch(const struct gm_lives *lives, const struct gm_record *records, size_t count)
{
    uint32_t numbers[AHEAD];
    if (lives->count < FEW)
        return;
    while (count) {
        size_t some = count < AHEAD ? count : AHEAD;
        for (size_t i = 0; i < some; i++)
            gm_map_prefetch(&lives->by_address, records[i].address);
        for (size_t i = 0; i < some; i++) {
            numbers[i] = gm_map_get(&lives->by_address, records[i].address);
            if (numbers[i] != GM_NONE)
                __builtin_prefetch(&lives->slots[numbers[i]], 1);
        }
        for (size_t i = 0; i < some; i++) {
            if (numbers[i] == GM_NONE)
                continue;
            const struct gm_life *life = &lives->slots[numbers[i]];
            if (life->next != GM_NONE)
                __builtin_prefetch(&lives->slots[life->next], 1);
            if (life->previous != GM_NONE)
                __builtin_prefetch(&lives->slots[life->previous], 1);
        }
        records += some;
        count -= some;
    }
}
