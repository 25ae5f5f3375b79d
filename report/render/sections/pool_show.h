/* PyTorch's pools in the report: what they held and reserved, their segments, and the times that
 * they had nothing to give. */
#ifndef GPUMEM_REPORT_RENDER_SECTIONS_POOL_SHOW_H
#define GPUMEM_REPORT_RENDER_SECTIONS_POOL_SHOW_H

#include "analysis/analysis.h"
#include "render/json.h"
#include "render/page.h"

/* A section for each device with blocks. */
void gm_pools_text(struct gm_page *page, const struct gm_analysis *analysis,
                   struct gm_stacks *stacks, size_t top);

/* A section for the times that the allocator gave up. */
void gm_pool_failures_text(struct gm_page *page, const struct gm_analysis *analysis,
                           struct gm_stacks *stacks, size_t top);

/* The segments that have most free space, and their largest blocks; at most `top` of them. */
void gm_segments_text(struct gm_page *page, struct gm_stacks *stacks,
                      const struct gm_segments *segments, size_t top, unsigned indent);

/* The member "framework_blocks", if there are blocks. */
void gm_pools_json(struct gm_json *json, const struct gm_analysis *analysis,
                   struct gm_stacks *stacks, size_t top);

#endif
