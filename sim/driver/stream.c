/*
 * Streams: created, legacy default and per-thread default; work submitted to them; callbacks.
 */
#include "stream.h"
#include "contents.h"
#include "graph.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LOWEST_PRIORITY = 0, HIGHEST_PRIORITY = -5 };

static uint64_t last_stream_id;

uint64_t gpusim_thread_id(void)
{
    static _Thread_local uint64_t id;

    if (!id)
        id = (uint64_t)syscall(SYS_gettid);
    return id;
}

static struct gpusim_stream *new_stream(struct gpusim_context *context)
{
    struct gpusim_stream *stream = gpusim_object_new(sizeof(*stream), GPUSIM_TYPE_STREAM, context);

    if (stream)
        stream->id = ++last_stream_id;
    return stream;
}

static struct gpusim_stream *legacy_stream(struct gpusim_context *context)
{
    if (!context->legacy_stream)
        context->legacy_stream = new_stream(context);
    return context->legacy_stream;
}

static struct gpusim_stream *thread_stream(struct gpusim_context *context)
{
    struct gpusim_stream *stream = context->thread_streams;

    while (stream && stream->thread != gpusim_thread_id())
        stream = stream->next;
    if (!stream) {
        stream = new_stream(context);
        if (stream) {
            stream->thread = gpusim_thread_id();
            stream->next = context->thread_streams;
            context->thread_streams = stream;
        }
    }
    return stream;
}

CUresult gpusim_stream_of(CUstream handle, struct gpusim_stream **stream)
{
    struct gpusim_context *context;

    if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
        *stream = GPUSIM_FIND(handle, GPUSIM_TYPE_STREAM);
        return !*stream                ? CUDA_ERROR_INVALID_HANDLE
               : (*stream)->green_gone ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                       : CUDA_SUCCESS;
    }
    GPUSIM_TRY(gpusim_current(&context));
    *stream = handle == CU_STREAM_PER_THREAD ? thread_stream(context) : legacy_stream(context);
    return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult gpusim_submit(CUstream handle, const struct gpusim_operation *operation)
{
    struct gpusim_stream *stream;

    GPUSIM_TRY(gpusim_stream_of(handle, &stream));
    return stream->capture ? gpusim_capture_operation(stream, operation)
                           : gpusim_execute(operation);
}

static CUresult run_host_function(const CUDA_HOST_NODE_PARAMS_v2 *host)
{
    if (!host->fn)
        return CUDA_ERROR_INVALID_VALUE;
    gpusim_unlock();
    host->fn(host->userData);
    gpusim_lock();
    return CUDA_SUCCESS;
}

uint64_t gpusim_device_time;

CUresult gpusim_execute(const struct gpusim_operation *operation)
{
    switch (operation->type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return gpusim_copy(&operation->copy);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return gpusim_set(&operation->set);
    case CU_GRAPH_NODE_TYPE_HOST:
        return run_host_function(&operation->host);
    case CU_GRAPH_NODE_TYPE_KERNEL:
        gpusim_contents_kernel();
        gpusim_device_time += gpusim_settings.kernel_ns;
        GPUSIM_TRY(gpusim_check_kernel(&operation->kernel));
        gpusim_kernel_ran();
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return gpusim_event_record(operation->event);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return gpusim_batch(operation->batch.items, operation->batch.count);
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

void gpusim_stream_delete(void *object)
{
    struct gpusim_stream *stream = object;

    gpusim_capture_abandon(stream);
    free(stream->capture_tail);
    gpusim_object_delete(stream);
}

/* cuGreenCtxDestroy: "does not destroy streams ... any subsequent API calls involving these streams (including
 * cuStreamDestroy) will return CUDA_ERROR_CONTEXT_IS_DESTROYED." */
void gpusim_stream_leaves_green(void *object, uint64_t green)
{
    struct gpusim_stream *stream = object;

    stream->green_gone |= stream->green == green;
}

/* ---- life ------------------------------------------------------------------------------------ */

CUresult cuStreamCreateWithPriority(CUstream *handle, unsigned int flags, int priority)
{
    GPUSIM_ENTER_CONTEXT(context);
    if (!handle || (flags & ~(unsigned int)CU_STREAM_NON_BLOCKING))
        return CUDA_ERROR_INVALID_VALUE;
    return gpusim_stream_create(handle, context, gpusim_current_green(), flags, priority);
}

CUresult gpusim_stream_create(CUstream *handle, struct gpusim_context *context, uint64_t green,
                              unsigned int flags, int priority)
{
    struct gpusim_stream *stream = new_stream(context);
    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult taken = gpusim_object_take(&stream->base, context->device, GPUSIM_TAKES_STREAM);
    if (taken != CUDA_SUCCESS) {
        gpusim_object_delete(stream);
        return taken;
    }
    stream->flags = flags;
    stream->green = green;
    stream->priority = priority < HIGHEST_PRIORITY  ? HIGHEST_PRIORITY
                       : priority > LOWEST_PRIORITY ? LOWEST_PRIORITY
                                                    : priority;
    *handle = GPUSIM_HANDLE(CUstream, stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *handle, unsigned int flags)
{
    return cuStreamCreateWithPriority(handle, flags, LOWEST_PRIORITY);
}

CUresult cuStreamDestroy_v2(CUstream handle)
{
    GPUSIM_ENTER();
    struct gpusim_stream *stream = GPUSIM_FIND(handle, GPUSIM_TYPE_STREAM);

    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream->green_gone)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    gpusim_stream_delete(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream handle)
{
    return cuStreamDestroy_v2(handle);
}

/* ---- waiting --------------------------------------------------------------------------------- */

CUresult cuStreamSynchronize(CUstream handle)
{
    GPUSIM_ENTER();
    struct gpusim_stream *stream;

    GPUSIM_TRY(gpusim_stream_of(handle, &stream));
    GPUSIM_TRY(gpusim_check_wait(stream));
    gpusim_pools_release(stream->base.context->device);
    return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream handle)
{
    GPUSIM_ENTER();
    struct gpusim_stream *stream;

    GPUSIM_TRY(gpusim_stream_of(handle, &stream));
    return gpusim_check_wait(stream);
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned int flags)
{
    GPUSIM_ENTER();
    struct gpusim_event *event = GPUSIM_FIND(event_handle, GPUSIM_TYPE_EVENT);
    struct gpusim_stream *stream;

    GPUSIM_TRY(gpusim_stream_of(handle, &stream));
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags & ~(unsigned int)CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags && !stream->capture) /* "This flag is invalid outside of stream capture" */
        return CUDA_ERROR_INVALID_VALUE;
    if (flags) {
        struct gpusim_operation operation = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                                             .event = event_handle};
        return gpusim_capture_operation(stream, &operation);
    }
    return gpusim_capture_wait(stream, event);
}

/* ---- host functions -------------------------------------------------------------------------- */

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
    struct gpusim_operation operation = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = {function, data}};

    GPUSIM_ENTER();
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    return gpusim_submit(stream, &operation);
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void *data,
                             unsigned int flags)
{
    GPUSIM_ENTER();
    struct gpusim_stream *stream;

    GPUSIM_TRY(gpusim_stream_of(handle, &stream));
    if (!callback || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_check_wait(stream)); /* a callback cannot be captured */
    gpusim_unlock();
    callback(handle, CUDA_SUCCESS, data);
    gpusim_lock();
    return CUDA_SUCCESS;
}

/* ---- what a stream knows --------------------------------------------------------------------- */

#define STREAM_QUERY(handle, out)                                                                  \
    GPUSIM_ENTER();                                                                                \
    struct gpusim_stream *stream;                                                                  \
    GPUSIM_TRY(gpusim_stream_of(handle, &stream));                                                 \
    if (!(out))                                                                                    \
    return CUDA_ERROR_INVALID_VALUE

CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
    STREAM_QUERY(handle, priority);
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int *flags)
{
    STREAM_QUERY(handle, flags);
    *flags = stream->flags;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *id)
{
    STREAM_QUERY(handle, id);
    *id = stream->id;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice *device)
{
    STREAM_QUERY(handle, device);
    *device = stream->base.context->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context)
{
    STREAM_QUERY(handle, context);
    if (stream->green)
        return gpusim_green_convert(context, stream->green);
    *context = GPUSIM_HANDLE(CUcontext, stream->base.context);
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *context, CUgreenCtx *green)
{
    STREAM_QUERY(handle, context);
    *context = GPUSIM_HANDLE(CUcontext, stream->base.context);
    if (green)
        *green = (CUgreenCtx)stream->green;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue *value)
{
    STREAM_QUERY(handle, value);
    if ((int)attribute < 0 || attribute >= CU_LAUNCH_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *value = stream->attributes[attribute];
    if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value->priority = stream->priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute,
                              const CUstreamAttrValue *value)
{
    STREAM_QUERY(handle, value);
    if ((int)attribute < 0 || attribute >= CU_LAUNCH_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    stream->attributes[attribute] = *value;
    if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        stream->priority = value->priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamCopyAttributes(CUstream to_handle, CUstream from_handle)
{
    GPUSIM_ENTER();
    struct gpusim_stream *to, *from;

    GPUSIM_TRY(gpusim_stream_of(to_handle, &to));
    GPUSIM_TRY(gpusim_stream_of(from_handle, &from));
    memcpy(to->attributes, from->attributes, sizeof(to->attributes));
    return CUDA_SUCCESS;
}
