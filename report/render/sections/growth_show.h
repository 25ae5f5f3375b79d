/* What grew from mark to mark, as text and as JSON. */
#ifndef GPUMEM_REPORT_RENDER_SECTIONS_GROWTH_SHOW_H
#define GPUMEM_REPORT_RENDER_SECTIONS_GROWTH_SHOW_H

#include "analysis/analysis.h"
#include "render/json.h"
#include "render/page.h"
#include "stacks/stacks.h"

/* The section "Growth": `top` places, most growth first. Nothing if none grew. */
void gm_growth_text(struct gm_page *page, const struct gm_analysis *analysis,
                    struct gm_stacks *stacks, size_t top);

/* The member "growing". */
void gm_growth_json(struct gm_json *json, const struct gm_analysis *analysis,
                    struct gm_stacks *stacks, size_t top);

/* Whether a place that grew tells of the program: the segments of a framework's cache do not where
 * its blocks are on record, which do. */
bool gm_growth_counts(const struct gm_analysis *analysis, const struct gm_growing *growing);

/* How much all those that count gained over the last marks. */
uint64_t gm_growth_bytes(const struct gm_analysis *analysis);

#endif
