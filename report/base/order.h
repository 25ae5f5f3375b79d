/* Functions for qsort() and bsearch() by their keys, of which the first that differs decides. In a key, `a` and `b` are
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

#endif
