/* Copies between a device and memory that the device cannot reach by itself. */
#include "base/size.h"
#include "judge/findings/rules.h"

/* So often must the same device memory be filled again with data that do not stay. A model that is
 * loaded stays, and pinning it all first would cost more than it gains. */
#define AGAIN_AT_LEAST 8u

/* And so much of all that was copied to devices must the place have copied: one hundredth. A table
 * that is written anew now and then beside large batches is no loss of time. */
#define SHARE 100u

/* And so much in all: at 6 to 12 GB/s, what pageable copies reach, that is a millisecond or two. */
#define BYTES_AT_LEAST (16 * GM_MIB)

/* Results that come back in smaller pieces are read because somebody waits for them. */
#define RESULT_AT_LEAST GM_MIB

static bool is_told_copy(const struct gm_analysis *analysis, const struct gm_transfer_site *site)
{
    const struct gm_transfers *transfers = &analysis->transfers;
    uint64_t copied = transfers->total[site->direction].bytes;
    bool is_in = site->direction == GM_COPY_HOST_TO_DEVICE;
    bool is_out = site->direction == GM_COPY_DEVICE_TO_HOST && site->sum.pageable_count &&
                  site->sum.pageable_bytes / site->sum.pageable_count >= RESULT_AT_LEAST;
    return (is_in || is_out) && site->staged_again >= AGAIN_AT_LEAST &&
           site->sum.pageable_bytes >= copied / SHARE &&
           site->sum.pageable_bytes >= BYTES_AT_LEAST &&
           gm_categories_get(analysis->categories, site->stack) != GM_CATEGORY_PARAMETER;
}

void gm_find_pageable_copies(const struct gm_analysis *analysis, struct gm_findings *findings)
{
    const struct gm_transfers *transfers = &analysis->transfers;
    for (size_t i = 0; i < transfers->site_count; i++) {
        const struct gm_transfer_site *site = &transfers->sites[i];
        bool is_in = site->direction == GM_COPY_HOST_TO_DEVICE;
        if (!is_told_copy(analysis, site))
            continue;
        gm_findings_add(findings,
                        &(struct gm_finding){.code = GM_FINDING_PAGEABLE_COPIES,
                                             .severity = GM_SEVERITY_WARNING,
                                             .device = -1,
                                             .bytes = site->sum.pageable_bytes,
                                             .stack = site->stack,
                                             .api = site->api},
                        "%s copies %s pageable memory took the calling thread %s; %s of them "
                        "were of 256 KiB or more and filled the same %s memory again.",
                        COUNT(site->sum.pageable_count), is_in ? "from" : "to",
                        TIME(site->sum.nanoseconds), COUNT(site->staged_again),
                        is_in ? "device" : "host");
        if (is_in)
            gm_findings_remedy(findings, "Copy from pinned memory: cudaHostAlloc; in PyTorch "
                                         "DataLoader(pin_memory=True) and .to(device, "
                                         "non_blocking=True).");
        else
            gm_findings_remedy(findings, "Copy to pinned memory that is kept: cudaHostAlloc; in "
                                         "PyTorch buffer.copy_(tensor, non_blocking=True) with "
                                         "pin_memory=True.");
        gm_findings_evidence(
            findings, "%s of the %s copied %s devices; the same memory filled again %s times",
            SIZE(site->sum.pageable_bytes), SIZE(transfers->total[site->direction].bytes),
            is_in ? "to" : "from", COUNT(site->staged_again));
    }
}
