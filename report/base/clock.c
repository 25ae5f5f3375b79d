/* See clock.h. */
#include "base/clock.h"
#include <time.h>

struct gm_clock_scale gm_clock_scale(const struct gm_trace_header *header)
{
    return gm_clock_scale_until(header, &header->clock_latest[header->clock_latest_index & 1]);
}

struct gm_clock_scale gm_clock_scale_until(const struct gm_trace_header *header,
                                           const struct gm_clock_pair *latest)
{
    const struct gm_clock_pair *start = &header->clock_start;
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

uint64_t gm_clock_reaches(const struct gm_clock_scale *scale, uint64_t elapsed)
{
    unsigned __int128 product = (unsigned __int128)elapsed * scale->ticks;
    unsigned __int128 since = product / scale->nanoseconds + (product % scale->nanoseconds != 0);
    uint64_t most = UINT64_MAX - scale->origin;
    return scale->origin + (since > most ? most : (uint64_t)since);
}

/* ---- this machine ---------------------------------------------------------------------------- */

static uint64_t ticks_now(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc(); /* GNU: as the recorder does */
#else
    return 0; /* nor does the recorder read one there */
#endif
}

struct gm_clock_pair gm_clock_now(void)
{
    struct timespec now;
    struct gm_clock_pair pair = {.ticks = ticks_now()};
    clock_gettime(CLOCK_MONOTONIC, &now);
    pair.monotonic_ns = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
    return pair;
}

uint64_t gm_clock_record_time(const struct gm_trace_header *header,
                              const struct gm_clock_pair *moment)
{
    return header->clock == GM_CLOCK_TICKS ? moment->ticks : moment->monotonic_ns;
}
