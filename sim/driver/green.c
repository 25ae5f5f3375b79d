/*
 * Green contexts: shares of a primary context, and the resources of which they are made.
 *
 * cuGreenCtxCreate: "This API will retain the primary context on device dev, which will is released when the green
 * context is destroyed." cuCtxFromGreenCtx: "the converted context is a normal primary context but with the resources of
 * the specified green context": its handle is a second one of the primary context (gpusim_context.alias_of).
 */
#include "profile.h"
#include "stream.h"

#include <stdlib.h>
#include <string.h>

/* "On Compute Architecture 9.0+: The minimum count is 8 SMs and must be a multiple of 8." */
enum { SMALLEST_SHARE = 8 };

struct gpusim_green {
    struct gpusim_object base;
    struct gpusim_device *device;
    CUdevResource resource;
    struct gpusim_context *converted; /* NULL until it is asked for */
    uint64_t id;
};

/* What CUdevResourceDesc names. */
struct description {
    struct gpusim_object base;
    CUdevResource resource;
};

/* What the padding of a resource tells, which "should not be directly modified". */
struct origin {
    char magic[8];
    int device;
    uint64_t split; /* 0: of none */
    bool is_split;  /* "the output results cannot be split again" */
};

static const char magic[8] = "gpusimSM";
static uint64_t last_split, last_id;

static struct gpusim_green *green_of(CUgreenCtx handle)
{
    return GPUSIM_FIND(handle, GPUSIM_TYPE_GREEN);
}

/* ---- resources ------------------------------------------------------------------------------- */

static bool read_origin(const CUdevResource *resource, struct origin *origin)
{
    memcpy(origin, resource->_internal_padding, sizeof(*origin));
    return memcmp(origin->magic, magic, sizeof(magic)) == 0;
}

static CUdevResource make_resource(int device, unsigned int count, uint64_t split)
{
    CUdevResource resource = {.type = CU_DEV_RESOURCE_TYPE_SM,
                              .sm = {.smCount = count,
                                     .minSmPartitionSize = SMALLEST_SHARE,
                                     .smCoscheduledAlignment = SMALLEST_SHARE}};
    struct origin origin = {.device = device, .split = split, .is_split = split != 0};

    memcpy(origin.magic, magic, sizeof(magic));
    memcpy(resource._internal_padding, &origin, sizeof(origin));
    return resource;
}

static CUresult check_query(const CUdevResource *resource, CUdevResourceType type)
{
    if (!resource)
        return CUDA_ERROR_INVALID_VALUE;
    return type == CU_DEV_RESOURCE_TYPE_SM ? CUDA_SUCCESS : CUDA_ERROR_INVALID_RESOURCE_TYPE;
}

static CUdevResource all_of(const struct gpusim_device *device)
{
    int count = 0;

    gpusim_profile_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &count);
    return make_resource(device->ordinal, (unsigned int)count, 0);
}

CUresult cuDeviceGetDevResource(CUdevice ordinal, CUdevResource *resource, CUdevResourceType type)
{
    GPUSIM_ENTER();
    struct gpusim_device *device = gpusim_device_of(ordinal);

    GPUSIM_TRY(check_query(resource, type));
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *resource = all_of(device);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevResource(CUcontext handle, CUdevResource *resource, CUdevResourceType type)
{
    GPUSIM_ENTER();
    const struct gpusim_context *context = gpusim_context_of(handle);
    struct gpusim_green *green = green_of((CUgreenCtx)gpusim_context_green(handle));

    GPUSIM_TRY(check_query(resource, type));
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    *resource = green ? green->resource : all_of(context->device);
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx handle, CUdevResource *resource,
                                  CUdevResourceType type)
{
    GPUSIM_ENTER();
    struct gpusim_green *green = green_of(handle);

    GPUSIM_TRY(check_query(resource, type));
    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    *resource = green->resource;
    return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *groups,
                                     const CUdevResource *input, CUdevResource *remaining,
                                     unsigned int flags, unsigned int least)
{
    GPUSIM_ENTER();
    struct origin origin;

    if (!groups || !input || least > input->sm.smCount || flags & ~3u || (result && *groups == 0))
        return CUDA_ERROR_INVALID_VALUE;
    if (input->type != CU_DEV_RESOURCE_TYPE_SM || !read_origin(input, &origin))
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (origin.is_split)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    unsigned int share = (least + SMALLEST_SHARE - 1) / SMALLEST_SHARE * SMALLEST_SHARE;
    if (share == 0)
        share = SMALLEST_SHARE;
    unsigned int most = input->sm.smCount / share;
    unsigned int made = result && *groups < most ? *groups : most;
    if (result) {
        last_split++;
        for (unsigned int i = 0; i < made; i++)
            result[i] = make_resource(origin.device, share, last_split);
        if (remaining)
            *remaining = make_resource(origin.device, input->sm.smCount - made * share, last_split);
    }
    *groups = made;
    return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *handle, CUdevResource *resources,
                                   unsigned int count)
{
    GPUSIM_ENTER();
    struct origin first, other;
    unsigned int multiprocessors = 0;

    if (!handle || !resources || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!read_origin(&resources[0], &first))
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    for (unsigned int i = 0; i < count; i++) {
        if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM || !read_origin(&resources[i], &other))
            return CUDA_ERROR_INVALID_RESOURCE_TYPE;
        /* "the device they came from must be the same", and "the same split API instance" */
        if (other.device != first.device || other.split != first.split)
            return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        multiprocessors += resources[i].sm.smCount;
    }
    struct description *description =
        gpusim_object_new(sizeof(*description), GPUSIM_TYPE_RESOURCES, NULL);
    if (!description)
        return CUDA_ERROR_OUT_OF_MEMORY;
    description->resource = make_resource(first.device, multiprocessors, 0);
    *handle = GPUSIM_HANDLE(CUdevResourceDesc, description);
    return CUDA_SUCCESS;
}

/* ---- life ------------------------------------------------------------------------------------ */

CUresult cuGreenCtxCreate(CUgreenCtx *handle, CUdevResourceDesc description_handle,
                          CUdevice ordinal, unsigned int flags)
{
    GPUSIM_ENTER();
    struct gpusim_device *device = gpusim_device_of(ordinal);
    struct description *description = GPUSIM_FIND(description_handle, GPUSIM_TYPE_RESOURCES);
    struct origin origin;

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!handle || !description || flags != CU_GREEN_CTX_DEFAULT_STREAM ||
        !read_origin(&description->resource, &origin) || origin.device != ordinal)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_primary_retain(device));
    struct gpusim_green *green = gpusim_object_new(sizeof(*green), GPUSIM_TYPE_GREEN, NULL);
    if (!green) {
        gpusim_primary_release(device);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    green->device = device;
    green->resource = description->resource;
    green->id = ++last_id;
    *handle = GPUSIM_HANDLE(CUgreenCtx, green);
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx handle)
{
    GPUSIM_ENTER();
    struct gpusim_green *green = green_of(handle);

    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    struct gpusim_device *device = green->device;
    gpusim_objects_each(GPUSIM_TYPE_STREAM, gpusim_stream_leaves_green, green->base.handle);
    if (green->converted)
        gpusim_object_delete(green->converted);
    gpusim_object_delete(green);
    gpusim_primary_release(device);
    return CUDA_SUCCESS;
}

CUresult gpusim_green_convert(CUcontext *handle, uint64_t green_handle)
{
    struct gpusim_green *green = GPUSIM_FIND(green_handle, GPUSIM_TYPE_GREEN);

    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!green->converted) {
        green->converted = gpusim_context_alias(green->device->primary, green->base.handle);
        if (!green->converted)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = GPUSIM_HANDLE(CUcontext, green->converted);
    return CUDA_SUCCESS;
}

CUresult cuCtxFromGreenCtx(CUcontext *handle, CUgreenCtx green)
{
    GPUSIM_ENTER();
    return gpusim_green_convert(handle, (uint64_t)(uintptr_t)green);
}

CUresult cuGreenCtxGetId(CUgreenCtx handle, unsigned long long *id)
{
    GPUSIM_ENTER();
    struct gpusim_green *green =
        handle ? green_of(handle) : green_of((CUgreenCtx)gpusim_current_green());

    if (!id)
        return CUDA_ERROR_INVALID_VALUE;
    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    *id = green->id;
    return CUDA_SUCCESS;
}

/* ---- streams and events ---------------------------------------------------------------------- */

CUresult cuGreenCtxStreamCreate(CUstream *handle, CUgreenCtx green_handle, unsigned int flags,
                                int priority)
{
    GPUSIM_ENTER();
    struct gpusim_green *green = green_of(green_handle);

    if (!handle || flags != CU_STREAM_NON_BLOCKING) /* "This must be specified" */
        return CUDA_ERROR_INVALID_VALUE;
    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    return gpusim_stream_create(handle, green->device->primary, green->base.handle, flags,
                                priority);
}

CUresult cuStreamGetGreenCtx(CUstream handle, CUgreenCtx *green)
{
    GPUSIM_ENTER();
    struct gpusim_stream *stream;

    GPUSIM_TRY(gpusim_stream_of(handle, &stream));
    if (!green)
        return CUDA_ERROR_INVALID_VALUE;
    /* "special stream such as the NULL stream": the green context that is current */
    const bool is_special = !handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
    *green = (CUgreenCtx)(is_special ? gpusim_current_green() : stream->green);
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx green, CUevent event)
{
    GPUSIM_ENTER();
    if (!green_of(green))
        return CUDA_ERROR_INVALID_CONTEXT;
    return GPUSIM_FIND(event, GPUSIM_TYPE_EVENT) ? gpusim_event_record(event)
                                                 : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx green, CUevent event)
{
    GPUSIM_ENTER();
    if (!green_of(green))
        return CUDA_ERROR_INVALID_CONTEXT;
    return GPUSIM_FIND(event, GPUSIM_TYPE_EVENT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
