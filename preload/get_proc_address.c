/*
 * The cuGetProcAddress hooks, of the 11.3 ABI (four arguments) and of the 12.0 ABI (five).
 *
 * The driver answers first and its answer stands, in every output; only a function pointer is
 * replaced, by our function of the very ABI that was returned. Which ABI that is tells the address,
 * compared with what the driver exports. Where the driver answers with an address that it does not
 * export, the version asked for tells, among the ABIs that this driver exports. Never the newest.
 *
 * Asking for pointers is not calling CUDA: nothing is recorded here and no trace begins.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "api.h"
#include "platform.h"
#include "real.h"
#include "roads.h"

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_NOT_FOUND = 500,
    /* CUdriverProcAddress_flags */
    FLAG_LEGACY_STREAM = 1,
    FLAG_PER_THREAD_STREAM = 2,
};

typedef int get_proc_address_v1(const char *symbol, void **function, int version, uint64_t flags);
typedef int get_proc_address_v2(const char *symbol, void **function, int version, uint64_t flags,
                                int *symbol_status);

/* What the driver exports for each row of the table; filled once, by whoever comes first. */
static _Atomic(void *) exported[GM_API_MAX];
static _Atomic bool exports_known;

/* The driver: the library of that name, or else the object that the address is of. */
static bool find_driver(const void *address, struct gm_object *driver)
{
    void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL)
        return gm_object_of(address, driver);
    struct link_map *map = NULL;
    bool found = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0;
    driver->map = map;
    gm_next_dlclose(handle); /* it stays loaded: this is a call into it */
    return found;
}

static void learn_exports(const void *address)
{
    struct gm_object driver;
    if (atomic_load_explicit(&exports_known, memory_order_acquire) ||
        !find_driver(address, &driver))
        return;
    for (uint16_t api = 1; api < gm_api_count && api < GM_API_MAX; api++)
        if (gm_api[api].layer == GM_LAYER_DRIVER)
            atomic_store_explicit(&exported[api], gm_object_function(&driver, gm_api[api].symbol),
                                  memory_order_relaxed);
    atomic_store_explicit(&exports_known, true, memory_order_release);
}

static void *exported_address(uint16_t api)
{
    return api < GM_API_MAX ? atomic_load_explicit(&exported[api], memory_order_relaxed) : NULL;
}

/* The row that name, version and flags mean in this driver: one that it exports. */
static uint16_t find_by_version(const char *name, int version, bool per_thread)
{
    uint32_t limit = version > 0 ? (uint32_t)version : 0;
    while (limit > 0) {
        uint16_t api = gm_api_find_version(name, limit, per_thread);
        if (api == 0 || exported_address(api) != NULL)
            return api;
        limit = gm_api[api].since - 1; /* younger than this driver */
    }
    return 0;
}

static uint16_t find_by_address(const void *function)
{
    for (uint16_t api = 1; api < gm_api_count && api < GM_API_MAX; api++)
        if (exported_address(api) == function)
            return api;
    return 0;
}

/* Our function for the one that the driver returned; that one itself where there is none. */
static void *replace(const char *name, void *function, int version, uint64_t flags,
                     const void *asker)
{
    if (name == NULL || name[0] == '\0' || flags > FLAG_PER_THREAD_STREAM)
        return function;
    learn_exports(function);
    /* Several rows can share an address; the one that was asked for is the best label. */
    uint16_t asked = find_by_version(name, version, flags == FLAG_PER_THREAD_STREAM);
    uint16_t api = asked;
    if (asked == 0 || exported_address(asked) != function) {
        api = find_by_address(function);
        if (api == 0)
            api = asked;
    }
    if (api == 0 || function == (void *)gm_api[api].wrapper ||
        !gm_road_is_ours(api, function, asker))
        return function;
    gm_real_set(api, function);
    return (void *)gm_api[api].wrapper;
}

GM_EXPORT int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags);
GM_EXPORT int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                                  int *symbol_status);

int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
    const void *asker = __builtin_return_address(0);
    get_proc_address_v1 *real = (get_proc_address_v1 *)gm_real(gm_api_find(__func__), asker);
    if (real == NULL)
        return CUDA_ERROR_NOT_FOUND;
    int result = real(symbol, function, version, flags);
    if (result == CUDA_SUCCESS && function != NULL && *function != NULL)
        *function = replace(symbol, *function, version, flags, asker);
    return result;
}

int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                        int *symbol_status)
{
    const void *asker = __builtin_return_address(0);
    get_proc_address_v2 *real = (get_proc_address_v2 *)gm_real(gm_api_find(__func__), asker);
    if (real == NULL)
        return CUDA_ERROR_NOT_FOUND;
    int result = real(symbol, function, version, flags, symbol_status);
    if (result == CUDA_SUCCESS && function != NULL && *function != NULL)
        *function = replace(symbol, *function, version, flags, asker);
    return result;
}

void gm_get_proc_address_forget(void)
{
    struct gm_object object;
    for (uint16_t api = 1; api < gm_api_count && api < GM_API_MAX; api++) {
        void *address = exported_address(api);
        if (address == NULL)
            continue;
        if (!gm_object_of(address, &object)) /* the driver is gone: all of them are */
            atomic_store_explicit(&exports_known, false, memory_order_release);
        return;
    }
}
