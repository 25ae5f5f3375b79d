/*
 * Ordered sets of address ranges that do not overlap: the holes of an arena, the allocations of the
 * process. A treap keyed by start address; nodes belong to the caller. Each subtree knows its
 * largest size, so that first fit takes logarithmic time when all ranges have the same alignment.
 * Not thread-safe: the driver lock protects every use.
 */
#ifndef GPUMEM_SIM_RANGE_H
#define GPUMEM_SIM_RANGE_H

#include <stdint.h>

struct gpusim_range {
    uint64_t start;
    uint64_t size;
    uint64_t largest; /* of this subtree; kept by the set */
    uint32_t priority;
    struct gpusim_range *left, *right;
};

struct gpusim_ranges {
    struct gpusim_range *root;
};

void gpusim_ranges_insert(struct gpusim_ranges *ranges, struct gpusim_range *range);
void gpusim_ranges_remove(struct gpusim_ranges *ranges, struct gpusim_range *range);

/* The range with the largest start that is not above the address, or NULL. */
struct gpusim_range *gpusim_ranges_floor(const struct gpusim_ranges *ranges, uint64_t address);

/* The range with the smallest start that is not below the address, or NULL. */
struct gpusim_range *gpusim_ranges_ceiling(const struct gpusim_ranges *ranges, uint64_t address);

/* The range that contains the address, or NULL. */
struct gpusim_range *gpusim_ranges_find(const struct gpusim_ranges *ranges, uint64_t address);

/* The lowest range that holds size bytes from an aligned start (a power of two), or NULL. */
struct gpusim_range *gpusim_ranges_fit(const struct gpusim_ranges *ranges, uint64_t size,
                                       uint64_t alignment);

/* The same, but the highest. */
struct gpusim_range *gpusim_ranges_fit_highest(const struct gpusim_ranges *ranges, uint64_t size,
                                               uint64_t alignment);

static inline uint64_t gpusim_align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

static inline uint64_t gpusim_align_down(uint64_t value, uint64_t alignment)
{
    return value & ~(alignment - 1);
}

#endif
