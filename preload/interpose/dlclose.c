/*
 * The dlclose hook: code may go away, and with it what was remembered of it.
 *
 * Remembered functions are dropped after the real call only. During it the loader's lock is held,
 * destructors run, and a thread they wait for may call CUDA: it must find its functions without
 * asking the loader. Objects that go away take no calls any more, so the order is safe.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/platform.h"
#include "interpose/roads.h"
#include "stack/native/unwind.h"
#include "writer/modules.h"

/* Optional, so that the roads can be tested alone: without stacks there is nothing to renew. */
#pragma weak gm_modules_changed
#pragma weak gm_unwind_new_generation

typedef int dlclose_function(void *handle);

static _Atomic(dlclose_function *) next_dlclose;

int gm_next_dlclose(void *handle)
{
    dlclose_function *function = atomic_load_explicit(&next_dlclose, memory_order_acquire);
    if (gm_unlikely(function == NULL)) {
        function = (dlclose_function *)gm_next_symbol("dlclose", NULL);
        if (function == NULL)
            return -1;
        atomic_store_explicit(&next_dlclose, function, memory_order_release);
    }
    return function(handle);
}

static void new_generation(void)
{
    if (gm_unwind_new_generation != NULL)
        gm_unwind_new_generation();
    if (gm_modules_changed != NULL)
        gm_modules_changed();
}

/* The export is a second name: inside the library the name dlclose may mean another's. */
GM_EXPORT int dlclose(void *handle) __attribute__((alias("gm_dlclose_hook")));

int gm_dlclose_hook(void *handle)
{
    new_generation();
    int result = gm_next_dlclose(handle);
    int error = errno;
    new_generation();
    gm_real_forget();
    gm_get_proc_address_forget();
    errno = error;
    return result;
}
