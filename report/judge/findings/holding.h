/* What held the memory when a request was refused, in words. */
#ifndef GPUMEM_REPORT_FINDINGS_HOLDING_H
#define GPUMEM_REPORT_FINDINGS_HOLDING_H

#include "judge/analysis/analysis.h"
#include "judge/findings/finding.h"

struct gm_held {
    char *text; /* what had grown, what comes once, what came in the pass that was refused; "" if
                   nothing can be told. The caller frees it */
    const char *remedy; /* by what most of it was for */
};

/* `total`: bytes that `owners` held. Where one line filled the device, the finding is told to name that first. */
struct gm_held gm_held_describe(const struct gm_analysis *analysis, struct gm_finding *finding,
                                enum gm_round_sort sort, uint64_t total,
                                const struct gm_sites *owners);

/* Bytes of managed memory, which takes no room on the device. */
uint64_t gm_held_managed(const struct gm_sites *owners);

#endif
