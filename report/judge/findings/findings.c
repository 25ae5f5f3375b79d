/* See findings.h. */
#include "judge/findings/findings.h"
#include "judge/findings/rules.h"
#include <stdlib.h>

static int most_severe_first(const void *left, const void *right)
{
    const struct gm_finding *a = left, *b = right;
    if (a->severity != b->severity)
        return a->severity > b->severity ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    if (a->code != b->code)
        return a->code < b->code ? -1 : 1;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return a->stack < b->stack ? -1 : a->stack > b->stack;
}

void gm_findings_collect(const struct gm_analysis *analysis, struct gm_findings *findings)
{
    gm_find_out_of_memory(analysis, findings);
    gm_find_device_imbalance(analysis, findings);
    gm_find_retained(analysis, findings);
    gm_find_pageable_copies(analysis, findings);
    gm_find_pinned_growth(analysis, findings);
    gm_find_pinned_waste(analysis, findings);
    gm_find_cached(analysis, findings);
    gm_find_growing(analysis, findings);
    gm_find_churn(analysis, findings);
    gm_find_model_costs(analysis, findings);
    gm_find_process_costs(analysis, findings);
    if (findings->count)
        qsort(findings->entries, findings->count, sizeof(*findings->entries), most_severe_first);
}
