/* The course of a value over a clock that counts events, in a fixed number of buckets: of each, the
 * least and the most there was in it. Buckets are as wide as they must be for all to fit; when the
 * clock outgrows them, two become one. O(1) amortized per change. */
#ifndef GPUMEM_REPORT_ROUNDS_TRAIL_H
#define GPUMEM_REPORT_ROUNDS_TRAIL_H

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
    struct gm_trail_bucket buckets[GM_TRAIL_BUCKETS];
};

/* The value at all ticks from `from` to `to`. Ticks come in order. */
void gm_trail_add(struct gm_trail *trail, uint64_t from, uint64_t to, uint64_t value);

/* The bucket of a tick; the last one if it comes later. The trail is not empty. */
size_t gm_trail_at(const struct gm_trail *trail, uint64_t tick);

#endif
