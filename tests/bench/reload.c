/*
 * A library that comes and goes, for scripts/bench: reload LIBRARY TIMES
 *
 * Each time the library is loaded, allocates and frees a block, and is unloaded. Prints the median of the
 * times, in us. The library is built of this file too.
 */
#include <cuda.h>
#ifdef RELOADED
__attribute__((visibility("default"))) void allocate_and_free(void);

void allocate_and_free(void)
{
    CUdeviceptr block;
    if (cuMemAlloc(&block, 4096) == CUDA_SUCCESS)
        cuMemFree(block);
}
#else
#include "bench.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *one, const void *other)
{
    double left = *(const double *)one, right = *(const double *)other;
    return (left > right) - (left < right);
}

static void load_call_unload(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    void *function = library ? dlsym(library, "allocate_and_free") : NULL;
    if (!function) {
        fprintf(stderr, "reload: %s\n", dlerror());
        exit(1);
    }
    ((void (*)(void))function)();
    dlclose(library);
}

int main(int count, char **words)
{
    int times = count == 3 ? atoi(words[2]) : 0;
    double *taken = times > 0 ? calloc((size_t)times, sizeof(*taken)) : NULL;
    if (!taken)
        return 2;
    open_device();
    for (int i = 0; i < times; i++) {
        double before = now_ns();
        load_call_unload(words[1]);
        taken[i] = now_ns() - before;
    }
    qsort(taken, (size_t)times, sizeof(*taken), compare);
    printf("%.1f\n", taken[times / 2] / 1e3);
    free(taken);
    return 0;
}
#endif
