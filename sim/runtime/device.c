/*
 * Devices: their number, their properties, and the runtime's answers about versions and driver
 * entry points. Nothing here creates a context.
 */
#include "runtime.h"
#include <cuda_profiler_api.h>

cudaError_t cudaGetDeviceCount(int *count)
{
    if (!count)
        return gpusim_fail(cudaErrorInvalidValue);
    *count = 0;
    cudaError_t error = CALL_WITHOUT_CONTEXT(cuDeviceGetCount, 2000, count);
    if (error == cudaSuccess && *count == 0)
        return gpusim_fail(cudaErrorNoDevice);
    return error;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    return CALL_WITHOUT_CONTEXT(cuDeviceGetAttribute, 2000, value, (CUdevice_attribute)attribute,
                                device);
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *bus_id)
{
    return CALL_WITHOUT_CONTEXT(cuDeviceGetByPCIBusId, 4010, device, bus_id);
}

cudaError_t cudaDeviceGetPCIBusId(char *bus_id, int length, int device)
{
    return CALL_WITHOUT_CONTEXT(cuDeviceGetPCIBusId, 4010, bus_id, length, device);
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int source,
                                      int destination)
{
    return CALL_WITHOUT_CONTEXT(cuDeviceGetP2PAttribute, 8000, value,
                                (CUdevice_P2PAttribute)attribute, source, destination);
}

cudaError_t cudaDeviceCanAccessPeer(int *can_access, int device, int peer)
{
    return CALL_WITHOUT_CONTEXT(cuDeviceCanAccessPeer, 4000, can_access, device, peer);
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *elements,
                                                 const struct cudaChannelFormatDesc *channels,
                                                 int device)
{
    CUarray_format format;
    unsigned channel_count;
    cudaError_t error = gpusim_array_format(channels, &format, &channel_count);
    if (error != cudaSuccess)
        return gpusim_fail(error);
    return CALL_WITHOUT_CONTEXT(cuDeviceGetTexture1DLinearMaxWidth, 11010, elements, format,
                                channel_count, device);
}

cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(enum cudaFlushGPUDirectRDMAWritesTarget target,
                                               enum cudaFlushGPUDirectRDMAWritesScope scope)
{
    return CALL(cuFlushGPUDirectRDMAWrites, 11030, (CUflushGPUDirectRDMAWritesTarget)target,
                (CUflushGPUDirectRDMAWritesScope)scope);
}

/* The first device with at least the requested memory and compute capability, else 0. */
cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *wanted)
{
    if (!device || !wanted)
        return gpusim_fail(cudaErrorInvalidValue);
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess)
        return error;
    *device = 0;
    for (int candidate = 0; candidate < count; candidate++) {
        size_t bytes = 0;
        int major = 0;
        int minor = 0;
        DRIVER(cuDeviceTotalMem, 3020)(&bytes, candidate);
        DRIVER(cuDeviceGetAttribute, 2000)
        (&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, candidate);
        DRIVER(cuDeviceGetAttribute, 2000)
        (&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, candidate);
        if (bytes >= wanted->totalGlobalMem &&
            major * 10 + minor >= wanted->major * 10 + wanted->minor) {
            *device = candidate;
            break;
        }
    }
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    if (!version)
        return gpusim_fail(cudaErrorInvalidValue);
    *version = GPUSIM_CUDART_VERSION;
    return cudaSuccess;
}

/* Without a driver the version is 0, and that is no error. */
cudaError_t cudaDriverGetVersion(int *version)
{
    if (!version)
        return gpusim_fail(cudaErrorInvalidValue);
    *version = 0;
    gpusim_driver_open();
    if (gpusim_get_proc_address)
        DRIVER(cuDriverGetVersion, 2020)(version);
    return cudaSuccess;
}

cudaError_t cudaProfilerStart(void)
{
    return CALL(cuProfilerStart, 4000);
}

cudaError_t cudaProfilerStop(void)
{
    return CALL(cuProfilerStop, 4000);
}
