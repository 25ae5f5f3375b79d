/* Times that a framework's allocator gave up: what was asked of it, where, and how it went on.
 * Those of one line (callers.h) on one device are told together. */
#ifndef GPUMEM_REPORT_POOL_POOL_FAILURES_H
#define GPUMEM_REPORT_POOL_POOL_FAILURES_H

#include "base/facts.h"
#include "judge/pool/blocks.h"
#include "judge/pool/segments.h"
#include "judge/pool/shapes.h"
#include "names/stacks/callers.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a pool held at one moment. */
struct gm_pool_snapshot {
    uint64_t record; /* gm_blocks.records just then; 0: none was taken */
    uint64_t time;   /* record clock */
    int device;
    uint64_t allocated; /* bytes in blocks */
    uint64_t reserved;  /* as the framework said */
    uint64_t in_use;    /* of XLA's pool, as it said, also for what is no array; 0: not told */
    uint64_t rounding;  /* of these, what XLA adds to the sizes of the arrays */
    struct gm_sites owners;
    struct gm_segments segments;
    bool is_peak;
    struct gm_shapes shapes; /* of a peak only */
};

struct gm_pool_failure {
    uint64_t size;              /* asked for by the latest, bytes */
    uint64_t first;             /* by the first */
    uint64_t count;             /* of all there */
    uint64_t allocs, allocated; /* of the device, until the latest; bytes */
    uint64_t elsewhere; /* bytes used on the device by other processes; 0: not known, or none */
    uint64_t residual;  /* bytes of the driver for this one, as last sampled; 0: not known */
    uint64_t tracked;   /* bytes of all kinds but managed and external on the device */
    uint64_t total;     /* bytes of the device; 0: not known */
    uint32_t stack;     /* of the latest */
    uint64_t line;      /* gm_callers_line() */
    uint64_t served;    /* bytes of the first block allocated at the same line after the latest */
    uint16_t api;
    int8_t device;
    bool is_placed; /* it is known where blocks lie in the pool: not XLA's */
    uint64_t limit; /* bytes that XLA's pool may take; 0: not told, nor what follows */
    uint64_t largest_hole;
    bool never_more;                  /* none asked for more than the one before */
    bool never_same;                  /* each asked for less */
    bool starts_over;                 /* see gm_gave_back_more(), each time that one was served */
    bool succeeded;                   /* a block was allocated at the same line later */
    bool was_served;                  /* or between two of them */
    bool survived;                    /* the program went on after the latest: docs/accounting.md */
    uint64_t event;                   /* number of the latest */
    struct gm_pool_snapshot snapshot; /* at the latest; only the totals if the history around it is
                                         gone */
};

#define GM_POOL_FAILURES_KEPT 16u /* places; the last ones */

/* All zero: none yet. */
struct gm_pool_failures {
    struct gm_pool_failure entries[GM_POOL_FAILURES_KEPT]; /* latest last */
    size_t count;
    size_t open; /* that have not succeeded */
};

/* A record, after `blocks` took notice of it. */
void gm_pool_failures_note(struct gm_pool_failures *failures, struct gm_callers *callers,
                           const struct gm_blocks *blocks, const struct gm_entry *entry);

struct gm_pool_reason gm_pool_failure_reason(const struct gm_pool_failure *failure);

/* Whether blocks were allocated on the device after the latest: the program caught it, or the allocator is used by
 * other threads. Arrays of XLA's are made before it is known whether their memory was had, also of what failed: there
 * as many bytes must have been allocated as were refused. */
bool gm_pool_failure_is_followed(const struct gm_pool_failure *failure,
                                 const struct gm_blocks *blocks);

/* Whether what lived when `asked` bytes were refused was given back by more than these and as many again, before
 * `served` bytes were: who makes room for a request gives back about as much, who starts over gives back all. */
static inline bool gm_gave_back_more(uint64_t live_then, uint64_t live_now, uint64_t served,
                                     uint64_t asked)
{
    uint64_t before = live_now > served ? live_now - served : 0;
    return live_then > before && (live_then - before) / 2 > asked;
}

void gm_pool_failures_free(struct gm_pool_failures *failures);

#endif
