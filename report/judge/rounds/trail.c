/* See trail.h. */
#include "judge/rounds/trail.h"

static void add_values(struct gm_trail *trail, size_t at, uint64_t least, uint64_t most)
{
    struct gm_trail_bucket *bucket = &trail->buckets[at];
    bool fresh = at >= trail->count;
    if (trail->count == 0)
        trail->first = at;
    if (fresh)
        trail->count = at + 1;
    if (fresh || least < bucket->least)
        bucket->least = least;
    if (fresh || most > bucket->most)
        bucket->most = most;
}

/* Two buckets become one. */
static void widen_trail(struct gm_trail *trail)
{
    size_t first = trail->first, count = trail->count;
    trail->shift++;
    trail->count = 0;
    for (size_t i = first; i < count; i++)
        add_values(trail, i / 2, trail->buckets[i].least, trail->buckets[i].most);
}

void gm_trail_add_ticks(struct gm_trail *trail, uint64_t from, uint64_t to, uint64_t value)
{
    if (trail->count == 0)
        trail->start = from;
    while (to >> trail->shift >= GM_TRAIL_BUCKETS)
        widen_trail(trail);
    for (uint64_t at = from >> trail->shift; at <= to >> trail->shift; at++)
        add_values(trail, (size_t)at, value, value);
    trail->end = (uint64_t)trail->count << trail->shift;
}

size_t gm_trail_at(const struct gm_trail *trail, uint64_t tick)
{
    uint64_t at = tick >> trail->shift;
    return at < trail->count ? (size_t)at : trail->count - 1;
}
