/*
 * Another interposer of the driver; adds 20000. It finds the next function by:
 *   BY_NEXT    dlsym(RTLD_NEXT)
 *   BY_HANDLE  dlsym of the opened driver, in its constructor
 *   BY_DLSYM   hooks dlsym itself and takes what the program asked for
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

typedef int plain_function(void);
int cuMemAlloc_v2(void);

static plain_function *real;

int cuMemAlloc_v2(void)
{
#ifdef BY_NEXT
    real = (plain_function *)dlsym(RTLD_NEXT, "cuMemAlloc_v2");
#endif
    int result = real != NULL ? real() : -1;
    return result + 20000;
}

#ifdef BY_HANDLE
__attribute__((constructor)) static void find_real(void)
{
    real = (plain_function *)dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cuMemAlloc_v2");
}
#endif

#ifdef BY_DLSYM
void *dlsym(void *handle, const char *symbol)
{
    static void *(*libc_dlsym)(void *, const char *);
    if (libc_dlsym == NULL)
        libc_dlsym = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", DLSYM_VERSION);
    void *found = libc_dlsym(handle, symbol);
    if (found == NULL || strcmp(symbol, "cuMemAlloc_v2") != 0)
        return found;
    real = (plain_function *)found;
    return (void *)cuMemAlloc_v2;
}
#endif
