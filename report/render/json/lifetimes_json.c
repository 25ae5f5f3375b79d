/* See sections.h. */
#include "analysis/lifetimes.h"
#include "render/json/sections.h"
#include "render/json_where.h"
#include <stdlib.h>

void gm_lifetimes_json(struct gm_json *json, const struct gm_analysis *analysis,
                       struct gm_stacks *stacks, size_t top)
{
    struct gm_lifetimes ranking = gm_lifetimes_rank(&analysis->activity);
    gm_json_open_array(json, "lifetimes");
    for (size_t i = 0; i < ranking.count && i < top; i++) {
        const struct gm_active_site *site = ranking.sites[i];
        gm_json_open_object(json, NULL);
        gm_json_number(json, "allocs", site->allocs);
        gm_json_number(json, "allocated", site->allocated);
        gm_json_number(json, "short_lived", site->short_lived);
        gm_json_number(json, "short_lived_bytes", site->short_bytes);
        gm_json_bool(json, "temporary", gm_lifetime_is_temporary(analysis->trace, site));
        gm_json_number(json, "live", site->live_count);
        gm_json_number(json, "live_bytes", site->live);
        gm_json_number(json, "peak", site->peak);
        gm_json_kind(json, site->kind, site->device);
        gm_json_where(json, stacks, analysis, site->stack, site->api);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
    free(ranking.sites);
}
