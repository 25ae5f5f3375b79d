/*
 * Memory of graphs. A node has its address from its creation on; a launch gives it storage, and a
 * free returns the storage to the device's graph pool, which keeps it until cuDeviceGraphMemTrim or
 * until the device needs it.
 */
#include "graph.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>

struct gpusim_graph_memory *gpusim_graph_memory_new(struct gpusim_device *device, uint64_t size)
{
    struct gpusim_pool *pool = gpusim_graph_pool(device);
    struct gpusim_graph_memory *memory = calloc(1, sizeof(*memory));
    uint64_t address = 0;

    if (pool && memory && size <= device->capacity)
        address = gpusim_pool_take_address(pool, size);
    if (!address) {
        free(memory);
        return NULL;
    }
    *memory = (struct gpusim_graph_memory){
        .device = device, .address = address, .size = size, .references = 1};
    return memory;
}

void gpusim_graph_memory_release(struct gpusim_graph_memory *memory)
{
    if (--memory->references > 0)
        return;
    gpusim_arena_give(&memory->device->graph_pool->arena, memory->address,
                      gpusim_align_up(memory->size, GPUSIM_ARENA_ALIGNMENT));
    free(memory);
}

bool gpusim_graph_memory_commit(struct gpusim_graph_memory *memory)
{
    return gpusim_pool_commit(memory->device->graph_pool, memory->address, memory->size);
}

void gpusim_graph_memory_uncommit(struct gpusim_graph_memory *memory)
{
    gpusim_pool_uncommit(memory->device->graph_pool, memory->address, memory->size);
}

CUresult gpusim_graph_memory_allocate(struct gpusim_graph_memory *memory)
{
    struct gpusim_allocation *allocation = gpusim_allocation_add(
        GPUSIM_FROM_GRAPH, memory->address, memory->size, memory->device, NULL);

    if (!allocation)
        return CUDA_ERROR_OUT_OF_MEMORY;
    allocation->node = memory;
    memory->allocated = true;
    memory->references++;
    gpusim_allocation_count(allocation);
    return CUDA_SUCCESS;
}

void gpusim_graph_memory_freed(struct gpusim_allocation *allocation)
{
    allocation->node->allocated = false;
    gpusim_graph_memory_uncommit(allocation->node);
    gpusim_graph_memory_release(allocation->node);
}

CUresult cuDeviceGraphMemTrim(CUdevice ordinal)
{
    GPUSIM_ENTER();
    struct gpusim_device *device = gpusim_device_of(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (device->graph_pool)
        gpusim_pool_trim(device->graph_pool, 0);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute, void *value)
{
    GPUSIM_ENTER();
    struct gpusim_device *device = gpusim_device_of(ordinal);
    struct gpusim_pool *pool = device ? gpusim_graph_pool(device) : NULL;
    cuuint64_t number;

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || !pool)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
        number = pool->used;
        break;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        number = pool->used_high;
        break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
        number = pool->reserved;
        break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        number = pool->reserved_high;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(value, &number, sizeof(number));
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute, void *value)
{
    GPUSIM_ENTER();
    struct gpusim_device *device = gpusim_device_of(ordinal);
    struct gpusim_pool *pool = device ? gpusim_graph_pool(device) : NULL;
    cuuint64_t number;

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || !pool)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&number, value, sizeof(number));
    if (number != 0)
        return CUDA_ERROR_INVALID_VALUE; /* marks can be reset only */
    switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        pool->used_high = pool->used;
        return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        pool->reserved_high = pool->reserved;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}
