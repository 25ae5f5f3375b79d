/* An ordered set of address ranges that do not overlap, each with a value: which mapping, which
 * allocation holds an address. Every operation takes logarithmic time whatever the addresses. */
#ifndef GPUMEM_REPORT_BASE_RANGES_H
#define GPUMEM_REPORT_BASE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gm_range {
    uint64_t start;
    uint64_t end; /* one past the last address */
    uint32_t value;
};

struct gm_range_node {
    struct gm_range range;
    uint32_t priority;
    uint32_t left, right; /* indices of nodes; 0 none */
};

/* All zero: an empty set. */
struct gm_ranges {
    struct gm_range_node *nodes; /* [0] is no node */
    size_t capacity;
    uint32_t used;
    uint32_t root;
    uint32_t free; /* list of removed nodes, by `right` */
    uint32_t random;
    size_t count;
};

/* Adds a range. The caller has made sure that it overlaps no other. Empty ranges are ignored. */
void gm_ranges_add(struct gm_ranges *ranges, struct gm_range range);

/* The first range that overlaps [start, end). */
bool gm_ranges_find(const struct gm_ranges *ranges, uint64_t start, uint64_t end,
                    struct gm_range *found);

/* Removes the range that starts at `start`; false if there is none. */
bool gm_ranges_remove(struct gm_ranges *ranges, uint64_t start);

void gm_ranges_free(struct gm_ranges *ranges);

/* One past the last address of `size` bytes at `address`, the highest address if that overflows. */
static inline uint64_t gm_range_end(uint64_t address, uint64_t size)
{
    return size > UINT64_MAX - address ? UINT64_MAX : address + size;
}

#endif
