/* The course of a value over a clock that counts events, in a fixed number of buckets: of each, the
 * least and the most there was in it. Buckets are as wide as they must be for all to fit; when the
 * clock outgrows them, two become one. O(1) amortized per change. */
#ifndef GPUMEM_REPORT_ROUNDS_TRAIL_H
#define GPUMEM_REPORT_ROUNDS_TRAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GM_TRAIL_BUCKETS 128 /* between half of them and all are in use */

struct gm_trail_bucket {
    uint64_t least;
    uint64_t most;
};

/* All zero: no value yet. */
struct gm_trail {
    uint64_t start; /* the clock's first tick with a value */
    unsigned shift; /* a bucket is 1 << shift ticks long; buckets begin at multiples of that */
    size_t first;   /* bucket of `start`: those before it are empty */
    size_t count;   /* one past the last bucket in use; 0: none */
    uint64_t end;   /* the first tick behind that bucket */
    struct gm_trail_bucket buckets[GM_TRAIL_BUCKETS];
};

/* Any ticks. */
void gm_trail_add_ticks(struct gm_trail *trail, uint64_t from, uint64_t to, uint64_t value);

/* Adds two values to the last bucket, if tick `to` is in it: so is all between it and what was added
 * last. */
static inline bool gm_trail_add_to_last(struct gm_trail *trail, uint64_t to, uint64_t one,
                                        uint64_t other)
{
    if (to >= trail->end)
        return false;
    struct gm_trail_bucket *bucket = &trail->buckets[trail->count - 1];
    uint64_t least = one < other ? one : other, most = one < other ? other : one;
    if (least < bucket->least)
        bucket->least = least;
    if (most > bucket->most)
        bucket->most = most;
    return true;
}

/* The value at all ticks from `from` to `to`, if there are any. Ticks come in order. */
static inline void gm_trail_add(struct gm_trail *trail, uint64_t from, uint64_t to, uint64_t value)
{
    if (from <= to && !gm_trail_add_to_last(trail, to, value, value))
        gm_trail_add_ticks(trail, from, to, value);
}

/* The bucket of a tick; the last one if it comes later. The trail is not empty. */
size_t gm_trail_at(const struct gm_trail *trail, uint64_t tick);

#endif
