/* How the free space between live allocations of a device is cut up. */
#ifndef GPUMEM_REPORT_POOL_HOLES_H
#define GPUMEM_REPORT_POOL_HOLES_H

#include "base/ranges.h"
#include "ledger/lives.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The address space of one device between its lowest and its highest live allocation of kind
 * `device`. What the driver holds beyond them is not known. */
struct gm_holes {
    uint64_t allocations;
    uint64_t live;    /* bytes */
    uint64_t span;    /* bytes from the lowest to the highest */
    uint64_t count;   /* holes */
    uint64_t free;    /* bytes in all holes */
    uint64_t largest; /* bytes */
};

/* Between `count` places, which are sorted for it. */
struct gm_holes gm_holes_between(struct gm_range *places, size_t count);

struct gm_holes gm_holes_find(const struct gm_lives *lives, int device);

/* 1 - largest hole / free, in thousandths: 0 when all free bytes are in one hole. */
unsigned gm_holes_fragmentation(const struct gm_holes *holes);

/* Whether the holes could have held so many bytes, had they been one. */
bool gm_holes_refuse(const struct gm_holes *holes, uint64_t bytes);

#endif
