/*
 * Events: the time at which they were recorded. Work is done when it is submitted, so an event has
 * always happened.
 */
#include "memory.h"
#include "stream.h"

#include <stdlib.h>
#include <time.h>

uint64_t gpusim_waits;

void gpusim_event_delete(void *object)
{
    struct gpusim_event *event = object;

    free(event->capture_tail);
    gpusim_object_delete(event);
}

/*
 * With GPUMEM_SIM_KERNEL_NS the host's clock is left out: what a program chooses by times it then
 * chooses in each run. An event takes a microsecond, so that no two have the same time, by which
 * a program could divide.
 */
static uint64_t device_time(void)
{
    struct timespec now;

    if (gpusim_settings.kernel_ns)
        return gpusim_device_time += 1000;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

CUresult gpusim_event_record(CUevent handle)
{
    struct gpusim_event *event = GPUSIM_FIND(handle, GPUSIM_TYPE_EVENT);

    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    event->time_ns = device_time();
    event->waits = gpusim_waits;
    event->asked = 0;
    event->recorded = true;
    event->capture_id = 0;
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *handle, unsigned int flags)
{
    const unsigned int known =
        CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

    GPUSIM_ENTER_CONTEXT(context);
    if (!handle || (flags & ~known) ||
        (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    struct gpusim_event *event = gpusim_object_new(sizeof(*event), GPUSIM_TYPE_EVENT, context);
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult taken = gpusim_object_take(&event->base, context->device, GPUSIM_TAKES_EVENT);
    if (taken != CUDA_SUCCESS) {
        gpusim_object_delete(event);
        return taken;
    }
    event->flags = flags;
    *handle = GPUSIM_HANDLE(CUevent, event);
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent handle)
{
    GPUSIM_ENTER();
    struct gpusim_event *event = GPUSIM_FIND(handle, GPUSIM_TYPE_EVENT);

    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    gpusim_event_delete(event);
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent handle)
{
    return cuEventDestroy_v2(handle);
}

CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream_handle, unsigned int flags)
{
    GPUSIM_ENTER();
    struct gpusim_event *event = GPUSIM_FIND(handle, GPUSIM_TYPE_EVENT);
    struct gpusim_stream *stream;

    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags & ~(unsigned int)CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_stream_of(stream_handle, &stream));
    if (stream->base.context != event->base.context)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!stream->capture) /* "This flag is invalid outside of stream capture" */
        return flags ? CUDA_ERROR_INVALID_VALUE : gpusim_event_record(handle);
    if (flags & CU_EVENT_RECORD_EXTERNAL) {
        struct gpusim_operation operation = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                                             .event = handle};
        return gpusim_capture_operation(stream, &operation);
    }
    return gpusim_capture_event_record(stream, event);
}

CUresult cuEventRecord(CUevent handle, CUstream stream)
{
    return cuEventRecordWithFlags(handle, stream, 0);
}

/* Events recorded in a capture belong to the graph: the host cannot wait for them. */
static CUresult usable(CUevent handle, struct gpusim_event **event)
{
    *event = GPUSIM_FIND(handle, GPUSIM_TYPE_EVENT);
    if (!*event)
        return CUDA_ERROR_INVALID_HANDLE;
    return (*event)->capture_id ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent handle)
{
    GPUSIM_ENTER();
    struct gpusim_event *event;

    GPUSIM_TRY(usable(handle, &event));
    /* A host that does nothing but ask is waiting, too. */
    if (gpusim_settings.late_events && event->recorded && event->waits == gpusim_waits &&
        event->asked++ < 1000)
        return CUDA_ERROR_NOT_READY;
    return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent handle)
{
    GPUSIM_ENTER();
    struct gpusim_event *event;

    GPUSIM_TRY(usable(handle, &event));
    gpusim_pools_release(event->base.context->device);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start_handle, CUevent end_handle)
{
    GPUSIM_ENTER();
    struct gpusim_event *start, *end;

    GPUSIM_TRY(usable(start_handle, &start));
    GPUSIM_TRY(usable(end_handle, &end));
    if (!milliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    if (!start->recorded || !end->recorded || (start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)
        return CUDA_ERROR_INVALID_HANDLE;
    *milliseconds = (float)((double)(int64_t)(end->time_ns - start->time_ns) / 1e6);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    return cuEventElapsedTime_v2(milliseconds, start, end);
}
