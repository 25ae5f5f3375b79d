/* Bytes and counts summed up by where they came from: stack, API, kind, device and, for leaks,
 * class. */
#ifndef GPUMEM_REPORT_LEDGER_SITES_H
#define GPUMEM_REPORT_LEDGER_SITES_H

#include "base/map.h"
#include <stddef.h>
#include <stdint.h>

struct gm_site {
    uint32_t stack;
    uint32_t order; /* in which it was first seen */
    uint16_t api;
    uint8_t kind; /* enum gm_kind */
    int8_t device;
    uint8_t class; /* enum gm_leak_class; 0 where it does not matter */
    uint64_t bytes;
    uint64_t count;
};

/* What tells one place from another, as one word: where a stack was not recorded, or one line calls
 * several functions, the API does. `sort` is what else the caller distinguishes, below 16. */
static inline uint64_t gm_place_key(uint32_t stack, uint16_t api, unsigned kind, int device,
                                    unsigned sort)
{
    return stack | (uint64_t)(kind & 15) << 32 | (uint64_t)(sort & 15) << 36 |
           (uint64_t)(uint8_t)device << 40 | (uint64_t)api << 48;
}

/* All zero: none yet. */
struct gm_sites {
    struct gm_site *entries;
    size_t count;
    size_t capacity;
    struct gm_map by_key;
    uint64_t bytes; /* of all */
};

/* Adds to the site of this stack, API, kind, device and class. `bytes` and `count` of `what` are
 * what is added. */
void gm_sites_add(struct gm_sites *sites, const struct gm_site *what);

/* The reverse of an earlier addition. */
void gm_sites_subtract(struct gm_sites *sites, const struct gm_site *what);

/* Sorts by bytes, most first, and drops what is empty. Nothing can be added afterwards. */
void gm_sites_finish(struct gm_sites *sites);

void gm_sites_free(struct gm_sites *sites);

#endif
