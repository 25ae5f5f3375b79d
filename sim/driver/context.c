/*
 * Contexts: primary and created ones, the stack of current contexts of each thread, limits and
 * flags.
 *
 * When a context ends, so do the memory that docs/accounting.md names (implicit frees) and every
 * stream, event, array and module made in it. The handle of a primary context stays the same for
 * good; between its last release or reset and the next retain it is as good as destroyed.
 */
#include "array.h"
#include "memory.h"
#include "module.h"
#include "stream.h"

enum { STACK_DEPTH = 64 };

static _Thread_local struct {
    CUcontext items[STACK_DEPTH];
    unsigned int count;
} stack;

static uint64_t last_context_id;

struct gpusim_context *gpusim_context_of(CUcontext handle)
{
    struct gpusim_context *context = GPUSIM_FIND(handle, GPUSIM_TYPE_CONTEXT);

    if (context && context->alias_of)
        context = context->alias_of;
    return context && context->active ? context : NULL;
}

struct gpusim_context *gpusim_context_alias(struct gpusim_context *context, uint64_t green)
{
    struct gpusim_context *alias = gpusim_object_new(sizeof(*alias), GPUSIM_TYPE_CONTEXT, NULL);

    if (alias) {
        alias->alias_of = context;
        alias->green = green;
    }
    return alias;
}

uint64_t gpusim_context_green(CUcontext handle)
{
    const struct gpusim_context *context = GPUSIM_FIND(handle, GPUSIM_TYPE_CONTEXT);

    return context ? context->green : 0;
}

uint64_t gpusim_current_green(void)
{
    return stack.count ? gpusim_context_green(stack.items[stack.count - 1]) : 0;
}

struct gpusim_context *gpusim_context_on(struct gpusim_device *device)
{
    return device->primary && device->primary->active ? device->primary : NULL;
}

CUresult gpusim_current(struct gpusim_context **context)
{
    if (stack.count == 0 || !stack.items[stack.count - 1])
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = gpusim_context_of(stack.items[stack.count - 1]);
    return *context ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static struct gpusim_context *new_context(struct gpusim_device *device, unsigned int flags)
{
    struct gpusim_context *context = gpusim_object_new(sizeof(*context), GPUSIM_TYPE_CONTEXT, NULL);

    if (!context)
        return NULL;
    context->device = device;
    context->flags = flags;
    return context;
}

static void start_context(struct gpusim_context *context, unsigned int api_version)
{
    context->active = true;
    context->id = ++last_context_id;
    context->api_version = api_version;
    context->peers = 0;
    context->limits[CU_LIMIT_STACK_SIZE] = 1024;
    context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 7340032;
    context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8388608;
    context->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
    context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
    context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
}

/* Ends everything that belongs to the context. */
static void empty_context(struct gpusim_context *context)
{
    gpusim_objects_end(context, GPUSIM_TYPE_STREAM, gpusim_stream_delete);
    context->legacy_stream = context->thread_streams = NULL;
    gpusim_objects_end(context, GPUSIM_TYPE_EVENT, gpusim_event_delete);
    gpusim_arrays_of_context_free(context);
    gpusim_objects_end(context, GPUSIM_TYPE_MODULE, gpusim_module_delete);
    gpusim_allocations_of_context_free(context);
    gpusim_object_give(&context->base);
    context->has_launched = false;
    context->active = false;
}

static bool valid_flags(unsigned int flags)
{
    return (flags & ~(unsigned int)CU_CTX_FLAGS_MASK) == 0 && (flags & CU_CTX_SCHED_MASK) != 3 &&
           (flags & CU_CTX_SCHED_MASK) < 5;
}

/* ---- primary contexts ------------------------------------------------------------------------ */

CUresult gpusim_primary_retain(struct gpusim_device *device)
{
    if (!device->primary) {
        device->primary = new_context(device, 0);
        if (!device->primary)
            return CUDA_ERROR_OUT_OF_MEMORY;
        device->primary->primary = true;
    }
    if (!device->primary->active) {
        GPUSIM_TRY(gpusim_object_take(&device->primary->base, device, GPUSIM_TAKES_CONTEXT));
        start_context(device->primary, 3020);
    }
    device->primary->retains++;
    return CUDA_SUCCESS;
}

void gpusim_primary_release(struct gpusim_device *device)
{
    if (--device->primary->retains == 0 && device->primary->active)
        empty_context(device->primary);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *handle, CUdevice ordinal)
{
    GPUSIM_ENTER();
    struct gpusim_device *device = gpusim_device_of(ordinal);

    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    GPUSIM_TRY(gpusim_primary_retain(device));
    *handle = GPUSIM_HANDLE(CUcontext, device->primary);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal)
{
    GPUSIM_ENTER();
    struct gpusim_device *device = gpusim_device_of(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!device->primary || device->primary->retains == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    gpusim_primary_release(device);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice ordinal)
{
    return cuDevicePrimaryCtxRelease_v2(ordinal);
}

/* Whoever has retained the context still has to release it. */
CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal)
{
    GPUSIM_ENTER();
    struct gpusim_device *device = gpusim_device_of(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (gpusim_context_on(device))
        empty_context(device->primary);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice ordinal)
{
    return cuDevicePrimaryCtxReset_v2(ordinal);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags)
{
    GPUSIM_ENTER();
    struct gpusim_device *device = gpusim_device_of(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!valid_flags(flags))
        return CUDA_ERROR_INVALID_VALUE;
    if (!device->primary) {
        device->primary = new_context(device, flags);
        if (!device->primary)
            return CUDA_ERROR_OUT_OF_MEMORY;
        device->primary->primary = true;
    }
    device->primary->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice ordinal, unsigned int flags)
{
    return cuDevicePrimaryCtxSetFlags_v2(ordinal, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int *flags, int *active)
{
    GPUSIM_ENTER_FAILED();
    struct gpusim_device *device = gpusim_device_of(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = device->primary ? device->primary->flags : 0;
    *active = gpusim_context_on(device) != NULL;
    return CUDA_SUCCESS;
}

/* ---- created contexts ------------------------------------------------------------------------ */

static CUresult create_context(CUcontext *handle, unsigned int flags, CUdevice ordinal,
                               unsigned int api_version)
{
    GPUSIM_ENTER();
    struct gpusim_device *device = gpusim_device_of(ordinal);

    if (!handle || !valid_flags(flags) || stack.count == STACK_DEPTH)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    struct gpusim_context *context = new_context(device, flags);
    if (!context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult taken = gpusim_object_take(&context->base, device, GPUSIM_TAKES_CONTEXT);
    if (taken != CUDA_SUCCESS) {
        gpusim_object_delete(context);
        return taken;
    }
    start_context(context, api_version);
    context->retains = 1;
    *handle = stack.items[stack.count++] = GPUSIM_HANDLE(CUcontext, context);
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
    return create_context(context, flags, device, 3010);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    return create_context(context, flags, device, 3020);
}

CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *parameters, int count,
                        unsigned int flags, CUdevice device)
{
    GPUSIM_TRY(gpusim_ready());
    if (count != 0 || parameters)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return create_context(context, flags, device, 3020);
}

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters, unsigned int flags,
                        CUdevice device)
{
    GPUSIM_TRY(gpusim_ready());
    if (parameters && parameters->numExecAffinityParams)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (parameters && parameters->cigParams)
        return CUDA_ERROR_NOT_SUPPORTED;
    return create_context(context, flags, device, 3020);
}

static void destroy(struct gpusim_context *context)
{
    CUcontext handle = GPUSIM_HANDLE(CUcontext, context);

    empty_context(context);
    gpusim_object_delete(context);
    if (stack.count > 0 && stack.items[stack.count - 1] == handle)
        stack.count--;
}

CUresult cuCtxDestroy_v2(CUcontext handle)
{
    GPUSIM_ENTER();
    struct gpusim_context *context = gpusim_context_of(handle);

    if (!context || context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    destroy(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext handle)
{
    return cuCtxDestroy_v2(handle);
}

CUresult cuCtxAttach(CUcontext *handle, unsigned int flags)
{
    GPUSIM_ENTER_CONTEXT(context);
    if (!handle || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    context->retains++;
    *handle = GPUSIM_HANDLE(CUcontext, context);
    return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext handle)
{
    GPUSIM_ENTER_CONTEXT(context);
    if (GPUSIM_HANDLE(CUcontext, context) != handle || context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--context->retains == 0)
        destroy(context);
    return CUDA_SUCCESS;
}

/* ---- the stack ------------------------------------------------------------------------------- */

CUresult cuCtxPushCurrent_v2(CUcontext handle)
{
    GPUSIM_ENTER_FAILED();
    if (!gpusim_context_of(handle))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (stack.count == STACK_DEPTH)
        return CUDA_ERROR_INVALID_VALUE;
    stack.items[stack.count++] = handle;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext handle)
{
    return cuCtxPushCurrent_v2(handle);
}

CUresult cuCtxPopCurrent_v2(CUcontext *handle)
{
    GPUSIM_ENTER_FAILED();
    if (stack.count == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack.count--;
    if (handle)
        *handle = stack.items[stack.count];
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *handle)
{
    return cuCtxPopCurrent_v2(handle);
}

CUresult cuCtxSetCurrent(CUcontext handle)
{
    GPUSIM_ENTER_FAILED();
    if (handle && !gpusim_context_of(handle))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!handle)
        stack.count -= stack.count > 0;
    else if (stack.count == 0)
        stack.items[stack.count++] = handle;
    else
        stack.items[stack.count - 1] = handle;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *handle)
{
    GPUSIM_ENTER_FAILED();
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    *handle = stack.count ? stack.items[stack.count - 1] : NULL;
    return CUDA_SUCCESS;
}

/* ---- what a context knows -------------------------------------------------------------------- */

CUresult cuCtxGetDevice(CUdevice *device)
{
    GPUSIM_ENTER_FAILED();
    struct gpusim_context *context;

    GPUSIM_TRY(gpusim_current(&context));
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = context->device->ordinal;
    return CUDA_SUCCESS;
}

/* The context of a handle; that of the thread for NULL. */
static CUresult context_or_current(CUcontext handle, struct gpusim_context **context)
{
    if (!handle)
        return gpusim_current(context);
    *context = gpusim_context_of(handle);
    return *context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext handle)
{
    GPUSIM_ENTER_FAILED();
    struct gpusim_context *context;

    GPUSIM_TRY(context_or_current(handle, &context));
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = context->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
    GPUSIM_ENTER_CONTEXT(context);
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
    GPUSIM_ENTER_CONTEXT(context);
    if (!valid_flags(flags))
        return CUDA_ERROR_INVALID_VALUE;
    context->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long *id)
{
    GPUSIM_ENTER_FAILED();
    struct gpusim_context *context;

    GPUSIM_TRY(context_or_current(handle, &context));
    if (!id)
        return CUDA_ERROR_INVALID_VALUE;
    *id = context->id;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int *version)
{
    GPUSIM_ENTER_FAILED();
    struct gpusim_context *context;

    GPUSIM_TRY(context_or_current(handle, &context));
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = context->api_version;
    return CUDA_SUCCESS;
}

static CUresult synchronize(struct gpusim_context *context)
{
    GPUSIM_TRY(gpusim_check_wait(NULL));
    gpusim_pools_release(context->device);
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    GPUSIM_ENTER_CONTEXT(context);
    return synchronize(context);
}

CUresult cuCtxSynchronize_v2(CUcontext handle)
{
    GPUSIM_ENTER();
    struct gpusim_context *context;

    GPUSIM_TRY(context_or_current(handle, &context));
    return synchronize(context);
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    GPUSIM_ENTER_CONTEXT(context);
    if ((int)limit < 0 || limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (value > context->limits[limit])
        GPUSIM_TRY(gpusim_object_take(&context->base, context->device, GPUSIM_TAKES_LIMIT));
    context->limits[limit] = value;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
    GPUSIM_ENTER_CONTEXT(context);
    if ((int)limit < 0 || limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    *value = context->limits[limit];
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
    GPUSIM_ENTER_CONTEXT(context);
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    *config = context->cache_config;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
    GPUSIM_ENTER_CONTEXT(context);
    context->cache_config = config;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
    GPUSIM_ENTER_CONTEXT(context);
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    *config = context->shared_config;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
    GPUSIM_ENTER_CONTEXT(context);
    context->shared_config = config;
    return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache(void)
{
    GPUSIM_ENTER_CONTEXT(context);
    (void)context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    GPUSIM_ENTER_CONTEXT(context);
    (void)context;
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned int flags)
{
    GPUSIM_ENTER_CONTEXT(context);
    struct gpusim_context *peer = gpusim_context_of(handle);

    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!peer || peer->device == context->device)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context->peers & 1u << peer->device->ordinal)
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    context->peers |= 1u << peer->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext handle)
{
    GPUSIM_ENTER_CONTEXT(context);
    struct gpusim_context *peer = gpusim_context_of(handle);

    if (!peer)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!(context->peers & 1u << peer->device->ordinal))
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    context->peers &= ~(1u << peer->device->ordinal);
    return CUDA_SUCCESS;
}
