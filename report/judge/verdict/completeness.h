/* What a trace does not tell, or tells in a way that makes no sense, and what follows from it.
 *
 * One table of rules (completeness.c): what was not observed, whether the numbers can be judged all
 * the same, and the line that says so. `complete`, the exit code of `gpumem check`, the verdict,
 * the notes and the JSON all come from it, so that they cannot disagree. docs/accounting.md has the
 * reasons.
 */
#ifndef GPUMEM_REPORT_VERDICT_COMPLETENESS_H
#define GPUMEM_REPORT_VERDICT_COMPLETENESS_H

#include "judge/analysis/analysis.h"

enum gm_gap_effect {
    GM_GAP_NOTE, /* no byte and no call is missing: it is said, and the trace is judged */
    GM_GAP_LOSS, /* the numbers may be wrong: the trace is not judged, `check` ends with 3 */
};

/* A rule that is the case. */
struct gm_gap {
    const char *code; /* stable */
    enum gm_gap_effect effect;
    uint64_t count;
    char text[1280]; /* a sentence or more, clean */
};

/* The next one; `*at` begins with 0. False when there is no more. */
bool gm_gap_next(const struct gm_analysis *analysis, size_t *at, struct gm_gap *gap);

/* The process ended, and all that it did was seen and understood: no gap is a loss. */
bool gm_analysis_is_complete(const struct gm_analysis *analysis);

#endif
