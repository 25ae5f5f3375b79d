/* See map.h. Open addressing with linear probing; removal closes the gap, so there are no
 * tombstones. */
#include "base/map.h"
#include "base/memory.h"
#include <stdlib.h>

static size_t home(const struct gm_map *map, uint64_t key)
{
    key ^= key >> 32;
    key *= 0x9e3779b97f4a7c15ull;
    key ^= key >> 29;
    return (size_t)key & (map->capacity - 1);
}

/* The slot of a key, or the empty one where it belongs. */
static size_t find(const struct gm_map *map, uint64_t key)
{
    size_t at = home(map, key);
    while (map->slots[at].value != GM_NONE && map->slots[at].key != key)
        at = (at + 1) & (map->capacity - 1);
    return at;
}

static void grow(struct gm_map *map)
{
    struct gm_map old = *map;
    map->capacity = old.capacity ? old.capacity * 2 : 64;
    map->slots = gm_allocate(map->capacity, sizeof(*map->slots));
    for (size_t i = 0; i < map->capacity; i++)
        map->slots[i].value = GM_NONE;
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].value != GM_NONE)
            map->slots[find(map, old.slots[i].key)] = old.slots[i];
    free(old.slots);
}

uint32_t gm_map_get(const struct gm_map *map, uint64_t key)
{
    return map->count ? map->slots[find(map, key)].value : GM_NONE;
}

void gm_map_set(struct gm_map *map, uint64_t key, uint32_t value)
{
    if (map->count * 8 >= map->capacity * 5)
        grow(map);
    size_t at = find(map, key);
    map->count += map->slots[at].value == GM_NONE;
    map->slots[at] = (struct gm_map_slot){key, value};
}

void gm_map_remove(struct gm_map *map, uint64_t key)
{
    if (!map->count)
        return;
    size_t mask = map->capacity - 1, hole = find(map, key);
    if (map->slots[hole].value == GM_NONE)
        return;
    map->count--;
    /* What stands behind the hole moves into it, unless that is before its home. */
    for (size_t at = (hole + 1) & mask; map->slots[at].value != GM_NONE; at = (at + 1) & mask) {
        size_t distance = (at - home(map, map->slots[at].key)) & mask;
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
