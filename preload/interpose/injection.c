/*
 * The second door: CUDA_INJECTION64_PATH=libgpumem.so, where LD_PRELOAD cannot be set.
 *
 * The driver's first cuInit opens the library and calls InitializeInjection. It is too late then to
 * stand before anyone in the search order; instead the words through which the loaded objects call
 * imported functions are pointed at our hooks, once.
 *
 * Covered from then on, in objects that were loaded before cuInit: functions of the driver and of
 * the shared runtime that they import, and what they look up by dlsym.
 * Not covered: objects loaded later; the call under way; pointers fetched earlier, be it by taking
 * the address of an import, by dlsym or by cuGetProcAddress. A runtime fetches all of its own
 * before it calls cuInit, so programs with the static runtime go unseen, and with the shared one
 * only calls of the runtime's functions are seen, not what lies below them. LD_PRELOAD has none of
 * these limits.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/api.h"
#include "base/platform.h"
#include "interpose/dlclose.h"
#include "interpose/dlsym.h"
#include "loader/libc_dlsym.h"
#include "loader/objects.h"
#include "loader/redirect.h"

static uintptr_t replacement(const char *name)
{
    if (strcmp(name, "dlsym") == 0)
        return (uintptr_t)gm_dlsym_hook;
    if (strcmp(name, "dlclose") == 0)
        return (uintptr_t)gm_dlclose_hook;
    uint16_t api = gm_api_find(name);
    return api != 0 ? (uintptr_t)gm_api[api].wrapper : 0;
}

static int redirect_object(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    struct link_map map;
    struct gm_object object;
    /* The driver itself calls its own functions for its own reasons. */
    if (gm_object_told(info, &map, &object) && gm_object_function(&object, "cuInit") == NULL)
        gm_redirect_imports(info, replacement);
    return 0;
}

/* Whether this library or another copy of it was preloaded and does the work already. Known by its
 * hooks: other tools export InitializeInjection too. */
static bool is_preloaded_somehow(void)
{
    struct gm_object object;
    void *program = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);
    void *found = program != NULL ? gm_real_dlsym(program, "InitializeInjection") : NULL;
    return found != NULL && gm_object_of(found, &object) &&
           gm_object_function(&object, "dlsym") != NULL &&
           gm_object_function(&object, "cuGetProcAddress_v2") != NULL;
}

/* Called by the driver's first cuInit. Not 0: success. */
GM_EXPORT int InitializeInjection(void);

int InitializeInjection(void)
{
    static _Atomic bool done;
    const int error = errno;
    if (!gm_is_secure() && !atomic_exchange(&done, true) && !is_preloaded_somehow())
        dl_iterate_phdr(redirect_object, NULL);
    errno = error;
    return 1;
}
