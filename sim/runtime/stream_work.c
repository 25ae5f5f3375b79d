/*
 * Work of a stream: waiting, callbacks, attributes, events, capture, graph launch, and the
 * prefetching and discarding of managed memory.
 *
 * Compiled twice, for the legacy and for the per-thread default stream (runtime.h).
 */
#include "runtime.h"

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return CALL(cuStreamQuery, 2000, stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return CALL(cuStreamSynchronize, 2000, stream);
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    return CALL(cuStreamGetPriority, 5050, stream, priority);
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
    return CALL(cuStreamGetFlags, 5050, stream, flags);
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
    return CALL(cuStreamGetId, 12000, stream, id);
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
    return CALL(cuStreamGetDevice, 12080, stream, device);
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from)
{
    return CALL(cuStreamCopyAttributes, 11000, to, from);
}

_Static_assert(sizeof(cudaStreamAttrValue) == sizeof(CUstreamAttrValue), "same layout");

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaStreamAttrID attribute,
                                   cudaStreamAttrValue *value)
{
    return CALL(cuStreamGetAttribute, 11000, stream, (CUstreamAttrID)attribute,
                (CUstreamAttrValue *)(void *)value);
}

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID attribute,
                                   const cudaStreamAttrValue *value)
{
    return CALL(cuStreamSetAttribute, 11000, stream, (CUstreamAttrID)attribute,
                (const CUstreamAttrValue *)(const void *)value);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    return CALL(cuStreamWaitEvent, 3020, stream, event, flags);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return CALL(cuEventRecord, 2000, event, stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
    return CALL(cuEventRecordWithFlags, 11010, event, stream, flags);
}

/* The driver calls back with a CUresult where the program expects a cudaError_t of equal value. */
_Static_assert(sizeof(CUresult) == sizeof(cudaError_t), "one can be passed as the other");

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data,
                                  unsigned int flags)
{
    return CALL(cuStreamAddCallback, 5000, stream, (CUstreamCallback)(void *)callback, data, flags);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data)
{
    return CALL(cuLaunchHostFunc, 10000, stream, function, data);
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *pointer, size_t bytes,
                                     unsigned int flags)
{
    return CALL(cuStreamAttachMemAsync, 6000, stream, gpusim_device_address(pointer), bytes, flags);
}

cudaError_t cudaMemPrefetchBatchAsync(void **pointers, size_t *sizes, size_t count,
                                      struct cudaMemLocation *locations, size_t *location_indices,
                                      size_t location_count, unsigned long long flags,
                                      cudaStream_t stream)
{
    return CALL(cuMemPrefetchBatchAsync, 13000, gpusim_out(pointers), sizes, count,
                (CUmemLocation *)(void *)locations, location_indices, location_count, flags,
                stream);
}

cudaError_t cudaMemDiscardBatchAsync(void **pointers, size_t *sizes, size_t count,
                                     unsigned long long flags, cudaStream_t stream)
{
    return CALL(cuMemDiscardBatchAsync, 13000, gpusim_out(pointers), sizes, count, flags, stream);
}

cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void **pointers, size_t *sizes, size_t count,
                                                struct cudaMemLocation *locations,
                                                size_t *location_indices, size_t location_count,
                                                unsigned long long flags, cudaStream_t stream)
{
    return CALL(cuMemDiscardAndPrefetchBatchAsync, 13000, gpusim_out(pointers), sizes, count,
                (CUmemLocation *)(void *)locations, location_indices, location_count, flags,
                stream);
}

_Static_assert(sizeof(struct cudaExternalSemaphoreSignalParams) ==
                   sizeof(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS),
               "same layout");
_Static_assert(sizeof(struct cudaExternalSemaphoreWaitParams) ==
                   sizeof(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS),
               "same layout");

cudaError_t
cudaSignalExternalSemaphoresAsync(const cudaExternalSemaphore_t *semaphores,
                                  const struct cudaExternalSemaphoreSignalParams *parameters,
                                  unsigned int count, cudaStream_t stream)
{
    return CALL(cuSignalExternalSemaphoresAsync, 10000,
                (const CUexternalSemaphore *)(const void *)semaphores,
                (const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *)(const void *)parameters, count,
                stream);
}

cudaError_t
cudaWaitExternalSemaphoresAsync(const cudaExternalSemaphore_t *semaphores,
                                const struct cudaExternalSemaphoreWaitParams *parameters,
                                unsigned int count, cudaStream_t stream)
{
    return CALL(
        cuWaitExternalSemaphoresAsync, 10000, (const CUexternalSemaphore *)(const void *)semaphores,
        (const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *)(const void *)parameters, count, stream);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    return CALL(cuStreamBeginCapture, 10010, stream, (CUstreamCaptureMode)mode);
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t *dependencies,
                                          const cudaGraphEdgeData *edges, size_t count,
                                          enum cudaStreamCaptureMode mode)
{
    return CALL(cuStreamBeginCaptureToGraph, 12030, stream, graph, dependencies,
                (const CUgraphEdgeData *)(const void *)edges, count, (CUstreamCaptureMode)mode);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    return CALL(cuStreamEndCapture, 10000, stream, graph);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    return CALL(cuStreamIsCapturing, 10000, stream, (CUstreamCaptureStatus *)(void *)status);
}

_Static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS),
               "same layout");

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *executable, cudaGraph_t graph,
                                           cudaGraphInstantiateParams *parameters)
{
    return CALL(cuGraphInstantiateWithParams, 12000, executable, graph,
                (CUDA_GRAPH_INSTANTIATE_PARAMS *)(void *)parameters);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream)
{
    return CALL(cuGraphUpload, 11010, executable, stream);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream)
{
    return CALL(cuGraphLaunch, 10000, executable, stream);
}
