/* See lifetimes.h. */
#include "judge/analysis/lifetimes.h"
#include "base/memory.h"
#include "base/order.h"
#include <stdlib.h>

GM_ORDER_POINTERS(most_first_lifetime, struct gm_active_site,
                  GM_DOWN(short_lived) GM_DOWN(allocs) GM_UP_OF(a, b))

struct gm_lifetimes gm_lifetimes_rank(const struct gm_activity *activity)
{
    struct gm_lifetimes ranking = {gm_allocate(activity->count + 1, sizeof(*ranking.sites)), 0};
    for (size_t i = 0; i < activity->count; i++)
        if (!activity->sites[i].is_block)
            ranking.sites[ranking.count++] = &activity->sites[i];
    if (ranking.count)
        qsort(ranking.sites, ranking.count, sizeof(*ranking.sites), most_first_lifetime);
    return ranking;
}

bool gm_lifetime_is_temporary(const struct gm_trace *trace, const struct gm_active_site *site)
{
    return site->short_lived >= GM_TEMPORARIES_TOLD &&
           site->allocated / GM_TEMPORARIES_TURNS >= site->peak &&
           !gm_trace_api_is_pooled(trace, site->api);
}
