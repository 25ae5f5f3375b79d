/* What a trace amounts to: whether it can be trusted, and the sentence a report starts with. */
#ifndef GPUMEM_REPORT_VERDICT_VERDICT_H
#define GPUMEM_REPORT_VERDICT_VERDICT_H

#include "base/names.h"
#include "judge/analysis/analysis.h"

/* Whether any call that concerns memory was recorded. */
bool gm_verdict_has_events(const struct gm_analysis *analysis);

/* Allocations that are alive, and their bytes. */
struct gm_living {
    uint64_t bytes;
    uint64_t count;
};

/* What a trace amounts to. The numbers of the first sentence of a report, wherever it stands. */
struct gm_verdict {
    enum gm_verdict_state state;
    struct gm_living on_devices; /* of all kinds but external: the sum of what pages show as live */
    struct gm_living on_host;
    struct gm_living leaked; /* never freed: of the class `leak` */
};

struct gm_verdict gm_verdict_of(const struct gm_analysis *analysis);

#endif
