/*
 * Random program: the program's own contexts, the primary context, and the ends of both, which end
 * the lives in them.
 */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include "random.h"

CUresult cuCtxCreate_v1(CUcontext *, unsigned, CUdevice) __asm__("cuCtxCreate");
CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);
CUresult cuCtxCreate_v3(CUcontext *, void *, int, unsigned, CUdevice);
CUresult cuCtxDestroy_v1(CUcontext) __asm__("cuCtxDestroy");
CUresult cuCtxPushCurrent_v1(CUcontext) __asm__("cuCtxPushCurrent");
CUresult cuCtxPopCurrent_v1(CUcontext *) __asm__("cuCtxPopCurrent");
CUresult cuCtxGetDevice_v1(CUdevice *) __asm__("cuCtxGetDevice");
CUresult cuCtxGetDevice_v2(CUdevice *, CUcontext);
CUresult cuEventDestroy_v1(CUevent) __asm__("cuEventDestroy");
CUresult cuStreamDestroy_v1(CUstream) __asm__("cuStreamDestroy");
CUresult cuDeviceTotalMem_v1(unsigned *, CUdevice) __asm__("cuDeviceTotalMem");
CUresult cuDevicePrimaryCtxRelease_v1(CUdevice) __asm__("cuDevicePrimaryCtxRelease");
CUresult cuDevicePrimaryCtxReset_v1(CUdevice) __asm__("cuDevicePrimaryCtxReset");

static CUcontext create_context(void)
{
    CUcontext context = NULL;
    const CUdevice device = current_device();
    switch (pick(4)) {
    case 0:
        LOG_AS("cuCtxCreate", cuCtxCreate_v1(&context, 0, device));
        break;
    case 1:
        LOG(cuCtxCreate_v2(&context, 0, device));
        break;
    case 2:
        LOG(cuCtxCreate_v3(&context, NULL, 0, 0, device));
        break;
    default:
        LOG(cuCtxCreate_v4(&context, NULL, 0, device));
    }
    return context;
}

int destroy_context(CUcontext context)
{
    return pick(2) ? LOG(cuCtxDestroy(context)) : LOG_AS("cuCtxDestroy", cuCtxDestroy_v1(context));
}

/* Something of each family in the current context. Frees some of it and leaves the rest to the end
 * of the context, but keeps objects that outlive a context. */
static void fill_context(void)
{
    CUdeviceptr linear = 0, managed = 0, ordered = 0;
    CUarray array;
    CUstream stream = NULL;
    CUevent event;
    CUmodule module;
    void *pinned = NULL;
    const CUDA_ARRAY_DESCRIPTOR shape = {1 + pick(100), pick(9), CU_AD_FORMAT_FLOAT, 2};
    LOG(cuMemAlloc(&linear, random_size()));
    LOG(cuMemAllocHost(&pinned, random_size()));
    LOG(cuMemAllocManaged(&managed, random_size(), CU_MEM_ATTACH_GLOBAL));
    LOG(cuArrayCreate(&array, &shape));
    if (pick(2))
        map_tiles(1);
    LOG(cuModuleLoadData(&module, "an image"));
    pick(2) ? LOG(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))
            : LOG(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
    if (LOG(cuMemAllocAsync(&ordered, random_size(), stream)) == 0)
        keep((struct object){.family = LINEAR, .pointer = (void *)ordered});
    if (LOG(cuEventCreate(&event, 0)) == 0 && pick(2))
        pick(2) ? LOG(cuEventDestroy(event)) : LOG_AS("cuEventDestroy", cuEventDestroy_v1(event));
    if (linear && pick(2))
        LOG(cuMemsetD8Async(linear, 1, 1, stream));
    if (pick(2))
        LOG(cuMemFree(linear));
    if (pick(3) == 0)
        pick(2) ? LOG(cuStreamDestroy(stream))
                : LOG_AS("cuStreamDestroy", cuStreamDestroy_v1(stream));
}

static void use_own_context(void)
{
    CUcontext popped, attached;
    CUdevice device;
    const CUcontext context = create_context();
    if (!context)
        return;
    fill_context();
    if (pick(3) == 0 && LOG(cuCtxAttach(&attached, 0)) == 0)
        LOG(cuCtxDetach(attached)); /* one of two references */
    LOG_AS("cuCtxGetDevice", cuCtxGetDevice_v1(&device));
    LOG(cuCtxGetDevice_v2(&device, context));
    if (pick(4) == 0) {
        LOG(cuCtxDetach(context)); /* the last: destroys it, and it is no longer current */
        return;
    }
    pick(2) ? LOG(cuCtxPopCurrent(&popped))
            : LOG_AS("cuCtxPopCurrent", cuCtxPopCurrent_v1(&popped));
    if (pick(2))
        destroy_context(context);
    else
        keep((struct object){.family = CONTEXT, .pointer = context});
}

/* Returns to an earlier context and does more in it. */
static void reuse_context(CUcontext context)
{
    CUcontext popped;
    CUdeviceptr address;
    if ((pick(2) ? LOG(cuCtxPushCurrent(context))
                 : LOG_AS("cuCtxPushCurrent", cuCtxPushCurrent_v1(context))) != 0)
        return;
    LOG(cuMemAlloc(&address, random_size()));
    LOG(cuCtxPopCurrent(&popped));
}

/* The runtime's context through the driver: takes one more reference, and gives it back. */
static void use_primary(void)
{
    CUcontext primary, current;
    CUdeviceptr address;
    const CUdevice device = (CUdevice)pick((unsigned)device_count);
    if (LOG(cuDevicePrimaryCtxRetain(&primary, device)) != 0)
        return;
    LOG(cuCtxPushCurrent(primary));
    if (LOG(cuMemAlloc(&address, random_size())) == 0)
        keep_on(device,
                (struct object){.family = LINEAR, .pointer = (void *)address, .in_context = 1});
    LOG(cuCtxPopCurrent(&current));
    LOG(cuCtxGetCurrent(&current));
    LOG(cuCtxSetCurrent(current));
    pick(2) ? LOG(cuDevicePrimaryCtxRelease(device))
            : LOG_AS("cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease_v1(device));
}

/* A share of the primary context, which holds it as a reference of its own does. */
static void use_green(void)
{
    CUcontext converted, popped;
    CUgreenCtx green;
    CUdevResource all, shares[2];
    CUdevResourceDesc description;
    CUstream stream;
    CUdeviceptr address;
    unsigned groups = 1 + pick(2);
    const int device = current_device();
    if (LOG(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM)) != 0 ||
        LOG(cuDevSmResourceSplitByCount(shares, &groups, &all, NULL, 0, pick(20))) != 0 ||
        LOG(cuDevResourceGenerateDesc(&description, shares, groups)) != 0 ||
        LOG(cuGreenCtxCreate(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM)) != 0)
        return;
    if (pick(4) && LOG(cuCtxFromGreenCtx(&converted, green)) == 0) {
        LOG(cuCtxPushCurrent(converted));
        if (LOG(cuMemAlloc(&address, random_size())) == 0)
            keep_on(device,
                    (struct object){.family = LINEAR, .pointer = (void *)address, .in_context = 1});
        if (pick(4) == 0)
            LOG(cuCtxDestroy(converted)); /* refused */
        LOG(cuCtxPopCurrent(&popped));
    }
    if (LOG(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0)) == 0) {
        if (LOG(cuMemAllocAsync(&address, random_size(), stream)) == 0)
            keep_on(device, (struct object){.family = LINEAR, .pointer = (void *)address});
        LOG(cuStreamDestroy(stream));
    }
    LOG(cuGreenCtxDestroy(green));
}

static void ask_and_limit(void)
{
    char name[64];
    size_t bytes;
    unsigned old_bytes;
    const int device = (int)pick((unsigned)device_count);
    switch (pick(6)) {
    case 0:
        LOG(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, (size_t)1024 << pick(4)));
        break;
    case 1:
        LOG(cudaDeviceSetLimit(cudaLimitMallocHeapSize, (size_t)1 << 20 << pick(4)));
        break;
    case 2:
        LOG(cudaInitDevice(device, 0, 0));
        break;
    case 3:
        LOG(cuDeviceTotalMem(&bytes, device));
        break;
    case 4:
        LOG_AS("cuDeviceTotalMem", cuDeviceTotalMem_v1(&old_bytes, device));
        break;
    default:
        LOG(cuDeviceGetName(name, sizeof(name), device));
    }
}

#ifndef RACING
/* Drops the last reference. The next one gets a new context with the old handle, which the runtime
 * goes on using. */
static void release_primary(int device)
{
    CUcontext primary;
    pick(2) ? LOG(cuDevicePrimaryCtxRelease(device))
            : LOG_AS("cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease_v1(device));
    /* The runtime has no other reference: a refusal must not be the last word. */
    while (LOG(cuDevicePrimaryCtxRetain(&primary, device)) == CUDA_ERROR_OUT_OF_MEMORY && pick(16))
        ;
}

static void reset_primary(int device)
{
    switch (pick(4)) {
    case 0:
        LOG(cuDevicePrimaryCtxReset(device));
        break;
    case 1:
        LOG_AS("cuDevicePrimaryCtxReset", cuDevicePrimaryCtxReset_v1(device));
        break;
    default:
        break;
    }
    LOG(cudaDeviceReset());
}

/* Everything of the primary context dies, except pools, graphs, VMM and memory of other owners. */
static void end_primary(void)
{
    const int device = current_device();
    for (int i = object_count; i-- > 0;)
        if (objects[i].in_context && objects[i].device == device)
            forget(i);
    pick(3) ? reset_primary(device) : release_primary(device);
    LOG(cudaSetDevice(device));
    create_streams_of(device);
}
#endif

void context_step(void)
{
    const int index = find(CONTEXT);
    switch (pick(14)) {
    case 0:
    case 1:
        use_own_context();
        break;
    case 12:
    case 13:
        use_green();
        break;
    case 2:
    case 3:
        use_primary();
        break;
    case 4:
        if (index >= 0)
            reuse_context(objects[index].pointer);
        break;
    case 5:
    case 6:
        ask_and_limit();
        break;
#ifndef RACING
    case 7:
        if (pick(3) == 0)
            end_primary();
        break;
#endif
    default:
        LOG(cudaSetDevice((int)pick((unsigned)device_count)));
    }
}
