/*
 * Queries about an address: cuPointerGetAttribute and its relatives. Answers have the sizes that
 * the header documents.
 */
#include "memory.h"
#include "vmm.h"

#include <string.h>

static bool is_host_memory(const struct gpusim_allocation *allocation)
{
    return gpusim_allocation_place(allocation) == GPUSIM_PLACE_HOST ||
           (allocation->origin == GPUSIM_FROM_MAPPING && !allocation->physical->device);
}

static uint64_t allowed_handle_types(const struct gpusim_allocation *allocation)
{
    if (allocation->origin == GPUSIM_FROM_MAPPING)
        return (uint64_t)allocation->physical->properties.requestedHandleTypes;
    return allocation->origin == GPUSIM_FROM_POOL ? (uint64_t)allocation->pool->handle_types : 0;
}

static void answer_attribute(void *data, const void *value, size_t size)
{
    memcpy(data, value, size);
}

#define ANSWER(type, value)                                                                        \
    do {                                                                                           \
        type answer_ = (value);                                                                    \
        answer_attribute(data, &answer_, sizeof(answer_));                                         \
        return CUDA_SUCCESS;                                                                       \
    } while (0)

static CUresult attribute_of(const struct gpusim_allocation *allocation,
                             CUpointer_attribute attribute, CUdeviceptr pointer, void *data)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        ANSWER(CUcontext,
               allocation->context ? GPUSIM_HANDLE(CUcontext, allocation->context) : NULL);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        ANSWER(unsigned int,
               is_host_memory(allocation) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        ANSWER(CUdeviceptr, pointer);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!is_host_memory(allocation) &&
            gpusim_allocation_place(allocation) != GPUSIM_PLACE_MANAGED)
            return CUDA_ERROR_INVALID_VALUE;
        ANSWER(void *, (void *)(uintptr_t)pointer);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        ANSWER(int, allocation->sync_memops);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        ANSWER(uint64_t, allocation->id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        ANSWER(unsigned int, gpusim_allocation_place(allocation) == GPUSIM_PLACE_MANAGED ||
                                 (allocation->origin == GPUSIM_FROM_MODULE && allocation->flags));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        ANSWER(int, allocation->device->ordinal);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        ANSWER(unsigned int, allocation->origin == GPUSIM_FROM_LINEAR);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        ANSWER(CUdeviceptr, allocation->range.start);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        ANSWER(size_t, allocation->range.size);
    case CU_POINTER_ATTRIBUTE_MAPPED:
        ANSWER(unsigned int, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        ANSWER(uint64_t, allowed_handle_types(allocation));
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        ANSWER(unsigned int, 0);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        ANSWER(unsigned int, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        ANSWER(CUmemoryPool,
               allocation->pool ? GPUSIM_HANDLE(CUmemoryPool, allocation->pool) : NULL);
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr pointer)
{
    GPUSIM_ENTER();
    struct gpusim_allocation *allocation = gpusim_allocation_at(pointer);

    if (!data || !allocation)
        return CUDA_ERROR_INVALID_VALUE;
    return attribute_of(allocation, attribute, pointer, data);
}

/* The answers to a query of several attributes for an address that CUDA does not know. */
static CUresult attribute_of_nothing(CUpointer_attribute attribute, void *data)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        ANSWER(uint64_t, 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        ANSWER(int, CU_DEVICE_INVALID);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        ANSWER(unsigned int, 0);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr pointer)
{
    GPUSIM_ENTER();
    struct gpusim_allocation *allocation = gpusim_allocation_at(pointer);

    if (count == 0 || !attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < count; i++) {
        CUresult result = allocation ? attribute_of(allocation, attributes[i], pointer, data[i])
                                     : attribute_of_nothing(attributes[i], data[i]);

        /* An attribute that this memory does not have is NULL here, not an error. */
        if (result != CUDA_SUCCESS)
            GPUSIM_TRY(attribute_of_nothing(attributes[i], data[i]));
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                               CUdeviceptr pointer)
{
    GPUSIM_ENTER();
    struct gpusim_allocation *allocation = gpusim_allocation_from(pointer);

    if (!value || !allocation || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&allocation->sync_memops, value, sizeof(allocation->sync_memops));
    return CUDA_SUCCESS;
}
