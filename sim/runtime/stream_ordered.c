/*
 * Stream-ordered allocation. During stream capture the driver turns these into graph nodes.
 *
 * Compiled twice, for the legacy and for the per-thread default stream (runtime.h).
 */
#include "runtime.h"

cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream)
{
    if (!pointer)
        return gpusim_fail(cudaErrorInvalidValue);
    if (!gpusim_enter())
        return gpusim_refusal();
    if (bytes == 0) {
        *pointer = NULL;
        return cudaSuccess;
    }
    return gpusim_finish(DRIVER(cuMemAllocAsync, 11020)(gpusim_out(pointer), bytes, stream));
}

cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream)
{
    if (!pointer)
        return gpusim_fail(cudaErrorInvalidValue);
    if (!gpusim_enter())
        return gpusim_refusal();
    if (bytes == 0) {
        *pointer = NULL;
        return cudaSuccess;
    }
    return gpusim_finish(
        DRIVER(cuMemAllocFromPoolAsync, 11020)(gpusim_out(pointer), bytes, pool, stream));
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    if (!pointer)
        return cudaSuccess;
    return gpusim_finish(DRIVER(cuMemFreeAsync, 11020)(gpusim_device_address(pointer), stream));
}
