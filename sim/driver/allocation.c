/*
 * The table of everything that has an address in this process, whatever made it, and the one place
 * where a life ends (gpusim_allocation_free), so that every free function means the same.
 */
#include "contents.h"
#include "memory.h"
#include "vmm.h"

#include <stdlib.h>

static struct gpusim_ranges table;
static uint64_t last_id;

struct gpusim_allocation *gpusim_allocation_add(enum gpusim_origin origin, uint64_t address,
                                                uint64_t size, struct gpusim_device *device,
                                                struct gpusim_context *context)
{
    struct gpusim_allocation *allocation = calloc(1, sizeof(*allocation));

    if (!allocation)
        return NULL;
    allocation->range.start = address;
    allocation->range.size = size;
    allocation->origin = origin;
    allocation->counted = size;
    allocation->id = ++last_id;
    allocation->device = device;
    allocation->context = context;
    gpusim_ranges_insert(&table, &allocation->range);
    return allocation;
}

void gpusim_allocation_drop(struct gpusim_allocation *allocation)
{
    gpusim_ranges_remove(&table, &allocation->range);
    free(allocation);
}

struct gpusim_allocation *gpusim_allocation_at(uint64_t address)
{
    return (struct gpusim_allocation *)gpusim_ranges_find(&table, address);
}

struct gpusim_allocation *gpusim_allocation_from(uint64_t address)
{
    struct gpusim_allocation *allocation = gpusim_allocation_at(address);

    return allocation && allocation->range.start == address ? allocation : NULL;
}

struct gpusim_allocation *gpusim_allocation_next(uint64_t address)
{
    return (struct gpusim_allocation *)gpusim_ranges_ceiling(&table, address);
}

bool gpusim_allocation_overlaps(uint64_t address, uint64_t size)
{
    struct gpusim_allocation *above = gpusim_allocation_next(address);

    return gpusim_allocation_at(address) || (above && above->range.start - address < size);
}

static enum gpusim_device_kind kind_of_pool_memory(const struct gpusim_allocation *allocation)
{
    if (gpusim_allocation_place(allocation) == GPUSIM_PLACE_MANAGED)
        return GPUSIM_MANAGED;
    return allocation->origin == GPUSIM_FROM_GRAPH ? GPUSIM_GRAPH : GPUSIM_DEVICE;
}

void gpusim_allocation_count(const struct gpusim_allocation *allocation)
{
    uint64_t bytes = allocation->counted;

    if (gpusim_allocation_place(allocation) == GPUSIM_PLACE_HOST)
        gpusim_count_host_alloc(GPUSIM_PINNED, bytes);
    else
        gpusim_count_alloc(allocation->device, kind_of_pool_memory(allocation), bytes);
}

static void count_free(const struct gpusim_allocation *allocation, bool implicit)
{
    const struct gpusim_device *device = allocation->device;
    uint64_t bytes = allocation->counted;

    switch (allocation->origin) {
    case GPUSIM_FROM_LINEAR:
        gpusim_count_free(device, GPUSIM_DEVICE, bytes, implicit);
        break;
    case GPUSIM_FROM_POOL:
    case GPUSIM_FROM_GRAPH:
        if (gpusim_allocation_place(allocation) == GPUSIM_PLACE_HOST)
            gpusim_count_host_free(GPUSIM_PINNED, bytes, implicit);
        else
            gpusim_count_free(device, kind_of_pool_memory(allocation), bytes, implicit);
        break;
    case GPUSIM_FROM_MANAGED:
        gpusim_count_free(device, GPUSIM_MANAGED, bytes, implicit);
        break;
    case GPUSIM_FROM_IPC:
    case GPUSIM_FROM_POOL_IMPORT:
    case GPUSIM_FROM_EXTERNAL:
        gpusim_count_free(device, GPUSIM_EXTERNAL, bytes, implicit);
        break;
    case GPUSIM_FROM_HOST_ALLOC:
        gpusim_count_host_free(GPUSIM_PINNED, bytes, implicit);
        break;
    case GPUSIM_FROM_HOST_REGISTER:
        gpusim_count_host_free(GPUSIM_REGISTERED, bytes, implicit);
        break;
    case GPUSIM_FROM_MODULE:
    case GPUSIM_FROM_MAPPING:
        break;
    }
}

static void give_back_memory(struct gpusim_allocation *allocation)
{
    uint64_t address = allocation->range.start, size = allocation->range.size;

    switch (allocation->origin) {
    case GPUSIM_FROM_LINEAR:
        gpusim_linear_give(allocation->device, address, size);
        break;
    case GPUSIM_FROM_MODULE:
        if (allocation->flags) /* a managed variable */
            gpusim_managed_give(address, size);
        else
            gpusim_linear_give(allocation->device, address, size);
        break;
    case GPUSIM_FROM_MANAGED:
        gpusim_managed_give(address, size);
        break;
    case GPUSIM_FROM_POOL:
        gpusim_pool_free(allocation->pool, address, size);
        break;
    case GPUSIM_FROM_POOL_IMPORT:
        allocation->pool->live--;
        gpusim_pool_drop_if_unused(allocation->pool);
        break;
    case GPUSIM_FROM_GRAPH:
        gpusim_graph_memory_freed(allocation);
        break;
    case GPUSIM_FROM_HOST_ALLOC:
        gpusim_host_give(address, size);
        break;
    case GPUSIM_FROM_IPC:
    case GPUSIM_FROM_EXTERNAL:
        gpusim_unmap_external(allocation->mapped_at, allocation->mapped_size);
        break;
    case GPUSIM_FROM_HOST_REGISTER:
    case GPUSIM_FROM_MAPPING: /* unmapped by cuMemUnmap alone */
        break;
    }
}

bool gpusim_is_on_device(uint64_t address)
{
    struct gpusim_allocation *allocation = gpusim_allocation_at(address);

    if (!allocation)
        return false;
    switch (allocation->origin) {
    case GPUSIM_FROM_LINEAR:
        return true;
    case GPUSIM_FROM_POOL:
    case GPUSIM_FROM_GRAPH:
        return gpusim_allocation_place(allocation) == GPUSIM_PLACE_DEVICE;
    case GPUSIM_FROM_MAPPING:
        return allocation->physical->device != NULL;
    default: /* the host's, another owner's, or variables, which the program's code can write */
        return false;
    }
}

void gpusim_allocation_free(struct gpusim_allocation *allocation, bool implicit)
{
    count_free(allocation, implicit);
    if (gpusim_is_on_device(allocation->range.start))
        gpusim_contents_drop(allocation->range.start, allocation->range.size);
    give_back_memory(allocation);
    gpusim_allocation_drop(allocation);
}

void gpusim_allocations_of_context_free(struct gpusim_context *context)
{
    struct gpusim_allocation *allocation = gpusim_allocation_next(0);

    while (allocation) {
        uint64_t next = allocation->range.start + 1;

        if (allocation->context == context)
            gpusim_allocation_free(allocation, true);
        allocation = gpusim_allocation_next(next);
    }
}

/* Whether the address is inside memory that only the driver hands out, allocated or not. */
static bool is_device_space(uint64_t address)
{
    for (int i = 0; i < gpusim_settings.device_count; i++) {
        struct gpusim_device *device = &gpusim_devices[i];

        if (gpusim_arena_contains(&device->linear, address))
            return true;
        for (struct gpusim_pool *pool = device->pools; pool; pool = pool->next) {
            if (gpusim_arena_contains(&pool->arena, address))
                return true;
        }
    }
    return false;
}

CUresult gpusim_check_access(uint64_t address, uint64_t size, bool pageable_allowed)
{
    uint64_t end = address + size;

    if (size == 0)
        return CUDA_SUCCESS;
    if (address == 0 || end < address)
        return CUDA_ERROR_INVALID_VALUE;

    struct gpusim_allocation *allocation = gpusim_allocation_at(address);
    if (!allocation) {
        return pageable_allowed && !is_device_space(address) ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_VALUE;
    }
    /* A copy may cross from one mapping into the next, never out of another allocation. */
    while (allocation) {
        if (allocation->origin == GPUSIM_FROM_MAPPING &&
            (allocation->physical->multicast ||
             (!allocation->device_access && !allocation->host_access)))
            return CUDA_ERROR_INVALID_VALUE;
        uint64_t reached = allocation->range.start + allocation->range.size;
        if (end <= reached)
            return CUDA_SUCCESS;
        if (allocation->origin != GPUSIM_FROM_MAPPING)
            /* Part of a larger pageable buffer may be registered. */
            return allocation->origin == GPUSIM_FROM_HOST_REGISTER && pageable_allowed
                       ? CUDA_SUCCESS
                       : CUDA_ERROR_INVALID_VALUE;
        allocation = gpusim_allocation_from(reached);
    }
    return CUDA_ERROR_INVALID_VALUE;
}
