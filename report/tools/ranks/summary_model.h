/* A model of what summaries tell, so that they can be compared as traces are: totals of each process
 * and device, the lines of the program at the peak of the fullest one. */
#ifndef GPUMEM_REPORT_RANKS_SUMMARY_MODEL_H
#define GPUMEM_REPORT_RANKS_SUMMARY_MODEL_H

#include "tools/ranks/summary.h"

/* Nothing of it depends on the summaries afterwards. Free with gm_model_free. */
struct gm_model *gm_model_of_summaries(const struct gm_summaries *summaries);

#endif
