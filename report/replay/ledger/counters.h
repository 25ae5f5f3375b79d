/* The numbers of docs/accounting.md: bytes and calls per kind, per device and on the host. Only what
 * was added is ever subtracted, so no sum goes below zero. */
#ifndef GPUMEM_REPORT_LEDGER_COUNTERS_H
#define GPUMEM_REPORT_LEDGER_COUNTERS_H

#include "base/names.h"
#include <gpumem/trace.h>
#include <stdbool.h>
#include <stdint.h>

/* No sum of what lives may pass this: more than any address space holds. A record that would make
 * it do so makes no sense. */
#define GM_LIVE_MAX (UINT64_C(1) << 57)

/* For sums over time, which may be of anything. */
static inline uint64_t gm_add_saturated(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* The largest value of a sum over time, and when it was first reached. */
struct gm_peak {
    uint64_t bytes;
    uint64_t time; /* record clock */
    uint64_t step; /* of the ledger; 0 if there never was a byte */
};

/* One kind: what lives, and the calls. */
struct gm_tally {
    uint64_t live; /* bytes */
    struct gm_peak peak;
    uint64_t allocs;
    uint64_t frees;
    uint64_t implicit_frees;
};

struct gm_device_totals {
    bool seen;
    struct gm_tally kind[GM_KIND_EXTERNAL + 1];
    uint64_t live; /* bytes of all kinds but external */
    struct gm_peak peak;
};

struct gm_counters {
    struct gm_device_totals device[GM_DEVICES]; /* [ordinal + 1] */
    struct gm_tally host[GM_KINDS];             /* of the host kinds */
    uint64_t failed;                            /* allocation calls refused for lack of memory */
    uint64_t rejected;                          /* refused by the driver for another reason */
    uint64_t refused_by_runtime;                /* refused before the driver was asked */
    uint64_t live;                              /* bytes of all kinds everywhere */
};

static inline struct gm_device_totals *gm_counters_device(struct gm_counters *counters, int device)
{
    struct gm_device_totals *totals = &counters->device[gm_device_slot(device)];
    totals->seen = true;
    return totals;
}

/* The counter of a kind; `device` matters for kinds on a device only. */
static inline struct gm_tally *gm_counters_kind(struct gm_counters *counters, unsigned kind,
                                                int device)
{
    if (gm_kind_is_host(kind))
        return &counters->host[kind];
    return &gm_counters_device(counters, device)->kind[kind];
}

/* Whether so many bytes more can live: what does is never more than GM_LIVE_MAX. */
static inline bool gm_counters_has_room(const struct gm_counters *counters, uint64_t size)
{
    return size <= GM_LIVE_MAX - counters->live;
}

static inline void gm_peak_raise(struct gm_peak *peak, uint64_t live, uint64_t time, uint64_t step)
{
    if (live > peak->bytes)
        *peak = (struct gm_peak){live, time, step};
}

/* Bytes come to life at `time`, which is step `step` of the ledger; or cease to. `slot`: that of their
 * device. Returns the counter of the kind: the callers count the calls. */
static inline struct gm_tally *gm_counters_add(struct gm_counters *counters, unsigned kind,
                                               uint8_t slot, uint64_t size, uint64_t time,
                                               uint64_t step)
{
    struct gm_tally *counter;
    counters->live += size;
    if (gm_kind_is_host(kind)) {
        counter = &counters->host[kind];
    } else {
        struct gm_device_totals *totals = &counters->device[slot];
        totals->seen = true;
        counter = &totals->kind[kind];
        if (kind != GM_KIND_EXTERNAL) {
            totals->live += size;
            gm_peak_raise(&totals->peak, totals->live, time, step);
        }
    }
    counter->live += size;
    gm_peak_raise(&counter->peak, counter->live, time, step);
    return counter;
}

/* Whether `size` bytes more than now make no new peak, of a kind on a device and of the device. */
static inline bool gm_counters_had_more(struct gm_counters *counters, unsigned kind, int device,
                                        uint64_t size)
{
    const struct gm_tally *counter = gm_counters_kind(counters, kind, device);
    const struct gm_device_totals *totals = gm_counters_device(counters, device);
    return counter->live + size <= counter->peak.bytes && totals->live + size <= totals->peak.bytes;
}

static inline struct gm_tally *gm_counters_subtract(struct gm_counters *counters, unsigned kind,
                                                    uint8_t slot, uint64_t size)
{
    struct gm_tally *counter;
    counters->live -= size;
    if (gm_kind_is_host(kind)) {
        counter = &counters->host[kind];
    } else {
        struct gm_device_totals *totals = &counters->device[slot];
        counter = &totals->kind[kind];
        totals->live -= kind != GM_KIND_EXTERNAL ? size : 0;
    }
    counter->live -= size;
    return counter;
}

#endif
