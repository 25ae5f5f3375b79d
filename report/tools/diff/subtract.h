/* The difference of two models: what grew, shrank, came and went.
 *
 * Stacks are matched as match.h says; places whose stacks match, and that are alike in all else, are
 * one. It is shown with the lines of the newer model.
 *
 * Runs are matched by rank, several of one rank or without one by their program, then by their order.
 * A run that has no counterpart is compared with nothing. Of the moments those that each run has are compared (peaks, the ends, pools), and
 * totals, lifetimes and transfers. What is not a number is not in the difference: failures,
 * findings, phases, growth, contexts, holes, segments, curves.
 */
#ifndef GPUMEM_REPORT_DIFF_SUBTRACT_H
#define GPUMEM_REPORT_DIFF_SUBTRACT_H

#include "tools/diff/match.h"

/* `model` - `base`. Samples of a moment are sorted by how much they differ; what does not differ is
 * left out. Both stay as they are, and nothing of the difference depends on them afterwards. */
struct gm_model *gm_model_subtract(const struct gm_model *model, const struct gm_model *base,
                                   enum gm_match_level level);

#endif
