/* Two values over the time of a run, or over its events, in a fixed number of buckets: of each, the
 * most there was in that time. Buckets are as wide as they must be for all to fit; when the run
 * outgrows them, two become one. O(1) amortized per change. */
#ifndef GPUMEM_REPORT_BASE_CURVE_H
#define GPUMEM_REPORT_BASE_CURVE_H

#include "base/clock.h"
#include <stddef.h>
#include <stdint.h>

#define GM_CURVE_BUCKETS 128 /* between half of them and all are in use */
#define GM_CURVE_VALUES 2

struct gm_curve_bucket {
    uint64_t most[GM_CURVE_VALUES];
};

/* All zero: no value yet. */
struct gm_curve {
    uint64_t start; /* record clock: of the first value */
    uint64_t until; /* times below are in the latest bucket */
    unsigned shift; /* a bucket is 1 << shift long */
    size_t count;   /* buckets in use */
    struct gm_curve_bucket now;
    struct gm_curve_bucket buckets[GM_CURVE_BUCKETS];
};

static inline void gm_curve_raise(uint64_t *most, uint64_t value)
{
    if (value > *most)
        *most = value;
}

/* From `time` on these are the values. A time before the latest counts as the latest. */
void gm_curve_step(struct gm_curve *curve, uint64_t time, uint64_t first, uint64_t second);
static inline void gm_curve_set(struct gm_curve *curve, uint64_t time, uint64_t first,
                                uint64_t second)
{
    if (time >= curve->until) {
        gm_curve_step(curve, time, first, second);
        return;
    }
    struct gm_curve_bucket *bucket = &curve->buckets[curve->count - 1];
    curve->now = (struct gm_curve_bucket){{first, second}};
    gm_curve_raise(&bucket->most[0], first);
    gm_curve_raise(&bucket->most[1], second);
}

/* A curve over the nanoseconds of a run whose changes come by the record clock. All zero: no value yet. */
struct gm_clocked_curve {
    struct gm_curve curve;
    uint64_t until; /* record clock: times below are in the latest bucket */
};

/* As gm_curve_set, of the first value. A time before the latest is never passed. */
void gm_clocked_curve_step(struct gm_clocked_curve *clocked, const struct gm_clock_scale *clock,
                           uint64_t time, uint64_t value);
static inline void gm_clocked_curve_set(struct gm_clocked_curve *clocked,
                                        const struct gm_clock_scale *clock, uint64_t time,
                                        uint64_t value)
{
    struct gm_curve *curve = &clocked->curve;
    if (time >= clocked->until) {
        gm_clocked_curve_step(clocked, clock, time, value);
        return;
    }
    curve->now.most[0] = value;
    gm_curve_raise(&curve->buckets[curve->count - 1].most[0], value);
}

/* The values stay what they are until `end`, and not beyond: what came later is left out. */
void gm_curve_finish(struct gm_curve *curve, uint64_t end);

/* The most in parts [from, to) of `parts` equal parts of the curve, at least of one bucket. */
uint64_t gm_curve_most(const struct gm_curve *curve, unsigned value, unsigned from, unsigned to,
                       unsigned parts);

#endif
