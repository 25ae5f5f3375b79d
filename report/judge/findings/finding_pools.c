/* How pools and devices compare with what is needed of them: memory that is cached and idle, and
 * one device that is used much more than another. */
#include "base/map.h"
#include "base/memory.h"
#include "base/size.h"
#include "judge/findings/rules.h"
#include <stdlib.h>

/* Who held most when PyTorch's pool on the device, or else the device, held most. */
static const struct gm_site *largest_owner(const struct gm_analysis *analysis, int device)
{
    const struct gm_pool_snapshot *pool = gm_analysis_pool_peak(analysis, device);
    const struct gm_snapshot *peak = gm_analysis_peak(analysis, device);
    if (pool && pool->owners.count)
        return &pool->owners.entries[0];
    return peak && peak->owners.count ? &peak->owners.entries[0] : NULL;
}

/* ---- cached ---------------------------------------------------------------------------------- */

#define IDLE_AT_LEAST (32 * GM_MIB)
#define IDLE_SHARE 4u /* of what is reserved: a quarter */
#define PARTS 4u      /* of all allocations: idle in the last of them */

/* Bytes that no block needed in the last part of the run, and that empty_cache() would return. */
static uint64_t idle_bytes(const struct gm_pool_snapshot *last, uint64_t needed)
{
    struct gm_segment_sums all = gm_segments_all(last->segments.sums);
    uint64_t unneeded = last->reserved > needed ? last->reserved - needed : 0;
    return unneeded < all.returnable ? unneeded : all.returnable;
}

void gm_find_cached(const struct gm_analysis *analysis, struct gm_findings *findings)
{
    for (size_t i = 0; i < analysis->pool_count; i++) {
        const struct gm_pool_snapshot *last = &analysis->pool_lasts[i];
        const struct gm_curve *curve = analysis->blocks.device[last->device + 1].by_alloc;
        uint64_t needed = gm_curve_most(curve, 0, PARTS - 1, PARTS, PARTS);
        uint64_t idle = idle_bytes(last, needed);
        if (idle < IDLE_AT_LEAST || idle < last->reserved / IDLE_SHARE)
            continue;
        const struct gm_site *owner = largest_owner(analysis, last->device);
        gm_findings_add(findings,
                        &(struct gm_finding){.code = GM_FINDING_CACHED,
                                             .severity = GM_SEVERITY_NOTE,
                                             .device = last->device,
                                             .bytes = idle,
                                             .stack = owner ? owner->stack : 0,
                                             .api = owner ? owner->api : 0},
                        "%s are reserved, but in the last quarter of all requests at most %s were "
                        "allocated; %s of the rest are in whole segments. "
                        "At the peak most was held from here.",
                        SIZE(last->reserved), SIZE(needed), SIZE(idle));
        gm_findings_remedy(findings, "PyTorch keeps them for its next use. If other processes or "
                                     "libraries need them: torch.cuda.empty_cache().");
    }
}

/* ---- device-imbalance ------------------------------------------------------------------------ */

#define USED_SHARE 16u /* a device is used from this part of the largest peak on */
#define DIFFERENCE_AT_LEAST (256 * GM_MIB)
#define SAME_WORK_SHARE                                                                            \
    4u                 /* of the lesser peak: a quarter is of lines that do the same on both       \
                        */
#define ALIKE_SHARE 5u /* what a line holds on one device is a fifth more at most */

/* What held a device's memory when it was most: the blocks of PyTorch's pool, or allocations. */
static const struct gm_sites *owners_of(const struct gm_analysis *analysis, int device)
{
    const struct gm_pool_snapshot *pool = gm_analysis_pool_peak(analysis, device);
    return pool && pool->owners.count ? &pool->owners : &gm_analysis_peak(analysis, device)->owners;
}

/* The line of the application that a stack belongs to, on whatever way it was reached. */
static uint64_t line_of(const struct gm_analysis *analysis, uint32_t stack)
{
    uint32_t caller = gm_callers_get(analysis->callers, stack);
    const struct gm_node *node = gm_trace_node(analysis->trace, caller);
    return node ? node->address ^ (uint64_t)node->module << 48 : 0;
}

/* Bytes by line. */
struct line_bytes {
    struct gm_map by_line; /* -> number */
    uint64_t *bytes;
    uint32_t count;
};

static struct line_bytes bytes_by_line(const struct gm_analysis *analysis,
                                       const struct gm_sites *owners)
{
    struct line_bytes lines = {.bytes = gm_allocate(owners->count + 1, sizeof(*lines.bytes))};
    for (size_t i = 0; i < owners->count; i++) {
        uint64_t line = line_of(analysis, owners->entries[i].stack);
        uint32_t at = gm_map_get(&lines.by_line, line);
        if (at == GM_NONE)
            gm_map_set(&lines.by_line, line, at = lines.count++);
        lines.bytes[at] += owners->entries[i].bytes;
    }
    return lines;
}

static void free_lines(struct line_bytes *lines)
{
    gm_map_free(&lines->by_line);
    free(lines->bytes);
}

/* Replicas of one model: lines that hold the same on both devices, or nearly so. Different work, as
 * two models or unequal parts of one, is as it was meant to be. `same`: bytes of such lines. */
static bool do_same_work(const struct gm_analysis *analysis, int one, int other, uint64_t *same)
{
    const struct gm_sites *owners = owners_of(analysis, one);
    struct line_bytes here = bytes_by_line(analysis, owners);
    struct line_bytes there = bytes_by_line(analysis, owners_of(analysis, other));
    uint64_t all = 0, alike = 0;
    for (size_t i = 0; i < owners->count; i++) {
        uint64_t line = line_of(analysis, owners->entries[i].stack);
        uint32_t at = gm_map_get(&there.by_line, line);
        uint64_t a = here.bytes[gm_map_get(&here.by_line, line)];
        uint64_t b = at == GM_NONE ? 0 : there.bytes[at];
        uint64_t more = a > b ? a : b, difference = more - (a > b ? b : a);
        all += owners->entries[i].bytes;
        if (difference <= more / ALIKE_SHARE)
            alike += owners->entries[i].bytes;
    }
    free_lines(&here);
    free_lines(&there);
    *same = alike;
    return alike >= all / SAME_WORK_SHARE;
}

void gm_find_device_imbalance(const struct gm_analysis *analysis, struct gm_findings *findings)
{
    const struct gm_snapshot *most = NULL, *least = NULL;
    uint64_t same = 0;
    for (size_t i = 0; i < analysis->device_peak_count; i++)
        if (!most || analysis->device_peaks[i].owners.bytes > most->owners.bytes)
            most = &analysis->device_peaks[i];
    for (size_t i = 0; most && i < analysis->device_peak_count; i++) {
        const struct gm_snapshot *peak = &analysis->device_peaks[i];
        if (peak != most && peak->owners.bytes >= most->owners.bytes / USED_SHARE &&
            (!least || peak->owners.bytes < least->owners.bytes))
            least = peak;
    }
    if (!least || most->owners.bytes - least->owners.bytes < DIFFERENCE_AT_LEAST ||
        most->owners.bytes < least->owners.bytes + least->owners.bytes / 2 ||
        !do_same_work(analysis, least->device, most->device, &same))
        return;
    const struct gm_site *owner = largest_owner(analysis, most->device);
    gm_findings_add(findings,
                    &(struct gm_finding){.code = GM_FINDING_DEVICE_IMBALANCE,
                                         .severity = GM_SEVERITY_WARNING,
                                         .device = most->device,
                                         .bytes = most->owners.bytes - least->owners.bytes,
                                         .stack = owner ? owner->stack : 0,
                                         .api = owner ? owner->api : 0},
                    "The peak of device %d is %s, that of device %d only %s: the fullest device "
                    "limits all.",
                    most->device, SIZE(most->owners.bytes), least->device,
                    SIZE(least->owners.bytes));
    gm_findings_remedy(findings,
                       "Gather results on the host (.cpu()), or let each device keep its own.");
    gm_findings_evidence(
        findings, "%s of what device %d held then are of lines that held the same on device %d",
        SIZE(same), least->device, most->device);
}
