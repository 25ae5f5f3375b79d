/*
 * Stream functions whose signature CUDA 13 changed, in their forms of CUDA 12. Counterpart:
 * abi_13_stream.c.
 *
 * Compiled twice, for the legacy and for the per-thread default stream (runtime.h). The labels
 * bypass the headers' renaming, so the suffix is added here.
 */
#include "abi_12.h"

#if GPUSIM_CUDART_MAJOR == 12

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define STREAM_ABI_12(symbol) __asm__(#symbol "_ptsz")
#else
#define STREAM_ABI_12(symbol) __asm__(#symbol)
#endif

cudaError_t gpusim_12_prefetch(const void *pointer, size_t bytes, int device, cudaStream_t stream)
    STREAM_ABI_12(cudaMemPrefetchAsync);
cudaError_t gpusim_12_prefetch_v2(const void *pointer, size_t bytes,
                                  struct cudaMemLocation location, unsigned flags,
                                  cudaStream_t stream) STREAM_ABI_12(cudaMemPrefetchAsync_v2);
cudaError_t gpusim_12_copy_batch(void **destinations, void **sources, size_t *sizes, size_t count,
                                 struct cudaMemcpyAttributes *attributes, size_t *attribute_indices,
                                 size_t attribute_count, size_t *failed_index, cudaStream_t stream)
    STREAM_ABI_12(cudaMemcpyBatchAsync);
cudaError_t gpusim_12_copy_3d_batch(size_t count, struct cudaMemcpy3DBatchOp *operations,
                                    size_t *failed_index, unsigned long long flags,
                                    cudaStream_t stream) STREAM_ABI_12(cudaMemcpy3DBatchAsync);
cudaError_t gpusim_12_capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                   unsigned long long *id) STREAM_ABI_12(cudaStreamGetCaptureInfo);
cudaError_t gpusim_12_capture_info_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                      unsigned long long *id, cudaGraph_t *graph,
                                      const cudaGraphNode_t **dependencies, size_t *count)
    STREAM_ABI_12(cudaStreamGetCaptureInfo_v2);
cudaError_t gpusim_12_capture_info_v3(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                      unsigned long long *id, cudaGraph_t *graph,
                                      const cudaGraphNode_t **dependencies,
                                      const CUgraphEdgeData **edges, size_t *count)
    STREAM_ABI_12(cudaStreamGetCaptureInfo_v3);
cudaError_t gpusim_12_update_capture(cudaStream_t stream, cudaGraphNode_t *dependencies,
                                     size_t count, unsigned flags)
    STREAM_ABI_12(cudaStreamUpdateCaptureDependencies);
cudaError_t gpusim_12_update_capture_v2(cudaStream_t stream, cudaGraphNode_t *dependencies,
                                        const CUgraphEdgeData *edges, size_t count, unsigned flags)
    STREAM_ABI_12(cudaStreamUpdateCaptureDependencies_v2);
cudaError_t gpusim_12_signal_v2(const cudaExternalSemaphore_t *semaphores,
                                const struct cudaExternalSemaphoreSignalParams *parameters,
                                unsigned count, cudaStream_t stream)
    STREAM_ABI_12(cudaSignalExternalSemaphoresAsync_v2);
cudaError_t gpusim_12_wait_v2(const cudaExternalSemaphore_t *semaphores,
                              const struct cudaExternalSemaphoreWaitParams *parameters,
                              unsigned count, cudaStream_t stream)
    STREAM_ABI_12(cudaWaitExternalSemaphoresAsync_v2);

cudaError_t gpusim_12_prefetch(const void *pointer, size_t bytes, int device, cudaStream_t stream)
{
    return CALL(cuMemPrefetchAsync, 8000, gpusim_device_address(pointer), bytes, device, stream);
}

cudaError_t gpusim_12_prefetch_v2(const void *pointer, size_t bytes,
                                  struct cudaMemLocation location, unsigned flags,
                                  cudaStream_t stream)
{
    CUmemLocation driver_location = {.type = (CUmemLocationType)location.type, .id = location.id};
    return CALL(cuMemPrefetchAsync, 12020, gpusim_device_address(pointer), bytes, driver_location,
                flags, stream);
}

cudaError_t gpusim_12_copy_batch(void **destinations, void **sources, size_t *sizes, size_t count,
                                 struct cudaMemcpyAttributes *attributes, size_t *attribute_indices,
                                 size_t attribute_count, size_t *failed_index, cudaStream_t stream)
{
    return CALL(cuMemcpyBatchAsync, 12080, gpusim_out(destinations), gpusim_out(sources), sizes,
                count, (CUmemcpyAttributes *)(void *)attributes, attribute_indices, attribute_count,
                failed_index, stream);
}

cudaError_t gpusim_12_copy_3d_batch(size_t count, struct cudaMemcpy3DBatchOp *operations,
                                    size_t *failed_index, unsigned long long flags,
                                    cudaStream_t stream)
{
    return CALL(cuMemcpy3DBatchAsync, 12080, count, (CUDA_MEMCPY3D_BATCH_OP *)(void *)operations,
                failed_index, flags, stream);
}

cudaError_t gpusim_12_capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                   unsigned long long *id)
{
    return CALL(cuStreamGetCaptureInfo, 10010, stream, (CUstreamCaptureStatus *)(void *)status,
                (cuuint64_t *)(void *)id);
}

cudaError_t gpusim_12_capture_info_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                      unsigned long long *id, cudaGraph_t *graph,
                                      const cudaGraphNode_t **dependencies, size_t *count)
{
    return CALL(cuStreamGetCaptureInfo, 11030, stream, (CUstreamCaptureStatus *)(void *)status,
                (cuuint64_t *)(void *)id, graph, dependencies, count);
}

cudaError_t gpusim_12_capture_info_v3(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                      unsigned long long *id, cudaGraph_t *graph,
                                      const cudaGraphNode_t **dependencies,
                                      const CUgraphEdgeData **edges, size_t *count)
{
    return CALL(cuStreamGetCaptureInfo, 12030, stream, (CUstreamCaptureStatus *)(void *)status,
                (cuuint64_t *)(void *)id, graph, dependencies, edges, count);
}

cudaError_t gpusim_12_update_capture(cudaStream_t stream, cudaGraphNode_t *dependencies,
                                     size_t count, unsigned flags)
{
    return CALL(cuStreamUpdateCaptureDependencies, 11030, stream, dependencies, count, flags);
}

cudaError_t gpusim_12_update_capture_v2(cudaStream_t stream, cudaGraphNode_t *dependencies,
                                        const CUgraphEdgeData *edges, size_t count, unsigned flags)
{
    return CALL(cuStreamUpdateCaptureDependencies, 12030, stream, dependencies, edges, count,
                flags);
}

cudaError_t gpusim_12_signal_v2(const cudaExternalSemaphore_t *semaphores,
                                const struct cudaExternalSemaphoreSignalParams *parameters,
                                unsigned count, cudaStream_t stream)
{
    return cudaSignalExternalSemaphoresAsync(semaphores, parameters, count, stream);
}

cudaError_t gpusim_12_wait_v2(const cudaExternalSemaphore_t *semaphores,
                              const struct cudaExternalSemaphoreWaitParams *parameters,
                              unsigned count, cudaStream_t stream)
{
    return cudaWaitExternalSemaphoresAsync(semaphores, parameters, count, stream);
}

#endif
