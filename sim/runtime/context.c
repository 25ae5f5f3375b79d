/*
 * Finds the device and the context that a call means.
 *
 * Like the real runtime, a thread starts on device 0 without a context; the first call that needs
 * one retains the primary context of the thread's device and makes it current. A context that the
 * program made current itself through the driver API is used as it is. The process holds one retain
 * per device. cudaDeviceReset gives it back, and a generation number shows the other threads that
 * the context they had made current is gone.
 */
#include "runtime.h"
#include <pthread.h>
#include <stdatomic.h>

#define MAX_DEVICES 64

struct primary {
    CUcontext context; /* NULL: not retained */
    atomic_uint generation;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct primary primaries[MAX_DEVICES]; /* context under lock */
static atomic_bool unloading;

static _Thread_local struct {
    int device;      /* the device selected */
    CUcontext bound; /* the primary context this file made current, and of which device */
    int bound_device;
    unsigned generation; /* of that device when it was bound */
} thread;

/* Runs after the program's own exit handlers; a later call gets cudaErrorCudartUnloading. */
__attribute__((destructor)) static void unload(void)
{
    atomic_store(&unloading, true);
}

bool gpusim_enter_without_context(void)
{
    cudaError_t error = atomic_load(&unloading) ? cudaErrorCudartUnloading : gpusim_driver_open();
    if (error == cudaSuccess)
        return true;
    gpusim_fail(error);
    return false;
}

cudaError_t gpusim_refusal(void)
{
    return cudaPeekAtLastError();
}

CUcontext gpusim_current_context(void)
{
    CUcontext context = NULL;
    DRIVER(cuCtxGetCurrent, 4000)(&context);
    return context;
}

/* False when the context was made current here and its device has been reset since. */
static bool still_valid(CUcontext context)
{
    return context != thread.bound ||
           thread.generation == atomic_load(&primaries[thread.bound_device].generation);
}

static cudaError_t retain_primary(int device, CUcontext *context, unsigned *generation)
{
    int count = 0;
    CUresult result = DRIVER(cuDeviceGetCount, 2000)(&count);
    if (result != CUDA_SUCCESS)
        return (cudaError_t)result;
    if (device < 0 || device >= count || device >= MAX_DEVICES)
        return cudaErrorInvalidDevice;

    pthread_mutex_lock(&lock);
    struct primary *primary = &primaries[device];
    if (!primary->context) {
        CUdevice handle = 0;
        result = DRIVER(cuDeviceGet, 2000)(&handle, device);
        if (result == CUDA_SUCCESS)
            result = DRIVER(cuDevicePrimaryCtxRetain, 7000)(&primary->context, handle);
    }
    *context = primary->context;
    *generation = atomic_load(&primary->generation);
    pthread_mutex_unlock(&lock);
    return (cudaError_t)result;
}

cudaError_t gpusim_primary_context(int device, CUcontext *context)
{
    unsigned generation;
    return retain_primary(device, context, &generation);
}

static cudaError_t bind_primary(int device)
{
    CUcontext context = NULL;
    unsigned generation = 0;
    cudaError_t error = retain_primary(device, &context, &generation);
    if (error == cudaSuccess)
        error = (cudaError_t)DRIVER(cuCtxSetCurrent, 4000)(context);
    if (error != cudaSuccess)
        return error;
    thread.bound = context;
    thread.bound_device = device;
    thread.generation = generation;
    return cudaSuccess;
}

bool gpusim_enter(void)
{
    if (!gpusim_enter_without_context())
        return false;
    CUcontext context = gpusim_current_context();
    if (context && still_valid(context))
        return true;
    cudaError_t error = bind_primary(thread.device);
    if (error == cudaSuccess)
        return true;
    gpusim_fail(error);
    return false;
}

int gpusim_current_device(void)
{
    CUcontext context = gpusim_current_context();
    CUdevice device = 0;
    if (context && still_valid(context) && DRIVER(cuCtxGetDevice, 2000)(&device) == CUDA_SUCCESS)
        return device;
    return thread.device;
}

cudaError_t cudaSetDevice(int device)
{
    if (!gpusim_enter_without_context())
        return gpusim_refusal();
    cudaError_t error = bind_primary(device);
    if (error != cudaSuccess)
        return gpusim_fail(error);
    thread.device = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    if (!device)
        return gpusim_fail(cudaErrorInvalidValue);
    if (!gpusim_enter_without_context())
        return gpusim_refusal();
    *device = gpusim_current_device();
    return cudaSuccess;
}

cudaError_t cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags)
{
    if (flags & ~(unsigned)cudaInitDeviceFlagsAreValid)
        return gpusim_fail(cudaErrorInvalidValue);
    if (!gpusim_enter_without_context())
        return gpusim_refusal();
    if (flags & cudaInitDeviceFlagsAreValid) {
        CUresult result = DRIVER(cuDevicePrimaryCtxSetFlags, 11000)(device, deviceFlags);
        if (result != CUDA_SUCCESS)
            return gpusim_finish(result);
    }
    CUcontext context = NULL;
    cudaError_t error = gpusim_primary_context(device, &context);
    return error == cudaSuccess ? cudaSuccess : gpusim_fail(error);
}

cudaError_t cudaDeviceReset(void)
{
    if (!gpusim_enter_without_context())
        return gpusim_refusal();
    int device = gpusim_current_device();
    if (device < 0 || device >= MAX_DEVICES)
        return gpusim_fail(cudaErrorInvalidDevice);

    pthread_mutex_lock(&lock);
    struct primary *primary = &primaries[device];
    bool retained = primary->context != NULL;
    primary->context = NULL;
    atomic_fetch_add(&primary->generation, 1);
    CUresult result = DRIVER(cuDevicePrimaryCtxReset, 11000)(device);
    if (retained)
        DRIVER(cuDevicePrimaryCtxRelease, 11000)(device);
    pthread_mutex_unlock(&lock);

    if (thread.bound && thread.bound_device == device) {
        DRIVER(cuCtxSetCurrent, 4000)(NULL);
        thread.bound = NULL;
    }
    return gpusim_finish(result);
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
    return gpusim_enter_without_context() ? gpusim_finish(DRIVER(cuDevicePrimaryCtxSetFlags, 11000)(
                                                gpusim_current_device(), flags))
                                          : gpusim_refusal();
}

cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
    int active = 0;
    return gpusim_enter_without_context() ? gpusim_finish(DRIVER(cuDevicePrimaryCtxGetState, 7000)(
                                                gpusim_current_device(), flags, &active))
                                          : gpusim_refusal();
}

cudaError_t cudaDeviceSynchronize(void)
{
    return CALL(cuCtxSynchronize, 2000);
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    return CALL(cuCtxSetLimit, 3010, (CUlimit)limit, value);
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
    return CALL(cuCtxGetLimit, 3010, value, (CUlimit)limit);
}

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config)
{
    CUfunc_cache value = CU_FUNC_CACHE_PREFER_NONE;
    cudaError_t error = CALL(cuCtxGetCacheConfig, 3020, &value);
    if (error == cudaSuccess)
        *config = (enum cudaFuncCache)value;
    return error;
}

cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config)
{
    return CALL(cuCtxSetCacheConfig, 3020, (CUfunc_cache)config);
}

cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config)
{
    return CALL(cuCtxGetSharedMemConfig, 4020, (CUsharedconfig *)(void *)config);
}

cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
    return CALL(cuCtxSetSharedMemConfig, 4020, (CUsharedconfig)config);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    return CALL(cuCtxGetStreamPriorityRange, 5050, least, greatest);
}

cudaError_t cudaCtxResetPersistingL2Cache(void)
{
    return CALL(cuCtxResetPersistingL2Cache, 11000);
}
