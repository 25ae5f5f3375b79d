/* See temporaries.h. */
#include "render/sections/temporaries.h"
#include "base/memory.h"
#include "base/size.h"
#include "render/report_json.h"
#include <stdlib.h>
#include <string.h>

/* Places of CUDA, most temporary allocations first, then most allocations, then the first seen. */
struct ranking {
    const struct gm_active_site **sites;
    size_t count;
};

static int most_first(const void *left, const void *right)
{
    const struct gm_active_site *a = *(const struct gm_active_site *const *)left;
    const struct gm_active_site *b = *(const struct gm_active_site *const *)right;
    if (a->short_lived != b->short_lived)
        return a->short_lived > b->short_lived ? -1 : 1;
    if (a->allocs != b->allocs)
        return a->allocs > b->allocs ? -1 : 1;
    return a < b ? -1 : a > b;
}

static struct ranking rank(const struct gm_activity *activity)
{
    struct ranking ranking = {gm_allocate(activity->count + 1, sizeof(*ranking.sites)), 0};
    for (size_t i = 0; i < activity->count; i++)
        if (!activity->sites[i].is_block)
            ranking.sites[ranking.count++] = &activity->sites[i];
    if (ranking.count)
        qsort(ranking.sites, ranking.count, sizeof(*ranking.sites), most_first);
    return ranking;
}

static bool is_temporary(const struct gm_analysis *analysis, const struct gm_active_site *site)
{
    return site->short_lived >= GM_TEMPORARIES_TOLD &&
           site->allocated / GM_TEMPORARIES_TURNS >= site->peak &&
           !gm_trace_api_is_pooled(analysis->trace, site->api);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_site(struct gm_page *page, const struct gm_analysis *analysis,
                       struct gm_stacks *stacks, const struct gm_active_site *site)
{
    const char *api = gm_trace_api(analysis->trace, site->api);
    double seconds = (double)analysis->duration / 1e9;
    bool has_rate = analysis->duration >= GM_RATE_NS;
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
    struct ranking ranking = rank(&analysis->activity);
    size_t told = 0;
    for (size_t i = 0; i < ranking.count; i++)
        if (is_temporary(analysis, ranking.sites[i]))
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

/* ---- JSON ------------------------------------------------------------------------------------ */

void gm_lifetimes_json(struct gm_json *json, const struct gm_analysis *analysis,
                       struct gm_stacks *stacks, size_t top)
{
    struct ranking ranking = rank(&analysis->activity);
    gm_json_open_array(json, "lifetimes");
    for (size_t i = 0; i < ranking.count && i < top; i++) {
        const struct gm_active_site *site = ranking.sites[i];
        gm_json_open_object(json, NULL);
        gm_json_number(json, "allocs", site->allocs);
        gm_json_number(json, "allocated", site->allocated);
        gm_json_number(json, "short_lived", site->short_lived);
        gm_json_number(json, "short_lived_bytes", site->short_bytes);
        gm_json_bool(json, "temporary", is_temporary(analysis, site));
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
