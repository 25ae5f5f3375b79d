/*
 * The clocks of the recorder, and the clock of its records: the processor's counter where the kernel
 * trusts it to agree between CPUs, else CLOCK_MONOTONIC.
 */
#ifndef GPUMEM_PRELOAD_BASE_TICKS_H
#define GPUMEM_PRELOAD_BASE_TICKS_H

#include "base/platform.h"
#include <time.h>

static inline uint64_t gm_clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Whether records are stamped with the counter. Set before the first record of a trace. */
extern bool gm_clock_is_tsc;

/*
 * Record clock. Events of one address on two threads are ordered by it, so a time taken after a
 * call must not be read early: the fence keeps the counter behind the call's own loads. A time
 * taken before a call needs none, since nothing the call does is visible before the read has
 * retired.
 */
static inline uint64_t gm_ticks_before(void)
{
#if defined(__x86_64__)
    if (gm_likely(gm_clock_is_tsc))
        return __builtin_ia32_rdtsc();
#endif
    return gm_clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t gm_ticks_after(void)
{
#if defined(__x86_64__)
    __builtin_ia32_lfence();
#endif
    return gm_ticks_before();
}

/* The rate of the record clock, from two readings of it that are so far apart. `ticks` 0 tells
 * nothing and changes nothing. */
void gm_clock_set_rate(uint64_t ticks, uint64_t ns);

/* A duration on the record clock in ns, by the rate known so far; 0 before the first. */
uint64_t gm_clock_ticks_to_ns(uint64_t ticks);

#endif
