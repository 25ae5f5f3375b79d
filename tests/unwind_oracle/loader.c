/* What the preload's dlsym.c is to the unwinder: here nothing stands before the C library. */
#include "interpose/real.h"
#include "interpose/roads.h"
#include <dlfcn.h>

const void *gm_libc_address(void)
{
    return (const void *)dlsym;
}

void *gm_real_dlsym(void *handle, const char *symbol)
{
    return dlsym(handle, symbol);
}
