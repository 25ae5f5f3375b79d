/* Findings in the report, in its JSON and in the gate. */
#ifndef GPUMEM_REPORT_RENDER_SECTIONS_FINDINGS_SHOW_H
#define GPUMEM_REPORT_RENDER_SECTIONS_FINDINGS_SHOW_H

#include "findings/findings.h"
#include "render/json.h"
#include "render/page.h"
#include "stacks/stacks.h"

/* The section of the report; nothing if there are none. */
void gm_findings_text(struct gm_page *page, const struct gm_analysis *analysis,
                      struct gm_stacks *stacks);

/* The same as notes, a line and a sentence each, for `gpumem check`. */
void gm_findings_notes(struct gm_page *page, const struct gm_analysis *analysis,
                       struct gm_stacks *stacks);

/* The member "findings". */
void gm_findings_json(struct gm_json *json, const struct gm_analysis *analysis,
                      struct gm_stacks *stacks);

#endif
