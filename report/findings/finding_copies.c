/* Copies to a device from memory that the device cannot reach by itself. */
#include "base/size.h"
#include "findings/rules.h"

/* So often must the same device memory be filled again with data that do not stay. A model that is
 * loaded stays, and pinning it all first would cost more than it gains. */
#define AGAIN_AT_LEAST 8u

/* And so much of all that was copied to devices must the place have copied: one hundredth. A table
 * that is written anew now and then beside large batches is no loss of time. */
#define SHARE 100u

void gm_find_pageable_copies(const struct gm_analysis *analysis, struct gm_findings *findings)
{
    const struct gm_transfers *transfers = &analysis->transfers;
    uint64_t copied = transfers->total[GM_COPY_HOST_TO_DEVICE].bytes;
    for (size_t i = 0; i < transfers->site_count; i++) {
        const struct gm_transfer_site *site = &transfers->sites[i];
        if (site->direction != GM_COPY_HOST_TO_DEVICE || site->staged_again < AGAIN_AT_LEAST ||
            site->sum.pageable_bytes < copied / SHARE ||
            gm_categories_get(analysis->categories, site->stack) == GM_CATEGORY_PARAMETER)
            continue;
        gm_findings_add(findings,
                        &(struct gm_finding){.code = GM_FINDING_PAGEABLE_COPIES,
                                             .severity = GM_SEVERITY_WARNING,
                                             .device = -1,
                                             .bytes = site->sum.pageable_bytes,
                                             .stack = site->stack,
                                             .api = site->api},
                        "%s copies from pageable memory took the calling thread %s; %s of them "
                        "were over 64 KiB and filled the same device memory again.",
                        COUNT(site->sum.pageable_count), TIME(site->sum.nanoseconds),
                        COUNT(site->staged_again));
        gm_findings_remedy(findings, "Copy from pinned memory: cudaHostAlloc; in PyTorch "
                                     "DataLoader(pin_memory=True) and .to(device, "
                                     "non_blocking=True).");
        gm_findings_evidence(
            findings, "%s of the %s copied to devices; the same memory filled again %s times",
            SIZE(site->sum.pageable_bytes), SIZE(copied), COUNT(site->staged_again));
    }
}
