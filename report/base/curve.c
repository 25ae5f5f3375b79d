/* See curve.h. */
#include "base/curve.h"
#include <stdbool.h>

static void raise_to(struct gm_curve_bucket *bucket, const struct gm_curve_bucket *other)
{
    for (unsigned value = 0; value < GM_CURVE_VALUES; value++)
        gm_curve_raise(&bucket->most[value], other->most[value]);
}

/* Two buckets become one, twice as wide. */
static void widen_curve(struct gm_curve *curve)
{
    size_t kept = 0;
    for (size_t i = 0; i < curve->count; i += 2) {
        struct gm_curve_bucket bucket = curve->buckets[i];
        if (i + 1 < curve->count)
            raise_to(&bucket, &curve->buckets[i + 1]);
        curve->buckets[kept++] = bucket;
    }
    curve->count = kept;
    curve->shift++;
}

/* Makes the bucket of a time the last one; those in between hold what is. */
static void advance(struct gm_curve *curve, uint64_t time)
{
    uint64_t elapsed = time > curve->start ? time - curve->start : 0;
    while (elapsed >> curve->shift >= GM_CURVE_BUCKETS)
        widen_curve(curve);
    while (curve->count <= elapsed >> curve->shift)
        curve->buckets[curve->count++] = curve->now;
}

/* Where the latest bucket ends; the highest time if that is beyond all times. */
static uint64_t curve_end(const struct gm_curve *curve)
{
    uint64_t length = (uint64_t)curve->count << curve->shift;
    bool is_long = length >> curve->shift != curve->count || length > UINT64_MAX - curve->start;
    return is_long ? UINT64_MAX : curve->start + length;
}

void gm_curve_step(struct gm_curve *curve, uint64_t time, uint64_t first, uint64_t second)
{
    if (curve->count == 0)
        curve->start = time;
    advance(curve, time);
    curve->until = curve_end(curve);
    curve->now = (struct gm_curve_bucket){{first, second}};
    raise_to(&curve->buckets[curve->count - 1], &curve->now);
}

void gm_clocked_curve_step(struct gm_clocked_curve *clocked, const struct gm_clock_scale *clock,
                           uint64_t time, uint64_t value)
{
    struct gm_curve *curve = &clocked->curve;
    gm_curve_set(curve, gm_clock_elapsed(clock, time), value, 0);
    clocked->until = curve->until == UINT64_MAX ? time : gm_clock_reaches(clock, curve->until);
}

void gm_curve_finish(struct gm_curve *curve, uint64_t end)
{
    if (curve->count == 0)
        return;
    advance(curve, end);
    uint64_t last = end > curve->start ? (end - curve->start) >> curve->shift : 0;
    curve->count = (size_t)last + 1;
    curve->until = curve_end(curve);
}

uint64_t gm_curve_most(const struct gm_curve *curve, unsigned value, unsigned from, unsigned to,
                       unsigned parts)
{
    uint64_t most = 0;
    size_t first = curve->count * from / parts, end = curve->count * to / parts;
    end = end > first ? end : first + 1; /* parts can be shorter than a bucket */
    for (size_t i = first; i < end && i < curve->count; i++)
        if (curve->buckets[i].most[value] > most)
            most = curve->buckets[i].most[value];
    return most;
}
