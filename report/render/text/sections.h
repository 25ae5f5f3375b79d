/* The sections of the report for people, as `report` and `check` put them together. A section that
 * has nothing to say prints nothing. At most `top` places are listed. */
#ifndef GPUMEM_REPORT_RENDER_TEXT_SECTIONS_H
#define GPUMEM_REPORT_RENDER_TEXT_SECTIONS_H

#include "analysis/analysis.h"
#include "render/page.h"
#include "render/page_stack.h"
#include "stacks/stacks.h"

/* ---- what the trace amounts to --------------------------------------------------------------- */

/* The verdict, and before it everything that makes it less than certain. */
void gm_verdict_text(struct gm_page *page, const struct gm_analysis *analysis);

/* Why nothing may have been recorded, if the trace tells: the driver was loaded behind our back. */
void gm_bypass_text(struct gm_page *page, unsigned indent, const struct gm_analysis *analysis);

/* What of the table of gaps is the case (verdict/completeness.h): a paragraph for each loss, and one
 * that begins with `start` for each note. */
void gm_losses_text(struct gm_page *page, const struct gm_analysis *analysis);
void gm_notes_text(struct gm_page *page, const struct gm_analysis *analysis, const char *start);

/* What of the history a flight trace no longer has. */
void gm_flight_text(struct gm_page *page, const struct gm_trace *trace);

/* A line for each setting of the recorder that was not understood. */
void gm_settings_text(struct gm_page *page, const struct gm_trace *trace);

/* ---- findings and growth --------------------------------------------------------------------- */

void gm_findings_text(struct gm_page *page, const struct gm_analysis *analysis,
                      struct gm_stacks *stacks);

/* The same as notes, a line and a sentence each, for `gpumem check`. */
void gm_findings_notes(struct gm_page *page, const struct gm_analysis *analysis,
                       struct gm_stacks *stacks);

/* Places that grew from mark to mark, most growth first. */
void gm_growth_text(struct gm_page *page, const struct gm_analysis *analysis,
                    struct gm_stacks *stacks, size_t top);

/* ---- who held memory ------------------------------------------------------------------------- */

/* Owners by their share of the whole, `indent` columns in. */
void gm_owners_text(struct gm_page *page, const struct gm_analysis *analysis,
                    struct gm_stacks *stacks, const struct gm_sites *owners, size_t top,
                    unsigned indent);

/* The table of a device by library, if it says more than that all is the application's. */
void gm_libraries_text(struct gm_page *page, const struct gm_analysis *analysis, int device,
                       size_t top);

/* Whose memory: what the process imported or opened is another owner's. */
enum gm_leak_part { GM_LEAKS_ALL, GM_LEAKS_OWN, GM_LEAKS_FOREIGN };

/* The leaks of a class, at most `top` of them, as both report and check list them. */
void gm_leaks_text(struct gm_page *page, const struct gm_analysis *analysis,
                   struct gm_stacks *stacks, enum gm_leak_class class, enum gm_leak_part part,
                   size_t top);

/* ---- PyTorch's pools ------------------------------------------------------------------------- */

/* A section for each device with blocks. */
void gm_pools_text(struct gm_page *page, const struct gm_analysis *analysis,
                   struct gm_stacks *stacks, size_t top);

/* A section for the times that the allocator gave up. */
void gm_pool_failures_text(struct gm_page *page, const struct gm_analysis *analysis,
                           struct gm_stacks *stacks, size_t top);

/* Owners of blocks by line: one line of text each, and one for what called it. */
void gm_pool_lines_text(struct gm_page *page, const struct gm_analysis *analysis,
                        struct gm_stacks *stacks, const struct gm_sites *owners, size_t top);

/* ---- over time ------------------------------------------------------------------------------- */

/* Phases, highest peak first. */
void gm_phases_text(struct gm_page *page, const struct gm_analysis *analysis, size_t top);

/* "Temporaries": the places with most allocations that lived shortly (analysis/lifetimes.h). */
void gm_lifetimes_text(struct gm_page *page, const struct gm_analysis *analysis,
                       struct gm_stacks *stacks, size_t top);

#endif
