/* See effects.h: virtual memory management, pools, graphs and mapped graphics resources. */
#include "effects.h"

void gm_driver_vmm_create(struct gm_call *call, int result, uint64_t handle, uint64_t size,
                          const CUmemAllocationProp *properties)
{
    bool on_device = properties && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    struct gm_record record = {
        .type = result == 0 ? GM_EVENT_VMM_CREATE : GM_EVENT_ALLOC_FAILED,
        .kind = on_device ? GM_KIND_VMM : GM_KIND_HOST_VMM,
        .address = handle,
        .size = size,
        .extra = (uint32_t)result,
        .device = on_device ? (int8_t)properties->location.id : -1,
    };
    gm_call_record(call, &record, NULL);
}

void gm_driver_vmm_map(struct gm_call *call, int result, uint64_t address, uint64_t size,
                       uint64_t offset, uint64_t handle)
{
    struct gm_record record = {
        .type = GM_EVENT_VMM_MAP, .address = address, .size = size, .aux = handle, .device = -1};
    struct gm_record detail = {.address = offset};
    if (result == 0)
        gm_call_record(call, &record, &detail);
}

/* ---- stream-ordered
 * --------------------------------------------------------------------------------- */

void gm_driver_alloc_async(struct gm_call *call, int result, uint64_t address, uint64_t size,
                           CUmemoryPool pool, CUstream stream)
{
    uint64_t graph = result == 0 ? gm_capture_of(stream) : 0;
    struct gm_record record = {
        .type = result != 0 ? GM_EVENT_ALLOC_FAILED
                : graph     ? GM_EVENT_GRAPH_ALLOC_NODE
                            : GM_EVENT_ALLOC,
        .kind = graph ? GM_KIND_GRAPH : GM_KIND_DEVICE,
        .address = address,
        .size = size,
        .aux = graph ? graph : GM_WORD(pool),
        .extra = (uint32_t)result,
        .flags = GM_FLAG_ASYNC | GM_FLAG_POOL | (graph ? GM_FLAG_CAPTURED : 0),
        .device = (int8_t)gm_pool_device(GM_WORD(pool)),
    };
    if (result != 0 || address != 0)
        gm_call_record(call, &record, NULL);
}

/* In a capture nothing is freed now: a node is added. A capture that fails is then none at all. */
void gm_before_free_async(struct gm_call *call, struct gm_record *begun, uint64_t address,
                          CUstream stream)
{
    uint64_t graph = gm_capture_of(stream);
    if (!graph) {
        gm_effect_free(call, begun, GM_KIND_DEVICE, address);
        if (begun->type)
            begun->flags = GM_FLAG_ASYNC;
        return;
    }
    struct gm_record record = {
        .type = GM_EVENT_GRAPH_FREE_NODE,
        .address = address,
        .aux = graph,
        .flags = GM_FLAG_ASYNC | GM_FLAG_CAPTURED,
        .device = -1,
    };
    gm_call_record(call, &record, NULL);
}

/* ---- pools
 * ---------------------------------------------------------------------------------------------- */

void gm_driver_pool_create(struct gm_call *call, int result, uint64_t pool,
                           const CUmemPoolProps *properties)
{
    if (result != 0 || !pool)
        return;
    int device = properties && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE
                     ? properties->location.id
                     : -1;
    struct gm_record record = {
        .type = GM_EVENT_POOL_CREATE, .address = pool, .device = (int8_t)device};
    gm_pool_note(pool, device);
    gm_call_record(call, &record, NULL);
}

void gm_driver_pool_set(struct gm_call *call, int result, CUmemoryPool pool, int attribute,
                        const void *value)
{
    if (result != 0 || !value)
        return;
    /* Attributes up to 3 (reuse rules) are ints, the others 64 bits wide (CUmemPool_attribute). */
    uint64_t number =
        attribute <= 3 ? (uint64_t)(unsigned)*(const int *)value : *(const uint64_t *)value;
    struct gm_record record = {
        .type = GM_EVENT_POOL_SET,
        .address = GM_WORD(pool),
        .aux = number,
        .extra = (uint32_t)attribute,
        .device = (int8_t)gm_pool_device(GM_WORD(pool)),
    };
    gm_call_record(call, &record, NULL);
}

void gm_driver_pool_import(struct gm_call *call, int result, uint64_t pool)
{
    struct gm_record record = {.type = GM_EVENT_POOL_CREATE, .address = pool, .device = -1};
    if (result == 0 && pool)
        gm_call_record(call, &record, NULL);
}

void gm_driver_pool_of_device(struct gm_call *call, int result, uint64_t pool, int device)
{
    (void)call;
    if (result == 0 && pool)
        gm_pool_note(pool, device);
}

void gm_driver_pool_of_location(struct gm_call *call, int result, uint64_t pool,
                                const CUmemLocation *location)
{
    if (location && location->type == CU_MEM_LOCATION_TYPE_DEVICE)
        gm_driver_pool_of_device(call, result, pool, location->id);
}

/* ---- graphs
 * ------------------------------------------------------------------------------------------------
 */

void gm_driver_graph_alloc_node(struct gm_call *call, int result, CUgraph graph,
                                const CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    if (result != 0 || !parameters)
        return;
    bool on_device = parameters->poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    struct gm_record record = {
        .type = GM_EVENT_GRAPH_ALLOC_NODE,
        .kind = GM_KIND_GRAPH,
        .address = parameters->dptr, /* the call has filled it in */
        .size = parameters->bytesize,
        .aux = GM_WORD(graph),
        .device = on_device ? (int8_t)parameters->poolProps.location.id : -1,
    };
    gm_call_record(call, &record, NULL);
}

void gm_driver_graph_node(struct gm_call *call, int result, CUgraph graph,
                          const CUgraphNodeParams *parameters)
{
    if (!parameters)
        return;
    switch (parameters->type) {
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        gm_driver_graph_alloc_node(call, result, graph, &parameters->alloc);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        gm_effect_life(call, result, GM_EVENT_GRAPH_FREE_NODE, parameters->free, 0, GM_WORD(graph));
        break;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        gm_effect_life(call, result, GM_EVENT_GRAPH_CHILD, GM_WORD(graph), 0,
                       GM_WORD(parameters->graph));
        break;
    }
}

void gm_driver_graph_instantiate(struct gm_call *call, int result, uint64_t executable,
                                 CUgraph graph, uint64_t flags)
{
    struct gm_record record = {
        .type = GM_EVENT_GRAPH_INSTANTIATE,
        .address = executable,
        .aux = GM_WORD(graph),
        .extra = (uint32_t)flags,
        .device = -1,
    };
    if (result == 0)
        gm_call_record(call, &record, NULL);
}

void gm_driver_on_device(struct gm_call *call, int result, enum gm_event type, int device)
{
    struct gm_record record = {.type = (uint8_t)type, .device = (int8_t)device};
    if (result == 0)
        gm_call_record(call, &record, NULL);
}

/* ---- graphics
 * ------------------------------------------------------------------------------------------------
 */

/* Memory of the graphics driver, lent while mapped. `aux` names the resource, by which it is given
 * back. */
void gm_driver_graphics_map(struct gm_call *call, int result, CUgraphicsResource resource,
                            uint64_t address, uint64_t size)
{
    struct gm_record record = {
        .type = GM_EVENT_ALLOC,
        .kind = GM_KIND_EXTERNAL,
        .address = address,
        .size = size,
        .aux = GM_WORD(resource),
        .device = -1,
    };
    if (result == 0 && address)
        gm_call_record(call, &record, NULL);
}

/* One FREE per resource, by its handle in `aux`: the pointer got from it is not at hand here. */
void gm_before_graphics_unmap(struct gm_call *call, struct gm_record *begun, unsigned count,
                              const CUgraphicsResource *resources)
{
    (void)begun; /* an unmap that fails leaves the resource unusable: nothing to take back */
    for (unsigned i = 0; resources && i < count; i++) {
        struct gm_record record = {.type = GM_EVENT_FREE,
                                   .kind = GM_KIND_EXTERNAL,
                                   .aux = GM_WORD(resources[i]),
                                   .device = -1};
        gm_call_record(call, &record, NULL);
    }
}
