/* See lives.h. */
#include "replay/ledger/lives.h"
#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

void gm_lives_begin(struct gm_lives *lives)
{
    *lives = (struct gm_lives){.free = GM_NONE};
}

void gm_lives_end(struct gm_lives *lives)
{
    free(lives->memory);
    gm_index_free(&lives->by_address);
}

/* Memory of this size can be moved without a copy (mremap), which it cannot be if it is asked for by
 * alignment. So that is made here, and the lives follow if the memory begins elsewhere in its line. */
void gm_lives_grow(struct gm_lives *lives)
{
    const size_t line = sizeof(*lives->slots);
    size_t before = (size_t)((char *)lives->slots - (char *)lives->memory);
    lives->capacity = gm_next_capacity(lives->capacity, (size_t)lives->used + 1);
    lives->memory = gm_resize(lives->memory, lives->capacity + 1, line);
    size_t start = (line - (uintptr_t)lives->memory % line) % line;
    lives->slots = (struct gm_life *)(void *)((char *)lives->memory + start);
    if (start != before)
        memmove(lives->slots, (char *)lives->memory + before, lives->used * line);
}

#define FEW 8192u /* lives that stay in the nearer caches */
#define AHEAD 128u

/* Three looks, each of which needs what the one before brought: the slot of the index, the life, and
 * its neighbours in the list of its context. Each goes for all records at once. */
void gm_lives_prefetch(const struct gm_lives *lives, const struct gm_record *records, size_t count)
{
    uint32_t numbers[AHEAD];
    if (lives->count < FEW)
        return;
    while (count) {
        size_t some = count < AHEAD ? count : AHEAD;
        for (size_t i = 0; i < some; i++)
            gm_index_prefetch(&lives->by_address, records[i].address);
        for (size_t i = 0; i < some; i++) {
            numbers[i] = gm_lives_find(lives, records[i].address);
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
