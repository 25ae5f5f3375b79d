/* The report for people, most useful first. */
#ifndef GPUMEM_REPORT_RENDER_TEXT_REPORT_TEXT_H
#define GPUMEM_REPORT_RENDER_TEXT_REPORT_TEXT_H

#include "analysis/analysis.h"
#include "render/page.h"
#include "stacks/stacks.h"
#include <stdio.h>

struct gm_text_options {
    size_t top; /* stacks per section */
    bool colour;
    bool many;       /* one of several traces */
    bool all_frames; /* of stacks: all, none folded */
};

void gm_report_text(FILE *out, const struct gm_analysis *analysis, struct gm_stacks *stacks,
                    const struct gm_text_options *options);

#endif
