/* See libc_dlsym.h. */
#define _GNU_SOURCE
#include "loader/libc_dlsym.h"
#include "base/platform.h"
#include <dlfcn.h>
#include <stdatomic.h>

static _Atomic(gm_dlsym *) libc_dlsym;
static _Atomic(gm_dlsym *) next_dlsym;

/* Version of the first dlsym of each architecture: all later glibc still have it. The new one comes
 * last, so that no lookup fails on a common machine and leaves an error behind in dlerror. */
static const char *const dlsym_versions[] = {
#if defined(__x86_64__)
    "GLIBC_2.2.5",
#elif defined(__aarch64__)
    "GLIBC_2.17",
#endif
    "GLIBC_2.34",
};

/* What stands in where libc has no dlsym of any known version. */
static void *dlsym_of_nothing(void *handle, const char *symbol)
{
    (void)handle;
    (void)symbol;
    return NULL;
}

/* A call from here must return here: as a tail call it would be made in the name of our caller. */
#define KEEP_THIS_FRAME(result) __asm__ volatile("" : "+r"(result)::"memory")

/*
 * Finds both functions. Other libraries' constructors can look symbols up before ours has run, so
 * every use asks here; threads that meet find the same and need no lock.
 */
GM_BEFORE_SANITIZERS static gm_dlsym *find_dlsym(void)
{
    gm_dlsym *libc = NULL;
    for (size_t i = 0; libc == NULL && i < sizeof dlsym_versions / sizeof dlsym_versions[0]; i++)
        libc = (gm_dlsym *)dlvsym(RTLD_NEXT, "dlsym", dlsym_versions[i]);
    if (libc == NULL)
        libc = dlsym_of_nothing;
    gm_dlsym *next = (gm_dlsym *)libc(RTLD_NEXT, "dlsym");
    atomic_store_explicit(&next_dlsym, next != NULL ? next : libc, memory_order_release);
    atomic_store_explicit(&libc_dlsym, libc, memory_order_release);
    return libc;
}

GM_BEFORE_SANITIZERS static gm_dlsym *dlsym_of_libc(void)
{
    gm_dlsym *function = atomic_load_explicit(&libc_dlsym, memory_order_acquire);
    return gm_likely(function != NULL) ? function : find_dlsym();
}

GM_BEFORE_SANITIZERS gm_dlsym *gm_next_dlsym(void)
{
    dlsym_of_libc();
    return atomic_load_explicit(&next_dlsym, memory_order_acquire);
}

__attribute__((constructor)) static void find_dlsym_early(void)
{
    dlsym_of_libc();
}

const void *gm_libc_address(void)
{
    return (const void *)dlsym_of_libc();
}

void *gm_real_dlvsym(void *handle, const char *symbol, const char *version)
{
    void *found =
        version == NULL ? dlsym_of_libc()(handle, symbol) : dlvsym(handle, symbol, version);
    KEEP_THIS_FRAME(found);
    return found;
}

void *gm_real_dlsym(void *handle, const char *symbol)
{
    return gm_real_dlvsym(handle, symbol, NULL);
}
