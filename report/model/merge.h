/* Unites models, such as those of the ranks of a job.
 *
 * Guarantees: exact, and the same whatever the order and the grouping. A merged model has all runs,
 * each as it was, in the order of rank, host, process and start, and each stack and place once,
 * numbered as the runs name them: so merging merged models gives what merging all at once gives.
 */
#ifndef GPUMEM_REPORT_MODEL_MERGE_H
#define GPUMEM_REPORT_MODEL_MERGE_H

#include "model/model.h"

/* The model of all runs of `count` models, which stay as they are. Nothing of it depends on them, or
 * on their traces, afterwards. */
struct gm_model *gm_model_merge(const struct gm_model *const *models, size_t count);

#endif
