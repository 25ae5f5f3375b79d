/* What the blocks of a framework's pool are for, told with all that a whole trace knows. */
#ifndef GPUMEM_REPORT_POOL_PURPOSES_H
#define GPUMEM_REPORT_POOL_PURPOSES_H

#include "base/map.h"
#include "names/stacks/callers.h"
#include "names/stacks/category.h"

struct gm_purposes {
    struct gm_categories *categories;
    struct gm_callers *callers;
    struct gm_map filling; /* lines that copied to a device */
};

/* Says that a stack copied to a device from the host. */
void gm_purposes_add_filling(struct gm_purposes *purposes, uint32_t stack);
void gm_purposes_free(struct gm_purposes *purposes);

/* The category of what a stack allocates: that of gm_categories_get, and INPUT where nothing is known
 * but that the line fills such memory from the host. */
enum gm_category gm_purpose_of(const struct gm_purposes *purposes, uint32_t stack);

/* The most bytes that blocks of each category had at one time, [ordinal + 1][category], on GM_DEVICES
 * devices. One more pass over the trace; the caller frees the table. */
uint64_t (*gm_purpose_peaks(const struct gm_purposes *purposes,
                            struct gm_trace *trace))[GM_CATEGORIES];

#endif
