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
#include "interpose/dlclose.h"
#include "interpose/get_proc_address.h"
#include "interpose/real.h"
#include "loader/next_symbol.h"

static _Atomic(void (*)(void)) watcher;

void gm_dlclose_watch(void (*code_may_change)(void))
{
    atomic_store_explicit(&watcher, code_may_change, memory_order_release);
}

static void tell_watcher(void)
{
    void (*code_may_change)(void) = atomic_load_explicit(&watcher, memory_order_acquire);
    if (code_may_change != NULL)
        code_may_change();
}

/* The export is a second name: inside the library the name dlclose may mean another's. */
GM_EXPORT int dlclose(void *handle) __attribute__((alias("gm_dlclose_hook")));

int gm_dlclose_hook(void *handle)
{
    tell_watcher();
    int result = gm_next_dlclose(handle);
    int error = errno;
    tell_watcher();
    gm_real_forget();
    gm_get_proc_address_forget();
    errno = error;
    return result;
}
