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
