/*
 * A plugin with a runtime of its own, as Python extension modules have. Its functions use only what
 * runtime 12 and 13 offer in the same form.
 */
#include "../programs/plant.h"
#include <cuda_runtime_api.h>

void plugin_work(const char *name);

__attribute__((noinline)) static void forget_in_plugin(void)
{
    void *address;
    LOG(cudaMalloc(&address, PLUGIN_BYTES));
    PLANTED(PLUGIN_BYTES, 1);
}

void plugin_work(const char *name)
{
    int version = 0;
    void *address[3], *pinned;
    LOG(cudaRuntimeGetVersion(&version));
    printf("%s: runtime %d\n", name, version / 1000);
    for (int i = 0; i < 3; i++)
        LOG(cudaMalloc(&address[i], (size_t)(i + 1) * PLUGIN_BYTES));
    LOG(cudaHostAlloc(&pinned, PLUGIN_BYTES, cudaHostAllocDefault));
    for (int i = 0; i < 3; i++)
        LOG(cudaFree(address[i]));
    LOG(cudaFreeHost(pinned));
    LOG(cudaFree((void *)16)); /* nobody's */
    LOG(cudaGetLastError());
    forget_in_plugin();
}
