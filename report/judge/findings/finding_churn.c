/* Memory that goes back to the driver and is taken from it again, round by round. */
#include "base/size.h"
#include "judge/findings/rules.h"
#include <stdio.h>

#define TURNS 8u        /* times its peak must a cache have taken again, */
#define BATCHES 8u      /* after it had given back so often; */
#define TAKEN 16u       /* so many segments at least, */
#define BLOCK_SHARE 16u /* and one for each so many blocks: else it hardly matters */

#define RETRIES 4u       /* requests refused at first: a note */
#define RETRIES_MANY 32u /* a warning */

#define PLACE_TURNS 32u  /* times what a place held at most must it have allocated */
#define PLACE_ALLOCS 64u /* in so many allocations at least */

#define LOCKED_AT_LEAST (256 * GM_MIB) /* bytes whose pages were locked: a warning */

static bool churns(const struct gm_analysis *analysis, int device)
{
    const struct gm_churn_device *churn = &analysis->churn.device[device + 1];
    return churn->batches >= BATCHES && churn->taken >= TAKEN &&
           churn->again / TURNS >= churn->peak && churn->peak &&
           churn->taken >= analysis->blocks.device[device + 1].allocs / BLOCK_SHARE;
}

/* A pool's cache. Without blocks on record, each allocation of the framework's is a segment: its user
 * turned the cache off. */
static void find_in_cache(const struct gm_analysis *analysis, struct gm_findings *findings,
                          int device)
{
    const struct gm_churn_device *churn = &analysis->churn.device[device + 1];
    const struct gm_churn_place *place = gm_churn_most(&analysis->churn, device);
    if (!place || !analysis->blocks.device[device + 1].allocs ||
        (!churns(analysis, device) && churn->refused < RETRIES))
        return;
    bool is_full = churn->refused >= RETRIES;
    struct gm_finding finding = {
        .code = GM_FINDING_CHURN,
        .severity = churns(analysis, device) || churn->refused >= RETRIES_MANY ? GM_SEVERITY_WARNING
                                                                               : GM_SEVERITY_NOTE,
        .device = device,
        .bytes = churn->again,
        .stack = place->stack,
        .api = place->api,
    };
    char retries[128] = "";
    if (is_full)
        snprintf(retries, sizeof(retries),
                 " %s times the driver had refused a request first: the device is nearly full.",
                 COUNT(churn->refused));
    gm_findings_add(
        findings, &finding,
        "PyTorch gave memory back to the driver %s times, and took %s of it again in %s "
        "allocations; most of it here.%s",
        COUNT(churn->batches), SIZE(churn->again), COUNT(churn->taken), retries);
    if (is_full)
        gm_findings_remedy(findings,
                           "Leave some of the device free, use few different sizes, or set "
                           "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.");
    else
        gm_findings_remedy(findings, "Call torch.cuda.empty_cache() when another process or "
                                     "library needs the memory, not in each round.");
    gm_findings_evidence(findings,
                         "gave back %s times; took %s segments again for %s blocks; "
                         "refused before success %s times; peak %s",
                         COUNT(churn->batches), COUNT(churn->taken),
                         COUNT(analysis->blocks.device[device + 1].allocs), COUNT(churn->refused),
                         SIZE(churn->peak));
}

/* What a program takes from CUDA and gives back, block by block, although a pool or a buffer that is
 * kept would serve. */
static bool is_temporary(const struct gm_analysis *analysis, const struct gm_active_site *site)
{
    return !site->is_block && site->kind != GM_KIND_HOST_VMM && site->kind != GM_KIND_EXTERNAL &&
           site->allocs >= PLACE_ALLOCS && site->allocated / PLACE_TURNS >= site->peak &&
           site->peak && gm_owners_get(analysis->owners, site->stack) == 0 &&
           !gm_trace_api_is_pooled(analysis->trace, site->api);
}

/* Of a device, or of the host. Memory of the host is in a device's reach by system calls that lock its pages. */
static void find_temporaries(const struct gm_analysis *analysis, struct gm_findings *findings,
                             int device, bool of_host)
{
    const struct gm_active_site *most = NULL;
    uint64_t allocs = 0;
    for (size_t i = 0; i < analysis->activity.count; i++) {
        const struct gm_active_site *site = &analysis->activity.sites[i];
        if (gm_kind_is_host(site->kind) != of_host || (!of_host && site->device != device) ||
            !is_temporary(analysis, site))
            continue;
        allocs += site->allocs;
        if (!most || site->allocated > most->allocated)
            most = site;
    }
    if (!most)
        return;
    gm_findings_add(findings,
                    &(struct gm_finding){.code = GM_FINDING_CHURN,
                                         .severity = of_host && most->allocated >= LOCKED_AT_LEAST
                                                         ? GM_SEVERITY_WARNING
                                                         : GM_SEVERITY_NOTE,
                                         .device = of_host ? -1 : device,
                                         .bytes = most->allocated,
                                         .stack = most->stack,
                                         .api = most->api},
                    "%s was called %s times here for %s in all, and never held more than %s.",
                    gm_trace_api(analysis->trace, most->api), COUNT(most->allocs),
                    SIZE(most->allocated), SIZE(most->peak));
    gm_findings_remedy(findings, of_host ? "Locking pages costs more than copying them: keep the "
                                           "buffer for the next round."
                                         : "Each cudaMalloc and cudaFree may wait for the device: "
                                           "keep the buffer, or use cudaMallocAsync.");
    gm_findings_evidence(findings, "%s allocations at all such places", COUNT(allocs));
}

void gm_find_churn(const struct gm_analysis *analysis, struct gm_findings *findings)
{
    for (int device = -1; device < GM_DEVICES - 1; device++) {
        find_in_cache(analysis, findings, device);
        find_temporaries(analysis, findings, device, false);
    }
    find_temporaries(analysis, findings, -1, true);
}
