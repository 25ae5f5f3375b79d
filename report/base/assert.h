/* What must hold whatever a trace says: if it does not, the code is wrong.
 *
 * Only checked builds ask (GPUMEM_CHECKED: what the tests link, sanitizers, fuzzing): they abort where it does not hold.
 * In what users get nothing is left of it. */
#ifndef GPUMEM_REPORT_BASE_ASSERT_H
#define GPUMEM_REPORT_BASE_ASSERT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef GPUMEM_CHECKED

_Noreturn void gm_assert_failed(const char *condition, const char *file, int line);

#define GM_ASSERT(condition)                                                                       \
    ((condition) ? (void)0 : gm_assert_failed(#condition, __FILE__, __LINE__))

/* For conditions that look at a whole structure: asked the first time, the second, the fourth ..., and each 1,024th. */
#define GM_ASSERT_SOMETIMES(condition)                                                             \
    do {                                                                                           \
        static uint64_t gm_times;                                                                  \
        gm_times++;                                                                                \
        if ((gm_times & (gm_times - 1)) == 0 || gm_times % 1024 == 0)                              \
            GM_ASSERT(condition);                                                                  \
    } while (0)

#else
#define GM_ASSERT(condition) ((void)0)
#define GM_ASSERT_SOMETIMES(condition) ((void)0)
#endif

#endif
