/* The rules, called by findings.c alone. Each adds what it sees; its thresholds stand in its file,
 * finding_*.c. */
#ifndef GPUMEM_REPORT_FINDINGS_RULES_H
#define GPUMEM_REPORT_FINDINGS_RULES_H

#include "judge/analysis/analysis.h"
#include "judge/findings/finding.h"

void gm_find_out_of_memory(const struct gm_analysis *analysis, struct gm_findings *findings);
void gm_find_retained(const struct gm_analysis *analysis, struct gm_findings *findings);
void gm_find_device_imbalance(const struct gm_analysis *analysis, struct gm_findings *findings);
void gm_find_pinned_growth(const struct gm_analysis *analysis, struct gm_findings *findings);
void gm_find_pinned_waste(const struct gm_analysis *analysis, struct gm_findings *findings);
void gm_find_cached(const struct gm_analysis *analysis, struct gm_findings *findings);
void gm_find_pageable_copies(const struct gm_analysis *analysis, struct gm_findings *findings);
void gm_find_growing(const struct gm_analysis *analysis, struct gm_findings *findings);
void gm_find_churn(const struct gm_analysis *analysis, struct gm_findings *findings);
void gm_find_model_costs(const struct gm_analysis *analysis, struct gm_findings *findings);
void gm_find_growing_code(const struct gm_analysis *analysis, struct gm_findings *findings);
void gm_find_process_costs(const struct gm_analysis *analysis, struct gm_findings *findings);

/* Whether growth is told as a leak, and not as "retained". */
bool gm_retained_is_leak(const struct gm_analysis *analysis, const struct gm_round_growth *growth);

/* What to do about memory that is kept: it depends on what the memory is. */
const char *gm_retained_remedy(const struct gm_analysis *analysis,
                               const struct gm_round_growth *growth);
/* The same of blocks of a device's pool of which no more is known. */
const char *gm_kept_remedy(const struct gm_analysis *analysis, int device);

#endif
