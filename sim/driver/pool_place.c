/*
 * Where pools are: on a device, or in a place that has the members of one, so that the same code serves its pools.
 *
 * cuMemGetDefaultMemPool: "The memory location can be of one of CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_HOST
 * or CU_MEM_LOCATION_TYPE_HOST_NUMA. The allocation type can be one of CU_MEM_ALLOCATION_TYPE_PINNED or
 * CU_MEM_ALLOCATION_TYPE_MANAGED. When the allocation type is CU_MEM_ALLOCATION_TYPE_MANAGED, the location type can
 * also be CU_MEM_LOCATION_TYPE_NONE". Each pair has its own default and current pool.
 */
#include "graph.h"
#include "memory.h"

#include <unistd.h>

enum { ANYWHERE, HOST, HOST_NUMA, PLACES }; /* of managed memory, the devices stand behind them */

static struct gpusim_device pinned[PLACES], managed[PLACES + GPUSIM_MAX_DEVICES];

static struct gpusim_device *open_place(struct gpusim_device *place, enum gpusim_place what,
                                        int ordinal)
{
    if (!place->capacity) {
        uint64_t host = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

        place->place = what;
        place->ordinal = ordinal;
        place->capacity = gpusim_align_down(host, GPUSIM_GRANULARITY);
    }
    return place;
}

static CUresult find_on_device(const CUmemLocation *location, bool is_managed,
                               struct gpusim_device **place)
{
    *place = gpusim_device_of(location->id);
    if (!*place)
        return CUDA_ERROR_INVALID_DEVICE;
    if (is_managed)
        *place = open_place(&managed[PLACES + location->id], GPUSIM_PLACE_MANAGED, location->id);
    return CUDA_SUCCESS;
}

CUresult gpusim_pool_place(const CUmemLocation *location, CUmemAllocationType type,
                           struct gpusim_device **place)
{
    const bool is_managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
    struct gpusim_device *places = is_managed ? managed : pinned;
    int which;

    if (!is_managed && type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return find_on_device(location, is_managed, place);
    case CU_MEM_LOCATION_TYPE_HOST: /* "Location is host, id is ignored" */
        which = HOST;
        break;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        if (location->id != 0) /* this host has one node */
            return CUDA_ERROR_INVALID_VALUE;
        which = HOST_NUMA;
        break;
    case CU_MEM_LOCATION_TYPE_NONE:
        if (!is_managed)
            return CUDA_ERROR_INVALID_VALUE;
        which = ANYWHERE;
        break;
    default: /* cuMemPoolCreate: HOST_NUMA_CURRENT "will result in CUDA_ERROR_INVALID_VALUE" */
        return CUDA_ERROR_INVALID_VALUE;
    }
    *place = open_place(&places[which], is_managed ? GPUSIM_PLACE_MANAGED : GPUSIM_PLACE_HOST, -1);
    return CUDA_SUCCESS;
}

CUmemLocation gpusim_pool_location(const struct gpusim_device *place)
{
    if (place->ordinal >= 0)
        return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = place->ordinal};
    if (place == &pinned[HOST] || place == &managed[HOST])
        return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
    if (place == &pinned[HOST_NUMA] || place == &managed[HOST_NUMA])
        return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA};
    return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_NONE};
}

void gpusim_pool_places_release(void)
{
    for (int i = 0; i < PLACES; i++)
        gpusim_pools_above_threshold_trim(&pinned[i]);
    for (int i = 0; i < PLACES + GPUSIM_MAX_DEVICES; i++)
        gpusim_pools_above_threshold_trim(&managed[i]);
}

/* ---- what memory of pools counts as ---------------------------------------------------------- */

enum gpusim_place gpusim_allocation_place(const struct gpusim_allocation *allocation)
{
    switch (allocation->origin) {
    case GPUSIM_FROM_POOL:
        return allocation->pool->device->place;
    case GPUSIM_FROM_GRAPH:
        return allocation->node->device->place;
    case GPUSIM_FROM_MANAGED:
        return GPUSIM_PLACE_MANAGED;
    case GPUSIM_FROM_HOST_ALLOC:
    case GPUSIM_FROM_HOST_REGISTER:
        return GPUSIM_PLACE_HOST;
    default:
        return GPUSIM_PLACE_DEVICE;
    }
}
