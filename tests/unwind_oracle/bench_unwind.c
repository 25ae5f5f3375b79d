/*
 * The cost of one stack: the unwinder next to libunwind's unw_backtrace, in the same process, over
 * stacks that are all the same, that differ in their three innermost frames, or in all.
 *
 *     bench_unwind [REPEATS]
 *
 * Prints ns per stack, the smallest of seven runs, less the cost of the calls that make the stacks,
 * measured alone.
 */
#define UNW_LOCAL_ONLY
#include "stack/native/unwind.h"
#include <inttypes.h>
#include <libunwind.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define APART __attribute__((noinline))
#define KEEP(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")
#define RUNS 7

enum variation { SAME, INNER, ALL };

static const char *const names[] = {"identical", "three innermost vary", "all vary"};

static struct gm_unwind_thread thread;
static uint64_t random_state = 1;
static unsigned vary_below; /* frames at this many levels or less from the end vary */
static void (*capture)(const void *frame);

static void capture_nothing(const void *frame)
{
    KEEP(frame);
}

static void capture_ours(const void *frame)
{
    struct gm_walk walk;
    gm_unwind_walk(&thread, gm_registers_of_caller(frame), GM_UNWIND_DEPTH_MAX, &walk);
    gm_unwind_interned(&thread, walk.count);
    KEEP(&walk);
}

static void capture_plain(const void *frame)
{
    thread.cached = 0;
    capture_ours(frame);
}

static void capture_libunwind(const void *frame)
{
    void *frames[GM_UNWIND_DEPTH_MAX];
    unw_backtrace(frames, GM_UNWIND_DEPTH_MAX);
    KEEP(frames);
    KEEP(frame);
}

static APART void capture_end(void)
{
    capture(__builtin_frame_address(0));
    KEEP(&capture);
}

static void (*const frames[4])(unsigned);

/* Goes on with one of four functions. */
static inline __attribute__((always_inline)) void descend(unsigned levels)
{
    unsigned which = 0;
    if (levels == 0) {
        capture_end();
        return;
    }
    if (levels <= vary_below) {
        random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
        which = (unsigned)(random_state >> 62);
    }
    frames[which](levels - 1);
}

/* They differ in the frame's size and in the return address. */
#define FRAME(name, size)                                                                          \
    static APART void name(unsigned levels)                                                        \
    {                                                                                              \
        char memory[size];                                                                         \
        KEEP(memory);                                                                              \
        descend(levels);                                                                           \
        KEEP(memory);                                                                              \
    }

FRAME(frame_0, 24)
FRAME(frame_1, 72)
FRAME(frame_2, 120)
FRAME(frame_3, 200)

static void (*const frames[4])(unsigned) = {frame_0, frame_1, frame_2, frame_3};

static double nanoseconds(unsigned levels, unsigned repeats)
{
    double least = 1e300;
    for (int run = 0; run < RUNS; run++) {
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (unsigned i = 0; i < repeats; i++)
            descend(levels);
        clock_gettime(CLOCK_MONOTONIC, &to);
        double spent =
            1e9 * (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec);
        if (spent < least)
            least = spent;
    }
    return least / repeats;
}

int main(int argc, char **argv)
{
    static const unsigned depths[] = {5, 20, 60};
    static const struct {
        const char *name;
        void (*capture)(const void *frame);
    } methods[] = {{"gm_unwind_walk", capture_ours},
                   {"  without reuse", capture_plain},
                   {"unw_backtrace", capture_libunwind}};
    unsigned repeats = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 100000;
    if (repeats == 0)
        return 2;
    gm_unwind_open_fallback();
    printf("%-16s %-22s %8s %8s %8s\n", "ns per stack", "frames:", "5", "20", "60");
    for (enum variation variation = SAME; variation <= ALL; variation++) {
        for (size_t method = 0; method < sizeof methods / sizeof methods[0]; method++) {
            printf("%-16s %-22s", methods[method].name, names[variation]);
            for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
                /* the caller's, main, two of the C library and _start are outside */
                unsigned levels = depths[i] - 5;
                vary_below = variation == SAME ? 0 : variation == INNER ? 3 : levels;
                capture = capture_nothing;
                double alone = nanoseconds(levels, repeats);
                capture = methods[method].capture;
                printf(" %8.0f", nanoseconds(levels, repeats) - alone);
            }
            putchar('\n');
        }
    }
    return 0;
}
