/* Sorted arrays.
 *
 * Functions for qsort() and bsearch() by their keys, of which the first that differs decides. In a key, `a` and `b` are
 * the two elements. */
#ifndef GPUMEM_REPORT_BASE_ORDER_H
#define GPUMEM_REPORT_BASE_ORDER_H

#include <string.h>

/* NOLINTBEGIN(bugprone-macro-parentheses): keys are statements */
#define GM_ORDER(name, type, keys)                                                                 \
    static int name(const void *left, const void *right)                                           \
    {                                                                                              \
        const type *a = left, *b = right;                                                          \
        keys return 0;                                                                             \
    }

/* Of an array of pointers to such elements. */
#define GM_ORDER_POINTERS(name, type, keys)                                                        \
    static int name(const void *left, const void *right)                                           \
    {                                                                                              \
        const type *a = *(const type *const *)left, *b = *(const type *const *)right;              \
        keys return 0;                                                                             \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

#define GM_UP(member) GM_UP_OF(a->member, b->member)
#define GM_DOWN(member) GM_UP_OF(b->member, a->member)
#define GM_UP_OF(one, other)                                                                       \
    if ((one) != (other))                                                                          \
        return (one) < (other) ? -1 : 1;
#define GM_BY_TEXT(member)                                                                         \
    if (strcmp(a->member, b->member) != 0)                                                         \
        return strcmp(a->member, b->member);

/* How many of `count` elements come before a place in their order: `is_before` says of the one at `at` whether it does.
 * `at` is the caller's, and the answer. */
#define GM_BISECT(at, count, is_before)                                                            \
    do {                                                                                           \
        size_t gm_low = 0, gm_high = (count);                                                      \
        while (gm_low < gm_high) {                                                                 \
            (at) = gm_low + (gm_high - gm_low) / 2;                                                \
            if (is_before)                                                                         \
                gm_low = (at) + 1;                                                                 \
            else                                                                                   \
                gm_high = (at);                                                                    \
        }                                                                                          \
        (at) = gm_low;                                                                             \
    } while (0)

#endif
