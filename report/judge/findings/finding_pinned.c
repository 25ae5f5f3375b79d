/* Pinned host memory: that grows all through a run, or that is rounded up to powers of two. */
#include "base/size.h"
#include "judge/analysis/growing.h"
#include "judge/findings/rules.h"
#include "judge/pool/libraries.h"
#include <string.h>

/* ---- pinned-growth --------------------------------------------------------------------------- */

#define EIGHTHS 8u                   /* of the run; the last half of them must each rise */
#define GROWTH_AT_LEAST (8 * GM_MIB) /* in that half */
#define MORE_AT_LEAST 8u             /* allocations in that half */

/* The place that pinned most at one time. */
static const struct gm_active_site *largest_site(const struct gm_analysis *analysis)
{
    const struct gm_active_site *most = NULL;
    for (size_t i = 0; i < analysis->activity.count; i++) {
        const struct gm_active_site *site = &analysis->activity.sites[i];
        if (site->kind == GM_KIND_PINNED && (!most || site->peak > most->peak))
            most = site;
    }
    return most;
}

void gm_find_pinned_growth(const struct gm_analysis *analysis, struct gm_findings *findings)
{
    const struct gm_curve *curve = &analysis->pinned_curve;
    const struct gm_active_site *site = largest_site(analysis);
    uint64_t most[EIGHTHS], calls[EIGHTHS];
    for (unsigned i = 0; i < EIGHTHS; i++) {
        most[i] = gm_curve_most(curve, 0, i, i + 1, EIGHTHS);
        calls[i] = gm_curve_most(curve, 1, i, i + 1, EIGHTHS);
    }
    for (unsigned i = EIGHTHS / 2; i < EIGHTHS; i++)
        if (most[i] <= most[i - 1])
            return;
    const unsigned before = EIGHTHS / 2 - 1, last = EIGHTHS - 1;
    if (!site || most[last] - most[before] < GROWTH_AT_LEAST ||
        calls[last] - calls[before] < MORE_AT_LEAST ||
        gm_growing_tells(analysis, site->stack, GM_KIND_PINNED, -1, false))
        return;
    gm_findings_add(findings,
                    &(struct gm_finding){.code = GM_FINDING_PINNED_GROWTH,
                                         .severity = GM_SEVERITY_WARNING,
                                         .device = -1,
                                         .bytes = most[last] - most[before],
                                         .stack = site->stack,
                                         .api = site->api},
                    "Pinned memory rose all through the second half of the run, from %s to %s in "
                    "%s allocations; most of it was taken here.",
                    SIZE(most[before]), SIZE(most[last]), COUNT(calls[last] - calls[before]));
    gm_findings_remedy(findings, "Pin a few buffers once, and fill them in turn.");
    gm_findings_evidence(findings, "largest totals of the last five eighths: %s, %s, %s, %s, %s",
                         SIZE(most[before]), SIZE(most[before + 1]), SIZE(most[before + 2]),
                         SIZE(most[before + 3]), SIZE(most[last]));
}

/* ---- pinned-waste ---------------------------------------------------------------------------- */

#define WASTE_AT_LEAST GM_MIB
#define WASTE_SHARE 4u /* of the pinned memory that copies used: a quarter */

static bool is_power_of_two(uint64_t size)
{
    return size && (size & (size - 1)) == 0;
}

/* What was asked for is not known, but copies tell how far a buffer was used. More than half used,
 * and not all, is what rounding up leaves. */
static uint64_t wasted(const struct gm_analysis *analysis, struct gm_libraries *libraries,
                       const struct gm_life *life)
{
    if (life->kind != GM_KIND_PINNED || !is_power_of_two(life->size))
        return 0;
    const char *pool = gm_libraries_of(libraries, life->kind, life->stack).pool;
    uint64_t reach = gm_transfers_reach(&analysis->transfers, life->address);
    if (!pool || strcmp(pool, "PyTorch") != 0 || reach <= life->size / 2)
        return 0;
    return reach < life->size ? life->size - reach : 0;
}

void gm_find_pinned_waste(const struct gm_analysis *analysis, struct gm_findings *findings)
{
    struct gm_libraries *libraries = gm_libraries_new(analysis->trace);
    const struct gm_lives *lives = &analysis->replay.ledger.lives;
    const struct gm_life *most = NULL;
    uint64_t waste = 0, used = 0, buffers = 0;
    for (uint32_t i = 0; i < lives->used; i++) {
        const struct gm_life *life = &lives->slots[i];
        uint64_t bytes = wasted(analysis, libraries, life);
        if (life->kind == GM_KIND_PINNED && gm_transfers_reach(&analysis->transfers, life->address))
            used += life->size;
        waste += bytes;
        buffers += bytes > 0;
        if (bytes && (!most || life->size > most->size))
            most = life;
    }
    if (most && waste >= WASTE_AT_LEAST && waste >= used / WASTE_SHARE) {
        gm_findings_add(findings,
                        &(struct gm_finding){.code = GM_FINDING_PINNED_WASTE,
                                             .severity = GM_SEVERITY_NOTE,
                                             .device = -1,
                                             .bytes = waste,
                                             .stack = most->stack,
                                             .api = most->api},
                        "PyTorch takes pinned memory by powers of two: copies used %s of the %s "
                        "in %s buffer%s.",
                        SIZE(used - waste), SIZE(used), COUNT(buffers), gm_plural(buffers));
        gm_findings_remedy(findings, "Choose batches just below a power of two in bytes.");
    }
    gm_libraries_free(libraries);
}
