/* How the free space between live allocations of a device is cut up. */
#ifndef GPUMEM_REPORT_POOL_HOLES_H
#define GPUMEM_REPORT_POOL_HOLES_H

#include "base/facts.h"
#include "base/ranges.h"
#include "replay/ledger/lives.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Between `count` places, which are sorted for it. */
struct gm_holes gm_holes_between(struct gm_range *places, size_t count);

struct gm_holes gm_holes_find(const struct gm_lives *lives, int device);

#endif
