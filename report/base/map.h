/* A hash table from 64-bit keys to 32-bit values, for all that is looked up by address or handle.
 */
#ifndef GPUMEM_REPORT_BASE_MAP_H
#define GPUMEM_REPORT_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

#define GM_NONE UINT32_MAX /* no value: never stored */

struct gm_map_slot {
    uint64_t key;
    uint32_t value; /* GM_NONE: empty */
};

/* All zero: an empty map. */
struct gm_map {
    struct gm_map_slot *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
    uint64_t secret; /* see secret.h */
};

/* Where a key is looked for first. Keys come from traces: without the secret they could all be made
 * to have one home. */
static inline size_t gm_map_home(const struct gm_map *map, uint64_t key)
{
    key = (key ^ map->secret) * (map->secret | 1);
    key ^= key >> 32;
    key *= 0x9e3779b97f4a7c15ull;
    key ^= key >> 29;
    return (size_t)key & (map->capacity - 1);
}

/* The slot of a key, or the empty one where it belongs. The map must have slots. */
static inline struct gm_map_slot *gm_map_find(const struct gm_map *map, uint64_t key)
{
    size_t at = gm_map_home(map, key);
    while (map->slots[at].value != GM_NONE && map->slots[at].key != key)
        at = (at + 1) & (map->capacity - 1);
    return &map->slots[at];
}

/* Value of a key, GM_NONE if it is not there. */
static inline uint32_t gm_map_get(const struct gm_map *map, uint64_t key)
{
    return map->count ? gm_map_find(map, key)->value : GM_NONE;
}

/* Sets or replaces the value of a key. A new key is left out where the limits of the trace (see
 * limit.h) allow the map no more room: nothing more is read then. */
void gm_map_set_grown(struct gm_map *map, uint64_t key, uint32_t value);
static inline void gm_map_set(struct gm_map *map, uint64_t key, uint32_t value)
{
    if (__builtin_expect(map->count * 8 >= map->capacity * 5, 0)) {
        gm_map_set_grown(map, key, value);
        return;
    }
    struct gm_map_slot *slot = gm_map_find(map, key);
    map->count += slot->value == GM_NONE;
    *slot = (struct gm_map_slot){key, value};
}

/* Removes a key; nothing happens if it is not there. */
void gm_map_remove(struct gm_map *map, uint64_t key);

void gm_map_free(struct gm_map *map);

#endif
