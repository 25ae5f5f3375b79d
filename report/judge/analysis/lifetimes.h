/* How long allocations live, by place: the temporary ones, each of which cost two calls of CUDA,
 * against those that stay. What happens to memory between its allocation and its free is not on
 * record, so nothing is said of memory that was taken too early or kept too long. */
#ifndef GPUMEM_REPORT_ANALYSIS_LIFETIMES_H
#define GPUMEM_REPORT_ANALYSIS_LIFETIMES_H

#include "input/trace/trace_file.h"
#include "judge/analysis/activity.h"

#define GM_TEMPORARIES_TOLD 64u /* a place with fewer is not worth a line */
/* What a place allocated in all is at least so many times what it held at one time: memory that
 * came and went. Less is memory that was taken once, and given back soon after. */
#define GM_TEMPORARIES_TURNS 4u

/* Places of CUDA, most temporary allocations first, then most allocations, then the first seen. */
struct gm_lifetimes {
    const struct gm_active_site **sites;
    size_t count;
};

/* `sites` of the answer is to be freed. */
struct gm_lifetimes gm_lifetimes_rank(const struct gm_activity *activity);

/* Whether allocations come and go at a place. Memory from a pool, a framework's or the driver's
 * (stream-ordered), is cheap to take and not meant. */
bool gm_lifetime_is_temporary(const struct gm_trace *trace, const struct gm_active_site *site);

#endif
