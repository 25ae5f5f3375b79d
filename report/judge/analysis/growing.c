/* See growing.h. */
#include "judge/analysis/growing.h"
#include "names/stacks/owner.h"

const struct gm_active_site *gm_growing_site(const struct gm_analysis *analysis,
                                             const struct gm_growing *growing)
{
    return &analysis->activity.sites[growing->site];
}

bool gm_growth_counts(const struct gm_analysis *analysis, const struct gm_growing *growing)
{
    const struct gm_active_site *site = gm_growing_site(analysis, growing);
    if (site->is_block || gm_kind_is_host(site->kind) || analysis->blocks.records == 0)
        return true;
    return !gm_owners_cache(analysis->owners, site->kind, site->stack);
}

uint64_t gm_growth_bytes(const struct gm_analysis *analysis)
{
    const struct gm_growth *growth = &analysis->activity.growth;
    uint64_t bytes = 0;
    for (size_t i = 0; i < growth->found_count; i++)
        if (gm_growth_counts(analysis, &growth->found[i]))
            bytes += gm_growing_bytes(&growth->found[i]);
    return bytes;
}

bool gm_growing_tells(const struct gm_analysis *analysis, uint32_t stack, unsigned kind, int device,
                      bool is_block)
{
    const struct gm_growth *growth = &analysis->activity.growth;
    uint32_t caller = gm_callers_get(analysis->callers, stack);
    for (size_t i = 0; i < growth->found_count; i++) {
        const struct gm_active_site *site = gm_growing_site(analysis, &growth->found[i]);
        if (site->kind == kind && site->device == device && site->is_block == is_block &&
            gm_callers_get(analysis->callers, site->stack) == caller &&
            gm_growth_counts(analysis, &growth->found[i]))
            return true;
    }
    return false;
}
