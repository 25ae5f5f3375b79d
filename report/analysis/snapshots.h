/* Who held the memory at moments that are known from a first replay: a second one stops there. It
 * ends with the last moment, so that it costs little where all of them are early. */
#ifndef GPUMEM_REPORT_ANALYSIS_SNAPSHOTS_H
#define GPUMEM_REPORT_ANALYSIS_SNAPSHOTS_H

#include "ledger/sites.h"
#include "pool/holes.h"
#include "pool/pool_failures.h"
#include "trace/trace_file.h"
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
