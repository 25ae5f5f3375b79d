/* See counters.h. Only what was added is ever subtracted, so no sum can go below zero. */
#include "ledger/counters.h"

const char *gm_kind_name(unsigned kind)
{
    static const char *const names[GM_KINDS] = {
        [GM_KIND_NONE] = "unknown",
        [GM_KIND_DEVICE] = "device",
        [GM_KIND_MANAGED] = "managed",
        [GM_KIND_ARRAY] = "array",
        [GM_KIND_VMM] = "vmm",
        [GM_KIND_GRAPH] = "graph",
        [GM_KIND_EXTERNAL] = "external",
        [GM_KIND_PINNED] = "pinned",
        [GM_KIND_REGISTERED] = "registered",
        [GM_KIND_HOST_VMM] = "vmm",
    };
    return kind < GM_KINDS ? names[kind] : names[GM_KIND_NONE];
}

struct gm_device_totals *gm_counters_device(struct gm_counters *counters, int device)
{
    struct gm_device_totals *totals = &counters->device[device < 0 ? 0 : device + 1];
    totals->seen = true;
    return totals;
}

struct gm_tally *gm_counters_kind(struct gm_counters *counters, unsigned kind, int device)
{
    if (gm_kind_is_host(kind))
        return &counters->host[kind];
    return &gm_counters_device(counters, device)->kind[kind];
}

static void raise_peak(struct gm_peak *peak, uint64_t live, uint64_t time, uint64_t step)
{
    if (live > peak->bytes)
        *peak = (struct gm_peak){live, time, step};
}

void gm_counters_add(struct gm_counters *counters, unsigned kind, int device, uint64_t size,
                     uint64_t time, uint64_t step)
{
    struct gm_tally *counter = gm_counters_kind(counters, kind, device);
    counter->live += size;
    counters->live += size;
    raise_peak(&counter->peak, counter->live, time, step);
    if (gm_kind_is_host(kind) || kind == GM_KIND_EXTERNAL)
        return;
    struct gm_device_totals *totals = gm_counters_device(counters, device);
    totals->live += size;
    raise_peak(&totals->peak, totals->live, time, step);
}

void gm_counters_subtract(struct gm_counters *counters, unsigned kind, int device, uint64_t size)
{
    counters->live -= size;
    gm_counters_kind(counters, kind, device)->live -= size;
    if (!gm_kind_is_host(kind) && kind != GM_KIND_EXTERNAL)
        gm_counters_device(counters, device)->live -= size;
}
