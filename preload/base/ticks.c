/* See ticks.h. */
#include "base/ticks.h"

bool gm_clock_is_tsc;

static _Atomic uint64_t tick_rate; /* ns per tick, 32.32 fixed point */

void gm_clock_set_rate(uint64_t ticks, uint64_t ns)
{
    if (ticks)
        tick_rate = (uint64_t)(((unsigned __int128)ns << 32) / ticks);
}

uint64_t gm_clock_ticks_to_ns(uint64_t ticks)
{
    unsigned __int128 product = (unsigned __int128)ticks * tick_rate;
    return (uint64_t)(product >> 32);
}
