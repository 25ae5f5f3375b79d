/* One statement, or one item of a list, for each of several names: what a table of members would hold, with their types. */
#ifndef GPUMEM_REPORT_BASE_EACH_H
#define GPUMEM_REPORT_BASE_EACH_H

/* do(a, b, name) for each of at most 12 names; with commas between them. */
#define GM_EACH(do, a, b, ...) GM_EACH_WITH(GM_EACH_NOTHING, do, a, b, __VA_ARGS__)
#define GM_EACH_LIST(do, a, b, ...) GM_EACH_WITH(GM_EACH_COMMA, do, a, b, __VA_ARGS__)

/* Members that two structs call the same: as statements, and as a part of an initializer. */
#define GM_COPY_MEMBERS(to, from, ...)                                                             \
    do {                                                                                           \
        GM_EACH(GM_EACH_COPY, to, from, __VA_ARGS__)                                               \
    } while (0)
#define GM_SAME(from, ...) GM_EACH_LIST(GM_EACH_SAME, , from, __VA_ARGS__)

#define GM_EACH_COPY(to, from, name) (to)->name = (from)->name;
#define GM_EACH_SAME(to, from, name) .name = (from)->name
#define GM_EACH_NOTHING()
#define GM_EACH_COMMA() ,
#define GM_EACH_WITH(with, do, a, b, ...)                                                          \
    GM_EACH_OF(__VA_ARGS__, GM_EACH_12, GM_EACH_11, GM_EACH_10, GM_EACH_9, GM_EACH_8, GM_EACH_7,   \
               GM_EACH_6, GM_EACH_5, GM_EACH_4, GM_EACH_3, GM_EACH_2, GM_EACH_1, 0)                \
    (with, do, a, b, __VA_ARGS__)
#define GM_EACH_OF(n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, which, ...) which
#define GM_EACH_1(with, do, a, b, n)                                                               \
    do                                                                                             \
    (a, b, n)
#define GM_EACH_2(with, do, a, b, n, ...)                                                          \
    do                                                                                             \
    (a, b, n) with() GM_EACH_1(with, do, a, b, __VA_ARGS__)
#define GM_EACH_3(with, do, a, b, n, ...)                                                          \
    do                                                                                             \
    (a, b, n) with() GM_EACH_2(with, do, a, b, __VA_ARGS__)
#define GM_EACH_4(with, do, a, b, n, ...)                                                          \
    do                                                                                             \
    (a, b, n) with() GM_EACH_3(with, do, a, b, __VA_ARGS__)
#define GM_EACH_5(with, do, a, b, n, ...)                                                          \
    do                                                                                             \
    (a, b, n) with() GM_EACH_4(with, do, a, b, __VA_ARGS__)
#define GM_EACH_6(with, do, a, b, n, ...)                                                          \
    do                                                                                             \
    (a, b, n) with() GM_EACH_5(with, do, a, b, __VA_ARGS__)
#define GM_EACH_7(with, do, a, b, n, ...)                                                          \
    do                                                                                             \
    (a, b, n) with() GM_EACH_6(with, do, a, b, __VA_ARGS__)
#define GM_EACH_8(with, do, a, b, n, ...)                                                          \
    do                                                                                             \
    (a, b, n) with() GM_EACH_7(with, do, a, b, __VA_ARGS__)
#define GM_EACH_9(with, do, a, b, n, ...)                                                          \
    do                                                                                             \
    (a, b, n) with() GM_EACH_8(with, do, a, b, __VA_ARGS__)
#define GM_EACH_10(with, do, a, b, n, ...)                                                         \
    do                                                                                             \
    (a, b, n) with() GM_EACH_9(with, do, a, b, __VA_ARGS__)
#define GM_EACH_11(with, do, a, b, n, ...)                                                         \
    do                                                                                             \
    (a, b, n) with() GM_EACH_10(with, do, a, b, __VA_ARGS__)
#define GM_EACH_12(with, do, a, b, n, ...)                                                         \
    do                                                                                             \
    (a, b, n) with() GM_EACH_11(with, do, a, b, __VA_ARGS__)

#endif
