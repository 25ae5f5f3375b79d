/* See sites.h. */
#include "replay/ledger/sites.h"
#include "base/memory.h"
#include "base/order.h"
#include "replay/ledger/counters.h"
#include <stdlib.h>

static struct gm_site *site_at(struct gm_sites *sites, const struct gm_site *what)
{
    uint64_t key = gm_place_key(what->stack, what->api, what->kind, what->device, what->class);
    uint32_t index = gm_map_get(&sites->by_key, key);
    if (index == GM_NONE) {
        index = (uint32_t)sites->count;
        GM_APPEND(sites->entries, sites->capacity, sites->count, *what);
        sites->entries[index].order = index;
        sites->entries[index].bytes = sites->entries[index].count = 0;
        gm_map_set(&sites->by_key, key, index);
    }
    return &sites->entries[index];
}

void gm_sites_add(struct gm_sites *sites, const struct gm_site *what)
{
    struct gm_site *site = site_at(sites, what);
    site->bytes = gm_add_saturated(site->bytes, what->bytes);
    site->count += what->count;
    sites->bytes = gm_add_saturated(sites->bytes, what->bytes);
}

void gm_sites_subtract(struct gm_sites *sites, const struct gm_site *what)
{
    struct gm_site *site = site_at(sites, what);
    site->bytes -= what->bytes;
    site->count -= what->count;
    sites->bytes -= what->bytes;
}

GM_ORDER(most_first_site, struct gm_site, GM_DOWN(bytes) GM_DOWN(count) GM_UP(order))

void gm_sites_finish(struct gm_sites *sites)
{
    size_t kept = 0;
    for (size_t i = 0; i < sites->count; i++)
        if (sites->entries[i].count)
            sites->entries[kept++] = sites->entries[i];
    sites->count = kept;
    gm_map_free(&sites->by_key);
    if (kept)
        qsort(sites->entries, kept, sizeof(*sites->entries), most_first_site);
}

void gm_sites_free(struct gm_sites *sites)
{
    free(sites->entries);
    gm_map_free(&sites->by_key);
    *sites = (struct gm_sites){0};
}
