/* Places that hold more at every mark: what was kept of one step is there in the next. */
#include "findings.h"
#include "growth_show.h"
#include "size.h"

void gm_find_growing(const struct gm_analysis *analysis, struct gm_findings *findings)
{
    const struct gm_activity *activity = &analysis->activity;
    for (size_t i = 0; i < activity->growth.found_count; i++) {
        const struct gm_growing *growing = &activity->growth.found[i];
        const struct gm_active_site *site = &activity->sites[growing->site];
        if (!gm_growth_counts(analysis, growing))
            continue;
        gm_findings_add(findings,
                        &(struct gm_finding){.code = GM_FINDING_GROWING,
                                             .severity = GM_SEVERITY_WARNING,
                                             .device = site->device,
                                             .bytes = gm_growing_bytes(growing),
                                             .stack = site->stack,
                                             .api = site->api},
                        "%s more each time at the last %d of %s marks, from %s to %s: what a step "
                        "keeps is never given back.",
                        SIZE(gm_growing_bytes(growing) / GM_GROWTH_MARKS), GM_GROWTH_MARKS,
                        COUNT(growing->series->marks), SIZE(growing->bytes[0]),
                        SIZE(growing->bytes[GM_GROWTH_MARKS]));
    }
}
