/* What a trace does not tell, or tells in a way that makes no sense, and what follows from it.
 *
 * One table of rules (completeness.c): what was not observed, whether the numbers can be judged all
 * the same, and the line that says so. `complete`, the exit code of `gpumem check`, the verdict,
 * the notes and the JSON all come from it, so that they cannot disagree. docs/accounting.md has the
 * reasons.
 */
#ifndef GPUMEM_REPORT_ANALYSIS_COMPLETENESS_H
#define GPUMEM_REPORT_ANALYSIS_COMPLETENESS_H

#include "analysis/analysis.h"
#include "render/json.h"
#include "render/page.h"

enum gm_gap_effect {
    GM_GAP_NOTE, /* no byte and no call is missing: it is said, and the trace is judged */
    GM_GAP_LOSS, /* the numbers may be wrong: the trace is not judged, `check` ends with 3 */
};

/* What of the table is the case: a paragraph for each loss, and one that begins
 * with `start` for each note. */
void gm_losses_text(struct gm_page *page, const struct gm_analysis *analysis);
void gm_notes_text(struct gm_page *page, const struct gm_analysis *analysis, const char *start);
bool gm_has_notes(const struct gm_analysis *analysis);

/* The member "gaps": both. */
void gm_gaps_json(struct gm_json *json, const struct gm_analysis *analysis);

/* The member "recorder": the recorder's own counters, by name. */
void gm_recorder_json(struct gm_json *json, const struct gm_analysis *analysis);

/* The sum of the counters of which each stands for one record that is missing. */
uint64_t gm_counted_loss(const struct gm_trace *trace);

#endif
