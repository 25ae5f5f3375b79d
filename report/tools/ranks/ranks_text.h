/* The processes of a job on one page: a table of those that used memory, how the odd one differs, and
 * the page of the worst. */
#ifndef GPUMEM_REPORT_RANKS_RANKS_TEXT_H
#define GPUMEM_REPORT_RANKS_RANKS_TEXT_H

#include "output/page.h"
#include "tools/ranks/summary.h"

/* The one to show whole: out of memory first (the earliest), then by gravity, then by its peak. NULL:
 * there is none. */
const struct gm_summary *gm_ranks_worst(const struct gm_summaries *summaries);

/* All of them, the one to show whole first; to be freed. */
const struct gm_summary **gm_ranks_by_gravity(const struct gm_summaries *summaries);

/* How many used memory. */
size_t gm_ranks_active(const struct gm_summaries *summaries);

/* The head of a page of several processes: helpers that did nothing in one line, the table, the odd
 * one out. Summaries are sorted. Nothing of one process alone but the line on its helpers. */
void gm_ranks_text(struct gm_page *page, const struct gm_summaries *summaries);

#endif
