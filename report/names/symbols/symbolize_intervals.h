/* A set of address ranges, searched by address. Used for compilation units, functions and
 * symbols, whose ranges come from untrusted files: they may overlap in any way, and a search still
 * looks at a bounded number of them. */
#ifndef GPUMEM_REPORT_SYMBOLS_SYMBOLIZE_INTERVALS_H
#define GPUMEM_REPORT_SYMBOLS_SYMBOLIZE_INTERVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gm_interval {
    uint64_t start;
    uint64_t end;        /* first address behind the range */
    uint32_t value;      /* the owner's index of whatever the range belongs to */
    uint32_t preference; /* of two equal ranges the higher one is found first */
};

struct gm_intervals {
    struct gm_interval *items;
    size_t count;
    size_t capacity;
};

struct gm_interval_search {
    const struct gm_intervals *set;
    uint64_t address;
    size_t position;
    unsigned steps_left;
};

/* Returns false if out of memory; empty ranges are dropped. */
bool gm_intervals_add(struct gm_intervals *set, struct gm_interval item);
/* To be called after the last add and before the first search. */
void gm_intervals_sort(struct gm_intervals *set);
void gm_intervals_clear(struct gm_intervals *set);

/* Visits the ranges that hold `address`, that with the highest start first: where ranges nest, the
 * innermost. Ranges hidden behind more than a few hundred others are not found. */
struct gm_interval_search gm_intervals_search(const struct gm_intervals *set, uint64_t address);
const struct gm_interval *gm_intervals_next(struct gm_interval_search *search);

#endif
