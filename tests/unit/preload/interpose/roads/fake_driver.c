/*
 * A driver of a few functions, each with its own number so that a test sees where a call ended.
 * Built several times; each build adds its BASE to every number.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef BASE
#define BASE 0
#endif
#define EXPORT __attribute__((visibility("default")))
#define FUNCTION(name, number)                                                                     \
    EXPORT int name(void);                                                                         \
    int name(void)                                                                                 \
    {                                                                                              \
        return BASE + (number);                                                                    \
    }

FUNCTION(cuInit, 200)
FUNCTION(cuMemAlloc, 301)
FUNCTION(cuMemAlloc_v2, 302)
FUNCTION(cuMemFree, 311)
FUNCTION(cuMemFree_v2, 312)
FUNCTION(cuMemAlloc_v3, 303) /* of a CUDA that the table does not know */
FUNCTION(cuMemAllocAsync, 320)
FUNCTION(cuMemAllocAsync_ptsz, 321)
FUNCTION(cuMemAllocAsync_v2_ptsz, 323)
FUNCTION(cuCtxCreate, 331)
FUNCTION(cuCtxCreate_v2, 332)
FUNCTION(cuCtxCreate_v3, 333) /* an older driver: the table knows a _v4 */
FUNCTION(cudnnCreate, 777)    /* looks like CUDA, but is not in our table */

/* Not exported: a second entry of cuMemFree_v2; cuCtxCreate as of 12.0, for which the table has no
 * new ABI; a cuMemAlloc of the future. */
static int hidden_free(void)
{
    return BASE + 399;
}

static int hidden_create(void)
{
    return BASE + 398;
}

static int hidden_alloc(void)
{
    return BASE + 397;
}

/* The driver answers these from the first version on, although the table has the version of
 * each. */
static int lax(void)
{
    return BASE + 601;
}

static int lax_2(void)
{
    return BASE + 602;
}

static int lax_of_the_future(void)
{
    return BASE + 603;
}

static int lax_alone(void)
{
    return BASE + 611;
}

EXPORT int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags);
EXPORT int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                               int *symbol_status);

struct answer {
    const char *name;
    int since;
    uint64_t flags;
    void *function;
};

static void *find_function(const char *symbol, int version, uint64_t flags)
{
    const struct answer answers[] = {
        {"cuInit", 2000, 0, (void *)cuInit},
        {"cuMemAlloc", 2000, 0, (void *)cuMemAlloc},
        {"cuMemAlloc", 3020, 0, (void *)cuMemAlloc_v2},
        {"cuMemAlloc", 14000, 0, (void *)cuMemAlloc_v3},
        {"cuMemAlloc", 15000, 0, (void *)hidden_alloc},
        {"cuMemAlloc", 90000, 0, (void *)cuMemAlloc}, /* only the address shows which */
        {"cuMemFree", 2000, 0, (void *)cuMemFree},
        {"cuMemFree", 3020, 0, (void *)hidden_free},
        {"cuMemAllocAsync", 11020, 0, (void *)cuMemAllocAsync},
        {"cuMemAllocAsync", 11020, 2, (void *)cuMemAllocAsync_ptsz},
        {"cuMemAllocAsync", 14000, 2, (void *)cuMemAllocAsync_v2_ptsz},
        {"cuCtxCreate", 2000, 0, (void *)cuCtxCreate},
        {"cuCtxCreate", 3020, 0, (void *)cuCtxCreate_v2},
        {"cuCtxCreate", 11040, 0, (void *)cuCtxCreate_v3},
        {"cuCtxCreate", 12000, 0, (void *)hidden_create},
        {"cuGetProcAddress", 11030, 0, (void *)cuGetProcAddress},
        {"cuGetProcAddress", 12000, 0, (void *)cuGetProcAddress_v2},
        {"cudnnCreate", 1, 0, (void *)cudnnCreate},
        {"cuLax", 1, 0, (void *)lax},
        {"cuLax", 12000, 0, (void *)lax_2},
        {"cuLax", 14000, 0, (void *)lax_of_the_future},
        {"cuLaxAlone", 1, 0, (void *)lax_alone},
        {"cuLaxAlone", 14000, 0, (void *)lax_of_the_future},
    };
    void *best = NULL;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        if (strcmp(symbol, answers[i].name) == 0 && answers[i].since <= version &&
            (answers[i].flags == 0 || answers[i].flags == flags))
            best = answers[i].function;
    return best;
}

int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                        int *symbol_status)
{
    if (symbol == NULL || function == NULL)
        return 1;
    *function = find_function(symbol, version, flags);
    if (symbol_status != NULL)
        *symbol_status = *function != NULL ? 0 : 1;
    return *function != NULL ? 0 : 500;
}

int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
