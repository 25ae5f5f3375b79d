/*
 * Logical endpoints: numbers under which other nodes of a fabric reach the memory bound to them.
 * Like multicast objects they have no memory of their own and keep bound memory alive.
 */
#include "memory.h"
#include "newer.h"
#include "vmm.h"

#include <stdlib.h>

struct endpoint {
    CUlogicalEndpointId id;
    struct gpusim_physical *object; /* a multicast object without a handle; NULL: only reserved */
    struct endpoint *next;
};

static struct endpoint *endpoints;
static CUlogicalEndpointId last_id;

/* The link to the endpoint of a number; the end of the list if there is none. */
static struct endpoint **link_to_endpoint(CUlogicalEndpointId id)
{
    struct endpoint **link = &endpoints;

    while (*link && (*link)->id != id)
        link = &(*link)->next;
    return link;
}

static struct gpusim_physical *object_of(CUlogicalEndpointId id)
{
    struct endpoint *endpoint = *link_to_endpoint(id);

    return endpoint ? endpoint->object : NULL;
}

CUresult cuLogicalEndpointIdReserve(CUlogicalEndpointId *first, cuuint32_t count)
{
    GPUSIM_ENTER();
    if (!first || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (cuuint32_t i = 0; i < count; i++) {
        struct endpoint *endpoint = calloc(1, sizeof(*endpoint));

        if (!endpoint)
            return CUDA_ERROR_OUT_OF_MEMORY;
        *endpoint = (struct endpoint){.id = last_id + i, .next = endpoints};
        endpoints = endpoint;
    }
    *first = last_id;
    last_id += count;
    return CUDA_SUCCESS;
}

CUresult cuLogicalEndpointIdRelease(CUlogicalEndpointId first, cuuint32_t count)
{
    GPUSIM_ENTER();
    for (cuuint32_t i = 0; i < count; i++)
        if (!*link_to_endpoint(first + i) || object_of(first + i))
            return CUDA_ERROR_INVALID_VALUE;
    for (cuuint32_t i = 0; i < count; i++) {
        struct endpoint **link = link_to_endpoint(first + i), *endpoint = *link;

        *link = endpoint->next;
        free(endpoint);
    }
    return CUDA_SUCCESS;
}

CUresult cuLogicalEndpointCreate(CUlogicalEndpointId id, const CUlogicalEndpointProp *properties)
{
    GPUSIM_ENTER();
    struct endpoint *endpoint = *link_to_endpoint(id);

    if (!endpoint || endpoint->object || !properties || properties->size == 0 ||
        properties->size % GPUSIM_GRANULARITY)
        return CUDA_ERROR_INVALID_VALUE;
    bool unicast = properties->type == CU_LOGICAL_ENDPOINT_TYPE_UNICAST;
    unsigned int devices = unicast ? 1 : properties->multicast.numDevices;
    GPUSIM_TRY(gpusim_multicast_new(properties->size, devices, &endpoint->object));
    if (unicast)
        return gpusim_multicast_add(endpoint->object, properties->unicast.device);
    return CUDA_SUCCESS;
}

CUresult cuLogicalEndpointAddDevice(CUlogicalEndpointId id, CUdevice device)
{
    GPUSIM_ENTER();
    struct gpusim_physical *object = object_of(id);

    return object ? gpusim_multicast_add(object, device) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLogicalEndpointDestroy(CUlogicalEndpointId id)
{
    GPUSIM_ENTER();
    struct endpoint *endpoint = *link_to_endpoint(id);

    if (!endpoint || !endpoint->object)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_free_begin());
    endpoint->object->references = 0;
    gpusim_physical_drop_if_unused(endpoint->object);
    endpoint->object = NULL;
    return CUDA_SUCCESS;
}

CUresult cuLogicalEndpointBindMem(CUlogicalEndpointId id, CUdevice device, cuuint64_t offset,
                                  CUmemGenericAllocationHandle handle, cuuint64_t memory_offset,
                                  cuuint64_t size, unsigned long long flags)
{
    GPUSIM_ENTER();
    return gpusim_multicast_bind_memory(object_of(id), device, offset, handle, memory_offset, size,
                                        flags);
}

CUresult cuLogicalEndpointBindAddr(CUlogicalEndpointId id, CUdevice device, cuuint64_t offset,
                                   void *pointer, cuuint64_t size, unsigned long long flags)
{
    GPUSIM_ENTER();
    return gpusim_multicast_bind_address(object_of(id), device, offset,
                                         (CUdeviceptr)(uintptr_t)pointer, size, flags);
}

CUresult cuLogicalEndpointUnbind(CUlogicalEndpointId id, CUdevice device, cuuint64_t offset,
                                 cuuint64_t size)
{
    GPUSIM_ENTER();
    struct gpusim_physical *object = object_of(id);

    return object ? gpusim_multicast_unbind(object, device, offset, size)
                  : CUDA_ERROR_INVALID_VALUE;
}
