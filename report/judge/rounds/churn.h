/* Memory that a framework's cache gives back to the driver and takes again: the work that the cache
 * is there to save. A few additions per allocation. Memory: 40 bytes for each line that takes again. */
#ifndef GPUMEM_REPORT_ROUNDS_CHURN_H
#define GPUMEM_REPORT_ROUNDS_CHURN_H

#include "base/map.h"
#include "replay/ledger/counters.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GM_CHURN_PLACES 4096u /* further lines are not told apart */

/* A line for which memory is taken again. Who gave it back is not on record. */
struct gm_churn_place {
    uint64_t bytes;
    uint32_t stack; /* of the first time */
    uint16_t api;
    int8_t device;
};

struct gm_churn_device {
    uint64_t live, peak; /* bytes in the cache's segments */
    uint64_t returned;   /* bytes given back that were not taken again */
    uint64_t again;      /* bytes taken that had been given back */
    uint64_t taken;      /* segments of them */
    uint64_t batches;    /* times that the cache began to give back */
    uint64_t refused;    /* times that the driver had nothing, and then had */
    bool gives_back;     /* latest */
    bool was_refused;    /* since the latest segment */
};

/* All zero: nothing yet. */
struct gm_churn {
    struct gm_churn_device device[GM_DEVICES]; /* [ordinal + 1] */
    struct gm_churn_place *places;
    size_t place_count;
    size_t place_capacity;
    struct gm_map by_line; /* line and device -> place */
};

/* Of a framework's cache: a segment of place->bytes is taken, one is given back or refused. */
void gm_churn_take(struct gm_churn *churn, uint64_t line, const struct gm_churn_place *place);
void gm_churn_give(struct gm_churn *churn, int device, uint64_t size);
void gm_churn_refuse(struct gm_churn *churn, int device);

/* The line for which most was taken again on a device; NULL: none. */
const struct gm_churn_place *gm_churn_most(const struct gm_churn *churn, int device);

void gm_churn_free(struct gm_churn *churn);

#endif
