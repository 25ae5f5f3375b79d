/* All findings of a trace. */
#ifndef GPUMEM_REPORT_FINDINGS_FINDINGS_H
#define GPUMEM_REPORT_FINDINGS_FINDINGS_H

#include "judge/analysis/analysis.h"
#include "judge/findings/finding.h"

/* Finds all there is: most severe first, then by bytes. */
void gm_findings_collect(const struct gm_analysis *analysis, struct gm_findings *findings);

#endif
