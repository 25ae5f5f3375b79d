/* Who held the memory at one moment, as text and as JSON. */
#ifndef GPUMEM_REPORT_RENDER_SECTIONS_OWNERS_SHOW_H
#define GPUMEM_REPORT_RENDER_SECTIONS_OWNERS_SHOW_H

#include "analysis/analysis.h"
#include "render/json.h"
#include "render/page.h"

/* Owners by their share of the whole, at most `top` of them, `indent` columns in. */
void gm_owners_text(struct gm_page *page, const struct gm_analysis *analysis,
                    struct gm_stacks *stacks, const struct gm_sites *owners, size_t top,
                    unsigned indent);

/* The members "owner_count" and "owners". */
void gm_owners_json(struct gm_json *json, const struct gm_analysis *analysis,
                    struct gm_stacks *stacks, const struct gm_sites *owners, size_t top);

#endif
