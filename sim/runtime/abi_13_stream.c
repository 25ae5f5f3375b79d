/*
 * Stream functions whose signature CUDA 13 changed, in their form of CUDA 13. Counterpart:
 * abi_12_stream.c.
 *
 * Compiled twice, for the legacy and for the per-thread default stream (runtime.h).
 */
#include "runtime.h"

#if GPUSIM_CUDART_MAJOR >= 13

cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, struct cudaMemLocation location,
                                 unsigned int flags, cudaStream_t stream)
{
    CUmemLocation driver_location = {.type = (CUmemLocationType)location.type, .id = location.id};
    return CALL(cuMemPrefetchAsync, 12020, gpusim_device_address(pointer), bytes, driver_location,
                flags, stream);
}

_Static_assert(sizeof(struct cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes), "same layout");
_Static_assert(sizeof(struct cudaMemcpy3DBatchOp) == sizeof(CUDA_MEMCPY3D_BATCH_OP), "same layout");

cudaError_t cudaMemcpyBatchAsync(void *const *destinations, const void *const *sources,
                                 const size_t *sizes, size_t count,
                                 struct cudaMemcpyAttributes *attributes, size_t *attribute_indices,
                                 size_t attribute_count, cudaStream_t stream)
{
    return CALL(cuMemcpyBatchAsync, 13000, (CUdeviceptr *)(uintptr_t)destinations,
                (CUdeviceptr *)(uintptr_t)sources, (size_t *)(uintptr_t)sizes, count,
                (CUmemcpyAttributes *)(void *)attributes, attribute_indices, attribute_count,
                stream);
}

cudaError_t cudaMemcpy3DBatchAsync(size_t count, struct cudaMemcpy3DBatchOp *operations,
                                   unsigned long long flags, cudaStream_t stream)
{
    return CALL(cuMemcpy3DBatchAsync, 13000, count, (CUDA_MEMCPY3D_BATCH_OP *)(void *)operations,
                flags, stream);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **dependencies,
                                     const cudaGraphEdgeData **edges, size_t *count)
{
    return CALL(cuStreamGetCaptureInfo, 12030, stream, (CUstreamCaptureStatus *)(void *)status,
                (cuuint64_t *)(void *)id, graph, dependencies,
                (const CUgraphEdgeData **)(void *)edges, count);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *dependencies,
                                                const cudaGraphEdgeData *edges, size_t count,
                                                unsigned int flags)
{
    return CALL(cuStreamUpdateCaptureDependencies, 12030, stream, dependencies,
                (const CUgraphEdgeData *)(const void *)edges, count, flags);
}

#endif
