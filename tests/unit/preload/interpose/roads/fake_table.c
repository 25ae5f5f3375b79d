/*
 * A small table with wrappers that add 1000 to the result of the real function: a test sees whether
 * a call passed through our library, and how often.
 */
#include <stddef.h>
#include <string.h>

#include "base/api.h"
#include "base/process_state.h"
#include "interpose/dlsym.h"
#include "interpose/newer_abi.h"
#include "interpose/real.h"

typedef int plain_function(void);

static int forward(uint16_t api, const void *caller)
{
    plain_function *real = (plain_function *)gm_real(api, caller);
    return real != NULL ? real() + 1000 : -1;
}

GM_EXPORT int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags);
GM_EXPORT int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                                  int *symbol_status);

#define WRAPPERS(row)                                                                              \
    row(1, cuMemAlloc, "cuMemAlloc", 2000, DRIVER, 0)                                              \
        row(2, cuMemAlloc_v2, "cuMemAlloc", 3020, DRIVER, 0)                                       \
            row(3, cuMemFree, "cuMemFree", 2000, DRIVER, 0)                                        \
                row(4, cuMemFree_v2, "cuMemFree", 3020, DRIVER, 0)                                 \
                    row(5, cuMemAllocAsync, "cuMemAllocAsync", 11020, DRIVER, 0)                   \
                        row(6, cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, DRIVER, 1)          \
                            row(7, cuCtxCreate, "cuCtxCreate", 2000, DRIVER, 0)                    \
                                row(8, cuCtxCreate_v2, "cuCtxCreate", 3020, DRIVER, 0)             \
                                    row(9, cuCtxCreate_v3, "cuCtxCreate", 11040, DRIVER, 0)        \
                                        row(10, cuCtxCreate_v4, "cuCtxCreate", 12050, DRIVER, 0)   \
                                            row(11, cuMissing, "cuMissing", 2000, DRIVER, 0)       \
                                                row(12, cudaMalloc, NULL, 0, RUNTIME, 0)           \
                                                    row(13, cudaFree, NULL, 0, RUNTIME, 0)

#define MORE_WRAPPERS(row)                                                                         \
    row(16, cuLax, "cuLax", 11000, DRIVER, 0) row(17, cuLax_v2, "cuLax", 12000, DRIVER, 0)         \
        row(18, cuLaxAlone, "cuLaxAlone", 11000, DRIVER, 0)

#define DEFINE(id, symbol_, name_, since_, layer_, thread_)                                        \
    GM_EXPORT int symbol_(void);                                                                   \
    int symbol_(void)                                                                              \
    {                                                                                              \
        return forward(id, __builtin_return_address(0));                                           \
    }
WRAPPERS(DEFINE)
MORE_WRAPPERS(DEFINE)

#define ROW(id, symbol_, name_, since_, layer_, thread_)                                           \
    [id] = {.symbol = #symbol_,                                                                    \
            .name = name_,                                                                         \
            .wrapper = (void (*)(void))symbol_,                                                    \
            .since = since_,                                                                       \
            .layer = GM_LAYER_##layer_,                                                            \
            .per_thread = thread_},

const struct gm_api_entry gm_api[] = {
    WRAPPERS(ROW) ROW(14, cuGetProcAddress, "cuGetProcAddress", 11030, DRIVER, 0)
        ROW(15, cuGetProcAddress_v2, "cuGetProcAddress", 12000, DRIVER, 0) MORE_WRAPPERS(ROW)};
const uint16_t gm_api_count = sizeof gm_api / sizeof gm_api[0];

uint16_t gm_api_find(const char *symbol)
{
    for (uint16_t api = 1; api < gm_api_count; api++)
        if (strcmp(gm_api[api].symbol, symbol) == 0)
            return api;
    return 0;
}

/* The table is sorted by name, then by version; the per-thread form has the last number. */
struct gm_api_rows gm_api_rows(const char *name, size_t length)
{
    static const uint16_t ids[] = {0,  1,  2,  3,  4,  5,  6,  7,  8, 9,
                                   10, 11, 12, 13, 14, 15, 16, 17, 18};
    struct gm_api_rows rows = {ids, 0};
    for (uint16_t api = 1; api < gm_api_count; api++)
        if (gm_api[api].name != NULL && strlen(gm_api[api].name) == length &&
            strncmp(gm_api[api].name, name, length) == 0 && rows.count++ == 0)
            rows.row = &ids[api];
    return rows;
}

uint16_t gm_api_find_version(const char *name, uint32_t version, int per_thread)
{
    uint16_t best = 0;
    for (uint16_t api = 1; api < gm_api_count; api++)
        if (gm_api[api].name != NULL && strcmp(gm_api[api].name, name) == 0 &&
            gm_api[api].since <= version && gm_api[api].per_thread <= per_thread)
            best = api;
    return best;
}

/* The notes about newer ABIs, for the probe to read. */
GM_EXPORT int cudaNotedNewerAbi(void);

int cudaNotedNewerAbi(void)
{
    static struct gm_trace_header header;
    gm_process_page->header = &header;
    gm_newer_abi_write();
    return (int)header.counters[GM_COUNT_NEWER_ABI];
}

/* No plugin of XLA's is looked up here. */
void *gm_pjrt_offer(void *found)
{
    return found;
}
