/* Phases and growth as text and as JSON. */
#ifndef GPUMEM_REPORT_RENDER_SECTIONS_PHASES_SHOW_H
#define GPUMEM_REPORT_RENDER_SECTIONS_PHASES_SHOW_H

#include "analysis/analysis.h"
#include "render/json.h"
#include "render/page.h"

/* The section "Phases": `top` of them, highest peak first. Nothing if there are none. */
void gm_phases_text(struct gm_page *page, const struct gm_analysis *analysis, size_t top);

/* The member "phases". */
void gm_phases_json(struct gm_json *json, const struct gm_analysis *analysis, size_t top);

#endif
