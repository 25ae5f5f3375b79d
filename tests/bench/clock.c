/*
 * Cost of the record clock in ns, before a call and after one. Prints the smallest of many rounds.
 */
#include "preload/base/ticks.h"
#include <stdio.h>

bool gm_clock_is_tsc = true;

enum { READS = 100000, ROUNDS = 50 };

static double least(uint64_t (*read)(void))
{
    uint64_t best = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t began = gm_clock_ns(CLOCK_MONOTONIC);
        for (int i = 0; i < READS; i++)
            read();
        uint64_t took = gm_clock_ns(CLOCK_MONOTONIC) - began;
        best = took < best ? took : best;
    }
    return (double)best / READS;
}

static uint64_t before(void)
{
    return gm_ticks_before();
}

static uint64_t after(void)
{
    return gm_ticks_after();
}

int main(void)
{
    printf("%.1f %.1f\n", least(before), least(after));
    return 0;
}
