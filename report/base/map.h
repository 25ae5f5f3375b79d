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
};

/* Value of a key, GM_NONE if it is not there. */
uint32_t gm_map_get(const struct gm_map *map, uint64_t key);

/* Sets or replaces the value of a key. */
void gm_map_set(struct gm_map *map, uint64_t key, uint32_t value);

/* Removes a key; nothing happens if it is not there. */
void gm_map_remove(struct gm_map *map, uint64_t key);

void gm_map_free(struct gm_map *map);

#endif
