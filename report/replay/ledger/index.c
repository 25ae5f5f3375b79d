/* See index.h. Open addressing with linear probing; removal closes the gap, so there are no
 * tombstones. */
#include "replay/ledger/index.h"
#include "base/limit.h"
#include "base/memory.h"
#include "base/secret.h"
#include <stdlib.h>

#define LARGE ((size_t)16 << 20)       /* bytes: an index that is to be larger must be allowed to */
#define CAPACITY_MAX ((size_t)1 << 32) /* as many homes as hashes */

bool gm_index_grow(struct gm_index *index)
{
    struct gm_index old = *index;
    size_t capacity = old.capacity ? old.capacity * 2 : 64, mask = capacity - 1;
    size_t size = capacity * sizeof(*index->slots);
    if (capacity > CAPACITY_MAX || (size > LARGE && !gm_limits_allow_memory(size)))
        return false;
    index->capacity = capacity;
    index->secret = gm_secret();
    index->slots = gm_allocate(capacity, sizeof(*index->slots));
    for (size_t i = 0; i < capacity; i++)
        index->slots[i].number = GM_NONE;
    for (size_t i = 0; i < old.capacity; i++) {
        if (old.slots[i].number == GM_NONE)
            continue;
        size_t at = old.slots[i].hash & mask;
        while (index->slots[at].number != GM_NONE)
            at = (at + 1) & mask;
        index->slots[at] = old.slots[i];
    }
    free(old.slots);
    return true;
}

void gm_index_free(struct gm_index *index)
{
    free(index->slots);
    *index = (struct gm_index){0};
}
