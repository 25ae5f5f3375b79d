/* Which of the places that grew (growth.h) tell of the program. */
#ifndef GPUMEM_REPORT_ANALYSIS_GROWING_H
#define GPUMEM_REPORT_ANALYSIS_GROWING_H

#include "judge/analysis/analysis.h"

const struct gm_active_site *gm_growing_site(const struct gm_analysis *analysis,
                                             const struct gm_growing *growing);

/* Whether a place that grew tells of the program: the segments of a framework's cache do not where
 * its blocks are on record, which do. */
bool gm_growth_counts(const struct gm_analysis *analysis, const struct gm_growing *growing);

/* How much all those that count gained over the last marks, in bytes. */
uint64_t gm_growth_bytes(const struct gm_analysis *analysis);

/* Whether a place is told as growing from mark to mark: no other rule need say so again. */
bool gm_growing_tells(const struct gm_analysis *analysis, uint32_t stack, unsigned kind, int device,
                      bool is_block);

#endif
