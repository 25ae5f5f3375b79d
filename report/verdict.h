/* What a trace amounts to: whether it can be trusted, and the sentence a report starts with. */
#ifndef GM_REPORT_VERDICT_H
#define GM_REPORT_VERDICT_H

#include "analysis.h"
#include "page.h"

/* Whether any call that concerns memory was recorded. */
bool gm_verdict_has_events(const struct gm_analysis *analysis);

/* The verdict, and before it everything that makes it less than certain. */
void gm_verdict_text(struct gm_page *page, const struct gm_analysis *analysis);

/* Why nothing may have been recorded, if the trace tells: the driver was loaded behind our back. */
void gm_bypass_text(struct gm_page *page, unsigned indent, const struct gm_analysis *analysis);

/* Only what makes a trace incomplete, one line each. */
void gm_incompleteness_text(struct gm_page *page, const struct gm_analysis *analysis);

#endif
