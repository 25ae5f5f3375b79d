/*
 * See effects.h: graphs.
 *
 * A launch is recorded after its call, frees and allocations alike. The addresses of a graph's
 * nodes belong to the graph, so only another launch can bring a freed one back to life. One that
 * does so on another thread may be recorded first; the record of this one says how long its call
 * took, by which a reader knows what it may have freed before that.
 */
#include "hooks/effects.h"

/* Memory of the host and managed memory are what they are in a graph too. */
enum gm_kind gm_graph_kind(enum gm_kind of_pool)
{
    return of_pool == GM_KIND_DEVICE ? GM_KIND_GRAPH : of_pool;
}

void gm_driver_graph_alloc_node(struct gm_call *call, int result, CUgraph graph,
                                const CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    if (result != 0 || !parameters)
        return;
    struct gm_record record = {
        .type = GM_EVENT_GRAPH_ALLOC_NODE,
        .kind = gm_graph_kind(
            gm_pool_kind_of(&parameters->poolProps.location, parameters->poolProps.allocType)),
        .address = parameters->dptr, /* the call has filled it in */
        .size = parameters->bytesize,
        .aux = GM_WORD(graph),
        .device = (int8_t)gm_location_device(&parameters->poolProps.location),
    };
    gm_call_record(call, &record, NULL);
}

void gm_driver_graph_node(struct gm_call *call, int result, CUgraph graph,
                          const CUgraphNodeParams *parameters)
{
    if (result != 0 || !parameters)
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

/* Allocation nodes can run out of memory; every other failure of a launch is none of ours. */
void gm_driver_graph_launch(struct gm_call *call, int result, CUgraphExec executable)
{
    struct gm_record record = {
        .type = GM_EVENT_GRAPH_LAUNCH,
        .address = GM_WORD(executable),
        .extra = gm_call_elapsed(call),
        .device = -1,
    };
    if (result == 0)
        gm_call_record(call, &record, NULL);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        gm_effect_alloc(call, result, GM_KIND_GRAPH, 0, 0, 0);
}

void gm_driver_graph_trim(struct gm_call *call, int result, int device)
{
    struct gm_record record = {.type = GM_EVENT_GRAPH_TRIM, .device = (int8_t)device};
    if (result == 0)
        gm_call_record(call, &record, NULL);
}
