/* How long allocations live, by place: the temporary ones, each of which cost two calls of CUDA,
 * against those that stay. What happens to memory between its allocation and its free is not on
 * record, so nothing is said of memory that was taken too early or kept too long. */
#ifndef GPUMEM_REPORT_RENDER_SECTIONS_TEMPORARIES_H
#define GPUMEM_REPORT_RENDER_SECTIONS_TEMPORARIES_H

#include "analysis/analysis.h"
#include "render/json.h"
#include "render/page.h"
#include "stacks/stacks.h"

#define GM_TEMPORARIES_TOLD 64u /* a place with fewer is not worth a line */
/* What a place allocated in all is at least so many times what it held at one time: memory that
 * came and went. Less is memory that was taken once, and given back soon after. */
#define GM_TEMPORARIES_TURNS 4u
#define GM_RATE_NS 1000000000u /* of a shorter run no rate is told */

/* The section "Temporaries": the `top` places with most of them. Memory from a pool, a framework's
 * or the driver's (stream-ordered), is cheap to take and not told. Nothing if there are no such
 * places. */
void gm_lifetimes_text(struct gm_page *page, const struct gm_analysis *analysis,
                       struct gm_stacks *stacks, size_t top);

/* The member "lifetimes": all places, most temporary allocations first. */
void gm_lifetimes_json(struct gm_json *json, const struct gm_analysis *analysis,
                       struct gm_stacks *stacks, size_t top);

#endif
