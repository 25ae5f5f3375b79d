/* Who held the memory at certain moments. Peaks are noted while the first replay passes them. At the
 * others, refusals and what PyTorch's pools held, a second one stops: it ends with the last of them,
 * and is not needed where there are none. */
#ifndef GPUMEM_REPORT_ANALYSIS_SNAPSHOTS_H
#define GPUMEM_REPORT_ANALYSIS_SNAPSHOTS_H

#include "input/trace/trace_file.h"
#include "judge/pool/holes.h"
#include "judge/pool/pool_failures.h"
#include "replay/ledger/peak_lives.h"
#include "replay/ledger/sites.h"
#include <stddef.h>
#include <stdint.h>

/* Allocations at one moment. */
struct gm_snapshot {
    uint64_t step; /* of the replay */
    uint64_t time; /* record clock */
    int device;    /* of a device; ignored for host kinds */
    uint8_t kind;  /* a host kind, or GM_KIND_NONE: all kinds on the device but external */
    struct gm_sites owners;
    struct gm_holes holes; /* of a device */
};

/* Fills in who lived at the peak that the snapshot is of. */
void gm_snapshot_of_peak(struct gm_snapshot *snapshot, const struct gm_peak_lives *peaks,
                         const struct gm_ledger *ledger);

/* Moments to stop at; their owners, holes and segments are filled in. */
struct gm_moments {
    struct gm_snapshot **devices;
    size_t device_count;
    struct gm_pool_snapshot **pools;
    size_t pool_count;
};

/* Sorts the moments and replays the trace. */
void gm_snapshots_take(struct gm_trace *trace, struct gm_moments *moments);

/* Fills in a pool's owners and segments from these blocks and the state of a replay. */
void gm_pool_snapshot_take(struct gm_pool_snapshot *snapshot, const struct gm_replay *replay,
                           const struct gm_block_order *order, struct gm_libraries *libraries);

/* An allocation as a site. */
struct gm_site gm_site_of_life(const struct gm_life *life, unsigned class);

#endif
