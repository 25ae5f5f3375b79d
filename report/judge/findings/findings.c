/* See findings.h. */
#include "judge/findings/findings.h"
#include "base/order.h"
#include "judge/findings/rules.h"
#include <stdlib.h>

GM_ORDER(most_severe_first, struct gm_finding,
         GM_DOWN(severity) GM_DOWN(bytes) GM_UP(code) GM_UP(device) GM_UP(stack))

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
    gm_find_growing_code(analysis, findings);
    if (findings->count)
        qsort(findings->entries, findings->count, sizeof(*findings->entries), most_severe_first);
    gm_findings_join_devices(findings);
}
