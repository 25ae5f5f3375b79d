/* See sections.h. */
#include "analysis/lifetimes.h"
#include "base/size.h"
#include "render/text/sections.h"
#include <stdlib.h>

#define RATE_NS 1000000000u /* of a shorter run no rate is told */

static void print_site(struct gm_page *page, const struct gm_analysis *analysis,
                       struct gm_stacks *stacks, const struct gm_active_site *site)
{
    const char *api = gm_trace_api(analysis->trace, site->api);
    double seconds = (double)analysis->duration / 1e9;
    bool has_rate = analysis->duration >= RATE_NS;
    gm_page_print(page, GM_BOLD, "  %s", COUNT(site->short_lived));
    gm_page_print(page, GM_PLAIN, " of %s x %.40s", COUNT(site->allocs), api[0] ? api : "?");
    if (has_rate && (double)site->allocs / seconds >= 1)
        gm_page_print(page, GM_PLAIN, ", %s a second",
                      COUNT((uint64_t)((double)site->allocs / seconds)));
    gm_page_print(page, GM_PLAIN, "\n    %s in all, at most %s at a time, of %s memory",
                  SIZE(site->allocated), SIZE(site->peak), gm_kind_name(site->kind));
    if (site->device >= 0)
        gm_page_print(page, GM_PLAIN, " on device %d", site->device);
    fputc('\n', page->out);
    gm_page_stack(page, 6, gm_stacks_get(stacks, site->stack, site->api));
}

void gm_lifetimes_text(struct gm_page *page, const struct gm_analysis *analysis,
                       struct gm_stacks *stacks, size_t top)
{
    struct gm_lifetimes ranking = gm_lifetimes_rank(&analysis->activity);
    size_t told = 0;
    for (size_t i = 0; i < ranking.count; i++)
        if (gm_lifetime_is_temporary(analysis->trace, ranking.sites[i]))
            ranking.sites[told++] = ranking.sites[i];
    if (told)
        gm_page_heading(page, "Temporaries", "freed within 1 ms of their allocation");
    for (size_t i = 0; i < told && i < top; i++)
        print_site(page, analysis, stacks, ranking.sites[i]);
    if (told > top)
        gm_page_print(page, GM_DIM, "  ... and %zu more place%s\n", told - top,
                      gm_plural(told - top));
    free(ranking.sites);
}
