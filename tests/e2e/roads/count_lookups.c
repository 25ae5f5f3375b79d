/*
 * Preloaded before everything else: logs each lookup of the driver that a CUDA runtime makes, and
 * changes none. A runtime finds the driver's cuGetProcAddress_v2 by dlsym, and asks that for the
 * cuGetProcAddress it goes on with; here it gets one that writes a line to the file LOOKUPS and
 * passes the call on: to the driver, or to LIBGPUMEM where that is preloaded.
 *
 * A line: name, version, flags, result, and "ours" if the answer is a function of libgpumem.so.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *dlsym_function(void *handle, const char *symbol);
typedef int lookup_function(const char *name, void **function, int version, uint64_t flags,
                            int *status);

static lookup_function *next_lookup;

static int is_ours(void *function)
{
    Dl_info info;
    return dladdr(function, &info) != 0 && strstr(info.dli_fname, "libgpumem.so") != NULL;
}

static int noted_lookup(const char *name, void **function, int version, uint64_t flags, int *status)
{
    static FILE *file;
    int result = next_lookup(name, function, version, flags, status);
    if (file == NULL)
        file = fopen(getenv("LOOKUPS"), "w");
    fprintf(file, "%s@%d flags %d: %d%s\n", name, version, (int)flags, result,
            result == 0 && is_ours(*function) ? " ours" : "");
    fflush(file);
    if (result == 0 && version >= 12000 && strcmp(name, "cuGetProcAddress") == 0) {
        next_lookup = (lookup_function *)*function;
        *function = (void *)noted_lookup;
    }
    return result;
}

/* Only libc's has a version, so dlvsym passes over that of libgpumem.so. */
static dlsym_function *next_dlsym(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    static dlsym_function *found;
    for (size_t i = 0; found == NULL && i < sizeof(versions) / sizeof(versions[0]); i++) {
        const char *path = getenv("LIBGPUMEM");
        void *ours = path != NULL ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
        found = (dlsym_function *)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        if (found != NULL && ours != NULL)
            found = (dlsym_function *)found(ours, "dlsym");
    }
    return found;
}

/* Lookups by RTLD_NEXT would find what comes after this library; no CUDA runtime makes any. */
void *dlsym(void *handle, const char *symbol)
{
    void *found = next_dlsym()(handle, symbol);
    if (found == NULL || strcmp(symbol, "cuGetProcAddress_v2") != 0)
        return found;
    next_lookup = (lookup_function *)found;
    return (void *)noted_lookup;
}
