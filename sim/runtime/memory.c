/*
 * Linear device memory, managed memory, page-locked host memory, and questions about pointers.
 *
 * A call that asks for bytes always reaches the driver, which alone decides and counts. Asking for
 * no bytes gives NULL and success, as the runtime documents.
 */
#include "runtime.h"

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    if (!pointer)
        return gpusim_fail(cudaErrorInvalidValue);
    if (!gpusim_enter())
        return gpusim_refusal();
    if (bytes == 0) {
        *pointer = NULL;
        return cudaSuccess;
    }
    return gpusim_finish(DRIVER(cuMemAlloc, 3020)(gpusim_out(pointer), bytes));
}

/* Rows start at multiples that suit 4-byte elements; the driver chooses the pitch. */
static CUresult allocate_pitched(void **pointer, size_t *pitch, size_t width, size_t height)
{
    return DRIVER(cuMemAllocPitch, 3020)(gpusim_out(pointer), pitch, width, height, 4);
}

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
    if (!pointer || !pitch)
        return gpusim_fail(cudaErrorInvalidValue);
    if (!gpusim_enter())
        return gpusim_refusal();
    if (width == 0 || height == 0) {
        *pointer = NULL;
        *pitch = 0;
        return cudaSuccess;
    }
    return gpusim_finish(allocate_pitched(pointer, pitch, width, height));
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitched, struct cudaExtent extent)
{
    if (!pitched)
        return gpusim_fail(cudaErrorInvalidValue);
    if (!gpusim_enter())
        return gpusim_refusal();
    size_t rows = 0;
    if (__builtin_mul_overflow(extent.height, extent.depth, &rows))
        rows = SIZE_MAX; /* more than any device has: the driver refuses and counts it */
    *pitched = (struct cudaPitchedPtr){.xsize = extent.width, .ysize = extent.height};
    if (extent.width == 0 || rows == 0)
        return cudaSuccess;
    return gpusim_finish(allocate_pitched(&pitched->ptr, &pitched->pitch, extent.width, rows));
}

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned int flags)
{
    if (!pointer)
        return gpusim_fail(cudaErrorInvalidValue);
    return CALL(cuMemAllocManaged, 6000, gpusim_out(pointer), bytes, flags);
}

/* cudaFree(NULL) is how programs initialise the runtime: it makes a context. */
cudaError_t cudaFree(void *pointer)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    if (!pointer)
        return cudaSuccess;
    return gpusim_finish(DRIVER(cuMemFree, 3020)(gpusim_device_address(pointer)));
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
    if (!pointer)
        return gpusim_fail(cudaErrorInvalidValue);
    if (!gpusim_enter())
        return gpusim_refusal();
    if (bytes == 0) {
        *pointer = NULL;
        return cudaSuccess;
    }
    return gpusim_finish(DRIVER(cuMemHostAlloc, 2020)(pointer, bytes, flags));
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes)
{
    return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void *pointer)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    if (!pointer)
        return cudaSuccess;
    return gpusim_finish(DRIVER(cuMemFreeHost, 2000)(pointer));
}

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned int flags)
{
    return CALL(cuMemHostRegister, 6050, pointer, bytes, flags);
}

cudaError_t cudaHostUnregister(void *pointer)
{
    return CALL(cuMemHostUnregister, 4000, pointer);
}

cudaError_t cudaHostGetDevicePointer(void **device_pointer, void *host_pointer, unsigned int flags)
{
    if (!device_pointer)
        return gpusim_fail(cudaErrorInvalidValue);
    return CALL(cuMemHostGetDevicePointer, 3020, gpusim_out(device_pointer), host_pointer, flags);
}

cudaError_t cudaHostGetFlags(unsigned int *flags, void *pointer)
{
    return CALL(cuMemHostGetFlags, 2030, flags, pointer);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    return CALL(cuMemGetInfo, 3020, free_bytes, total_bytes);
}

/* Memory unknown to the driver is an answer (unregistered), not an error. */
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
    if (!attributes)
        return gpusim_fail(cudaErrorInvalidValue);
    CUmemorytype type = 0;
    CUdeviceptr device_pointer = 0;
    void *host_pointer = NULL;
    int managed = 0;
    int device = cudaInvalidDeviceId;
    CUpointer_attribute wanted[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER, CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&type, &device_pointer, &host_pointer, &managed, &device};
    cudaError_t error = CALL(cuPointerGetAttributes, 7000, sizeof wanted / sizeof wanted[0], wanted,
                             values, gpusim_device_address(pointer));
    if (error != cudaSuccess)
        return error;
    /* Programs for CUDA 12 have a shorter structure, without what is reserved. */
    if (GPUSIM_CUDART_MAJOR >= 13)
        *attributes = (struct cudaPointerAttributes){0};
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = cudaInvalidDeviceId;
    attributes->devicePointer = NULL;
    attributes->hostPointer = (void *)(uintptr_t)pointer;
    if (type == 0)
        return cudaSuccess;
    attributes->type = managed                      ? cudaMemoryTypeManaged
                       : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                                    : cudaMemoryTypeDevice;
    attributes->device = device;
    attributes->devicePointer = gpusim_pointer(device_pointer);
    attributes->hostPointer = host_pointer;
    return cudaSuccess;
}

cudaError_t cudaMemRangeGetAttribute(void *data, size_t data_bytes,
                                     enum cudaMemRangeAttribute attribute, const void *pointer,
                                     size_t bytes)
{
    return CALL(cuMemRangeGetAttribute, 8000, data, data_bytes, (CUmem_range_attribute)attribute,
                gpusim_device_address(pointer), bytes);
}

cudaError_t cudaMemRangeGetAttributes(void **data, size_t *data_bytes,
                                      enum cudaMemRangeAttribute *attributes, size_t count,
                                      const void *pointer, size_t bytes)
{
    return CALL(cuMemRangeGetAttributes, 8000, data, data_bytes,
                (CUmem_range_attribute *)attributes, count, gpusim_device_address(pointer), bytes);
}
