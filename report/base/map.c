/* See map.h. Open addressing with linear probing; removal closes the gap, so there are no
 * tombstones. */
#include "base/map.h"
#include "base/limit.h"
#include "base/memory.h"
#include "base/secret.h"
#include <stdlib.h>

#define LARGE ((size_t)16 << 20) /* bytes: a map that is to be larger must be allowed to */

/* False if it is not allowed: no more of the trace is read then. */
static bool grow_map(struct gm_map *map)
{
    struct gm_map old = *map;
    size_t capacity = old.capacity ? old.capacity * 2 : 64;
    if (capacity * sizeof(*map->slots) > LARGE &&
        !gm_limits_allow_memory(capacity * sizeof(*map->slots)))
        return false;
    map->capacity = capacity;
    map->secret = gm_secret();
    map->slots = gm_allocate(map->capacity, sizeof(*map->slots));
    for (size_t i = 0; i < map->capacity; i++)
        map->slots[i].value = GM_NONE;
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].value != GM_NONE)
            *gm_map_find(map, old.slots[i].key) = old.slots[i];
    free(old.slots);
    return true;
}

void gm_map_set_grown(struct gm_map *map, uint64_t key, uint32_t value)
{
    if (!grow_map(map) && gm_map_get(map, key) == GM_NONE)
        return;
    struct gm_map_slot *slot = gm_map_find(map, key);
    map->count += slot->value == GM_NONE;
    *slot = (struct gm_map_slot){key, value};
}

void gm_map_remove(struct gm_map *map, uint64_t key)
{
    if (!map->count)
        return;
    size_t mask = map->capacity - 1, hole = (size_t)(gm_map_find(map, key) - map->slots);
    if (map->slots[hole].value == GM_NONE)
        return;
    map->count--;
    /* What stands behind the hole moves into it, unless that is before its home. */
    for (size_t at = (hole + 1) & mask; map->slots[at].value != GM_NONE; at = (at + 1) & mask) {
        size_t distance = (at - gm_map_home(map, map->slots[at].key)) & mask;
        if (distance >= ((at - hole) & mask)) {
            map->slots[hole] = map->slots[at];
            hole = at;
        }
    }
    map->slots[hole].value = GM_NONE;
}

void gm_map_free(struct gm_map *map)
{
    free(map->slots);
    *map = (struct gm_map){0};
}
