/*
 * What must hold whatever the program does: if it does not, the recorder is wrong.
 *
 * Only checked builds ask (GPUMEM_CHECKED: the recorder's tests, the debug build, sanitizers): they abort the process
 * where it does not hold. In what users get nothing is left of it.
 */
#ifndef GPUMEM_PRELOAD_BASE_ASSERT_H
#define GPUMEM_PRELOAD_BASE_ASSERT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef GPUMEM_CHECKED

_Noreturn void gm_recorder_assert_failed(const char *condition, const char *file, int line);

#define GM_ASSERT(condition)                                                                       \
    ((condition) ? (void)0 : gm_recorder_assert_failed(#condition, __FILE__, __LINE__))

/* For conditions that look at a whole structure, where one thread is at a time: asked the first time, the second, the
 * fourth ..., and each 256th. */
#define GM_ASSERT_SOMETIMES(condition)                                                             \
    do {                                                                                           \
        static uint64_t gm_times;                                                                  \
        gm_times++;                                                                                \
        if ((gm_times & (gm_times - 1)) == 0 || gm_times % 256 == 0)                               \
            GM_ASSERT(condition);                                                                  \
    } while (0)

#else
#define GM_ASSERT(condition) ((void)0)
#define GM_ASSERT_SOMETIMES(condition) ((void)0)
#endif

#endif
