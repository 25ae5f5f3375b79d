/* What a wheel brings with a runtime of its own. */
#include <cuda_runtime_api.h>

int plugin_keep(size_t bytes);

int plugin_keep(size_t bytes)
{
    void *memory;
    return cudaMalloc(&memory, bytes) == cudaSuccess;
}
