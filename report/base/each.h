/* One statement for each of several names: what a table of members would hold, but with their types. */
#ifndef GPUMEM_REPORT_BASE_EACH_H
#define GPUMEM_REPORT_BASE_EACH_H

/* do(a, b, name) for each of at most 12 names. */
#define GM_EACH(do, a, b, ...)                                                                     \
    GM_EACH_OF(__VA_ARGS__, GM_EACH_12, GM_EACH_11, GM_EACH_10, GM_EACH_9, GM_EACH_8, GM_EACH_7,   \
               GM_EACH_6, GM_EACH_5, GM_EACH_4, GM_EACH_3, GM_EACH_2, GM_EACH_1, 0)                \
    (do, a, b, __VA_ARGS__)
#define GM_EACH_OF(n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, which, ...) which
#define GM_EACH_1(do, a, b, n)                                                                     \
    do                                                                                             \
    (a, b, n)
#define GM_EACH_2(do, a, b, n, ...)                                                                \
    do                                                                                             \
    (a, b, n) GM_EACH_1(do, a, b, __VA_ARGS__)
#define GM_EACH_3(do, a, b, n, ...)                                                                \
    do                                                                                             \
    (a, b, n) GM_EACH_2(do, a, b, __VA_ARGS__)
#define GM_EACH_4(do, a, b, n, ...)                                                                \
    do                                                                                             \
    (a, b, n) GM_EACH_3(do, a, b, __VA_ARGS__)
#define GM_EACH_5(do, a, b, n, ...)                                                                \
    do                                                                                             \
    (a, b, n) GM_EACH_4(do, a, b, __VA_ARGS__)
#define GM_EACH_6(do, a, b, n, ...)                                                                \
    do                                                                                             \
    (a, b, n) GM_EACH_5(do, a, b, __VA_ARGS__)
#define GM_EACH_7(do, a, b, n, ...)                                                                \
    do                                                                                             \
    (a, b, n) GM_EACH_6(do, a, b, __VA_ARGS__)
#define GM_EACH_8(do, a, b, n, ...)                                                                \
    do                                                                                             \
    (a, b, n) GM_EACH_7(do, a, b, __VA_ARGS__)
#define GM_EACH_9(do, a, b, n, ...)                                                                \
    do                                                                                             \
    (a, b, n) GM_EACH_8(do, a, b, __VA_ARGS__)
#define GM_EACH_10(do, a, b, n, ...)                                                               \
    do                                                                                             \
    (a, b, n) GM_EACH_9(do, a, b, __VA_ARGS__)
#define GM_EACH_11(do, a, b, n, ...)                                                               \
    do                                                                                             \
    (a, b, n) GM_EACH_10(do, a, b, __VA_ARGS__)
#define GM_EACH_12(do, a, b, n, ...)                                                               \
    do                                                                                             \
    (a, b, n) GM_EACH_11(do, a, b, __VA_ARGS__)

#endif
