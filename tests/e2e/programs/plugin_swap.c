/*
 * plugin_swap FIRST SECOND: loads one library, lets it allocate and unloads it, then the other,
 * which the loader puts in the same place, and so on. The report must separate the allocations of
 * the two, although their code has the same addresses, and must attribute those of one library to
 * one place, although it was loaded anew for each.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>

enum { SWAPS = 3 };

static int allocate_in_plugin(const char *path, int planted)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void (*allocate)(int) = library ? (void (*)(int))dlsym(library, "allocate_once") : NULL;
    if (!allocate) {
        printf("%s\n", dlerror());
        return 1;
    }
    allocate(planted);
    return dlclose(library);
}

int main(int count, char **arguments)
{
    CUcontext context;
    if (count != 3 || cuInit(0) != CUDA_SUCCESS ||
        cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        cuCtxSetCurrent(context) != CUDA_SUCCESS)
        return 1;
    for (int swap = 0; swap < SWAPS; swap++)
        for (int which = 1; which <= 2; which++)
            if (allocate_in_plugin(arguments[which], swap == SWAPS - 1 ? SWAPS : 0) != 0)
                return 1;
    return 0;
}
