/* See clock.h. */
#include "base/clock.h"

struct gm_clock_scale gm_clock_scale(const struct gm_trace_header *header)
{
    const struct gm_clock_pair *start = &header->clock_start;
    const struct gm_clock_pair *latest = &header->clock_latest[header->clock_latest_index & 1];
    struct gm_clock_scale scale = {start->monotonic_ns, 1, 1};
    if (header->clock != GM_CLOCK_TICKS)
        return scale;
    scale.origin = start->ticks;
    if (latest->ticks > start->ticks && latest->monotonic_ns > start->monotonic_ns) {
        scale.ticks = latest->ticks - start->ticks;
        scale.nanoseconds = latest->monotonic_ns - start->monotonic_ns;
    }
    return scale;
}

uint64_t gm_clock_elapsed(const struct gm_clock_scale *scale, uint64_t time)
{
    if (time <= scale->origin)
        return 0;
    /* GNU: 128 bits, since a day of ticks times a day of nanoseconds does not fit 64. */
    unsigned __int128 product = (unsigned __int128)(time - scale->origin) * scale->nanoseconds;
    unsigned __int128 elapsed = product / scale->ticks;
    return elapsed > UINT64_MAX ? UINT64_MAX : (uint64_t)elapsed;
}
