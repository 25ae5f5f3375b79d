/*
 * Memory pools: creation, attributes, access, sharing. Allocation from them is in stream_ordered.c.
 */
#include "runtime.h"

_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps), "same layout");
_Static_assert(offsetof(struct cudaMemPoolProps, usage) == offsetof(CUmemPoolProps, usage),
               "same layout");
_Static_assert(sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc), "same layout");
_Static_assert(sizeof(struct cudaMemLocation) == sizeof(CUmemLocation), "same layout");
_Static_assert(sizeof(struct cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData),
               "same layout");

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
    return CALL(cuMemPoolCreate, 11020, pool, (const CUmemPoolProps *)(const void *)properties);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    return CALL(cuMemPoolDestroy, 11020, pool);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes_to_keep)
{
    return CALL(cuMemPoolTrimTo, 11020, pool, bytes_to_keep);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    return CALL(cuMemPoolSetAttribute, 11020, pool, (CUmemPool_attribute)attribute, value);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    return CALL(cuMemPoolGetAttribute, 11020, pool, (CUmemPool_attribute)attribute, value);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *descriptions,
                                 size_t count)
{
    return CALL(cuMemPoolSetAccess, 11020, pool,
                (const CUmemAccessDesc *)(const void *)descriptions, count);
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
                                 struct cudaMemLocation *location)
{
    return CALL(cuMemPoolGetAccess, 11020, (CUmemAccess_flags *)(void *)flags, pool,
                (CUmemLocation *)(void *)location);
}

cudaError_t cudaMemPoolExportToShareableHandle(void *handle, cudaMemPool_t pool,
                                               enum cudaMemAllocationHandleType type,
                                               unsigned int flags)
{
    return CALL(cuMemPoolExportToShareableHandle, 11020, handle, pool,
                (CUmemAllocationHandleType)type, flags);
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *handle,
                                                 enum cudaMemAllocationHandleType type,
                                                 unsigned int flags)
{
    return CALL(cuMemPoolImportFromShareableHandle, 11020, pool, handle,
                (CUmemAllocationHandleType)type, flags);
}

cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *data, void *pointer)
{
    return CALL(cuMemPoolExportPointer, 11020, (CUmemPoolPtrExportData *)(void *)data,
                gpusim_device_address(pointer));
}

cudaError_t cudaMemPoolImportPointer(void **pointer, cudaMemPool_t pool,
                                     struct cudaMemPoolPtrExportData *data)
{
    return CALL(cuMemPoolImportPointer, 11020, gpusim_out(pointer), pool,
                (CUmemPoolPtrExportData *)(void *)data);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    return CALL_WITHOUT_CONTEXT(cuDeviceGetDefaultMemPool, 11020, pool, device);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
    return CALL_WITHOUT_CONTEXT(cuDeviceGetMemPool, 11020, pool, device);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
    return CALL_WITHOUT_CONTEXT(cuDeviceSetMemPool, 11020, device, pool);
}

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *pool, struct cudaMemLocation *location,
                                     enum cudaMemAllocationType type)
{
    return CALL(cuMemGetDefaultMemPool, 13000, pool, (CUmemLocation *)(void *)location,
                (CUmemAllocationType)type);
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t *pool, struct cudaMemLocation *location,
                              enum cudaMemAllocationType type)
{
    return CALL(cuMemGetMemPool, 13000, pool, (CUmemLocation *)(void *)location,
                (CUmemAllocationType)type);
}

cudaError_t cudaMemSetMemPool(struct cudaMemLocation *location, enum cudaMemAllocationType type,
                              cudaMemPool_t pool)
{
    return CALL(cuMemSetMemPool, 13000, (CUmemLocation *)(void *)location,
                (CUmemAllocationType)type, pool);
}
