/* Who held the memory at one moment, as text and as JSON. */
#ifndef GM_REPORT_OWNERS_SHOW_H
#define GM_REPORT_OWNERS_SHOW_H

#include "analysis.h"
#include "json.h"
#include "page.h"

/* Owners by their share of the whole, at most `top` of them, `indent` columns in. */
void gm_owners_text(struct gm_page *page, const struct gm_analysis *analysis,
                    struct gm_stacks *stacks, const struct gm_sites *owners, size_t top,
                    unsigned indent);

/* The members "owner_count" and "owners". */
void gm_owners_json(struct gm_json *json, const struct gm_analysis *analysis,
                    struct gm_stacks *stacks, const struct gm_sites *owners, size_t top);

#endif
