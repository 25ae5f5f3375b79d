/*
 * Streams and events as objects: creation and destruction, and event queries. Work of a stream is
 * in stream_work.c.
 */
#include "runtime.h"

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return CALL(cuStreamCreate, 2000, stream, CU_STREAM_DEFAULT);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    return CALL(cuStreamCreate, 2000, stream, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
    return CALL(cuStreamCreateWithPriority, 5050, stream, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return CALL(cuStreamDestroy, 4000, stream);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    return CALL(cuEventCreate, 2000, event, flags);
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    return CALL(cuEventDestroy, 4000, event);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return CALL(cuEventQuery, 2000, event);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return CALL(cuEventSynchronize, 2000, event);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    return CALL(cuEventElapsedTime, 12080, milliseconds, start, end);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    return CALL(cuThreadExchangeStreamCaptureMode, 10010, (CUstreamCaptureMode *)(void *)mode);
}
