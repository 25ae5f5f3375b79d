/* A small program with places that come, go, grow and shrink from one run to the next: diff_program MODE.
 *
 *     base      what is compared with
 *     changed   weights grow, the mask shrinks, cache_old goes, cache_new comes, a leak grows
 *     callers   as base, but what calls the places has other names
 *
 * DIFF_MOVED at compile time moves all lines. */
#include <cuda_runtime.h>
#include <gpumem/gpumem.h>
#include <stdbool.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

#ifdef DIFF_MOVED
#line 1000
#endif

static void *take(size_t size)
{
    void *memory = NULL;
    return cudaMalloc(&memory, size) == cudaSuccess ? memory : NULL;
}

static void *make_weights(bool is_changed)
{
    return take((is_changed ? 96 : 64) * MIB);
}

static void *make_mask(bool is_changed)
{
    return take((is_changed ? 4 : 8) * MIB);
}

static void *cache_old(void)
{
    return take(16 * MIB);
}

static void *cache_new(void)
{
    return take(20 * MIB);
}

static void *stage(void)
{
    void *pinned = NULL;
    return cudaMallocHost(&pinned, 3 * MIB) == cudaSuccess ? pinned : NULL;
}

static void forget(bool is_changed)
{
    for (int i = 0; i < (is_changed ? 5 : 2); i++)
        take(MIB);
}

static void scratch(void)
{
    for (int i = 0; i < 10; i++)
        cudaFree(take(MIB));
}

static void train(bool is_changed)
{
    gpumem_range_push("load");
    void *weights = make_weights(is_changed), *mask = make_mask(is_changed);
    void *cache = is_changed ? cache_new() : cache_old(), *pinned = stage();
    gpumem_range_pop();
    gpumem_range_push("step");
    scratch();
    gpumem_range_pop();
    forget(is_changed);
    cudaFreeHost(pinned);
    cudaFree(cache);
    cudaFree(mask);
    cudaFree(weights);
}

static void fit(void)
{
    train(false);
}

int main(int count, char **arguments)
{
    const char *mode = count > 1 ? arguments[1] : "base";
    if (strcmp(mode, "callers") == 0)
        fit();
    else
        train(strcmp(mode, "changed") == 0);
    return 0;
}
