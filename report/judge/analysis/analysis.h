/* What a trace says, as numbers and sites: everything a report shows but the names.
 *
 * The first replay finds the totals and what is left at the end, and notes who held the memory at a
 * peak. A second one, only where it is needed, stops at refused allocations and at a pool's moments.
 */
#ifndef GPUMEM_REPORT_ANALYSIS_ANALYSIS_H
#define GPUMEM_REPORT_ANALYSIS_ANALYSIS_H

#include "base/names.h"
#include "input/trace/trace_file.h"
#include "judge/analysis/activity.h"
#include "judge/analysis/phases.h"
#include "judge/analysis/snapshots.h"
#include "judge/analysis/transfers.h"
#include "judge/pool/blocks.h"
#include "judge/rounds/churn.h"
#include "judge/rounds/code_loads.h"
#include "replay/ledger/sites.h"
#include "replay/rules/replay.h"
#include <stdbool.h>
#include <stdint.h>

/* An allocation call that was refused; those of one stack, kind and device together. */
struct gm_failure {
    uint64_t time;  /* of the latest */
    uint64_t size;  /* asked for by the latest, bytes */
    uint64_t first; /* by the first */
    uint64_t count;
    uint32_t stack;
    uint64_t line;   /* gm_callers_line() */
    uint32_t status; /* CUresult or cudaError_t of the latest */
    uint16_t api;
    uint8_t kind;
    int8_t device;
    uint8_t purpose; /* enum gm_purpose; else `size` is what was asked for */
    bool out_of_memory;
    bool never_more; /* none asked for more than the one before */
    bool never_same; /* each asked for less */
    bool
        starts_over; /* each time that one was served, more than was asked for had been given back */
    bool followed;   /* something was allocated since the latest */
    bool fell_back;  /* and the first was as much on the host, or managed */
    bool survived;   /* the program went on after the latest: docs/accounting.md */
    bool was_served; /* something was allocated at the same line, after the latest or before it */
    uint64_t served; /* bytes of the next one at the same line; 0: none was */
    uint64_t
        used; /* bytes known to take room on the device then: ours, the driver's, others'. Managed
                        memory takes none: it can lie on the host */
    uint64_t event;              /* number of the latest */
    uint64_t live;               /* bytes on the device then */
    struct gm_snapshot snapshot; /* at the latest, if out of memory and step is not 0 */
};

#define GM_FAILURES_KEPT 16u /* the last ones; all are counted */

/* What the process used on a device beyond what was tracked there. */
struct gm_residual {
    uint64_t time;    /* record clock */
    uint64_t used;    /* bytes, as the driver says */
    uint64_t tracked; /* bytes live on the device just then, all kinds but external */
    uint64_t bytes;   /* used - tracked; 0 if less is resident than was allocated */
    bool estimated;   /* it is not certain that the sample is of this device */
};

/* What all processes used of a device at one instant, as the driver says. */
struct gm_device_use {
    uint64_t time;  /* record clock */
    uint64_t bytes; /* 0: no sample tells */
    uint64_t own;   /* of it this process; 0: unknown */
};

struct gm_device_facts {
    struct gm_text name;
    uint64_t total; /* bytes; 0 unknown */
    uint64_t samples;
    uint64_t residuals; /* samples that tell of this process */
    struct gm_residual largest;
    struct gm_residual last;
    uint64_t used_by_process;     /* bytes, largest sample */
    struct gm_device_use fullest; /* the sample with most */
    uint64_t elsewhere;           /* used by other processes, latest sample that tells */
};

struct gm_analysis {
    struct gm_trace *trace;
    struct gm_replay replay; /* at the end of the trace */
    uint64_t lost;           /* records that are missing */
    uint64_t duration;       /* ns, to the end mark or the last record */
    struct gm_peak_lives peak_lives;
    struct gm_snapshot *device_peaks; /* of devices with a peak, by ordinal */
    size_t device_peak_count;
    struct gm_snapshot pinned_peak;   /* step 0: nothing was pinned */
    struct gm_sites leaks;            /* by class */
    uint64_t leaked[GM_LEAK_CLASSES]; /* bytes */
    uint64_t leaked_count[GM_LEAK_CLASSES];
    struct gm_failure *failures;
    size_t failure_count;
    size_t failure_capacity;
    struct gm_transfers transfers;
    struct gm_blocks blocks;
    struct gm_callers *callers;
    struct gm_owners *owners;
    struct gm_categories *categories;
    struct gm_pool_failures pool_failures;
    struct gm_pool_snapshot *pool_peaks; /* of each device with blocks, when they were most */
    struct gm_pool_snapshot *pool_lasts; /* of the same, just after the last use of all */
    size_t pool_count;
    struct gm_block_order last_blocks; /* of all devices, just then */
    struct gm_curve pinned_curve;      /* bytes and allocations over the events, not over time */
    struct gm_clocked_curve *device_curves
        [GM_DEVICES]; /* [ordinal + 1]: bytes of all kinds but external; over ns, or of a simulated run over its changes */
    uint64_t device_changes;  /* births and deaths that they tell of */
    uint64_t active_until;    /* number of the last event that allocates or copies */
    uint64_t called_until;    /* likewise, or frees */
    uint64_t ended_since_use; /* allocations that ended after the last use of a pool */
    struct gm_phases phases;
    struct gm_activity activity;
    struct gm_churn churn;
    struct gm_code_loads code;
    struct gm_device_facts facts[GM_DEVICES]; /* [ordinal + 1] */
    uint64_t marks;
};

/* Replays the trace. The trace must outlive the analysis. */
struct gm_analysis *gm_analyse(struct gm_trace *trace);

/* Only what one replay counts: no leaks, nothing of a moment such as a peak. */
struct gm_analysis *gm_analyse_briefly(struct gm_trace *trace);
void gm_analysis_free(struct gm_analysis *analysis);

enum gm_fragmentation gm_analysis_fragmentation(const struct gm_analysis *analysis,
                                                const struct gm_failure *failure);

/* The snapshot of a device's peak, NULL if it has none. */
const struct gm_snapshot *gm_analysis_peak(const struct gm_analysis *analysis, int device);

/* The failure of a pool that a refused allocation led to; NULL: none, the pool could help itself or
 * no pool asked. */
const struct gm_pool_failure *gm_analysis_pool_failure(const struct gm_analysis *analysis,
                                                       const struct gm_failure *failure);

/* The snapshot of a pool's peak, NULL if it has none. */
const struct gm_pool_snapshot *gm_analysis_pool_peak(const struct gm_analysis *analysis,
                                                     int device);

#endif
