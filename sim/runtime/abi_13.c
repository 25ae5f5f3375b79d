/*
 * Functions whose signature CUDA 13 changed, in their form of CUDA 13. Counterpart: abi_12.c.
 */
#include "graph.h"
#include "runtime.h"

#if GPUSIM_CUDART_MAJOR >= 13

_Static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData), "same layout");

static CUgraphEdgeData *edges_out(cudaGraphEdgeData *edges)
{
    return (CUgraphEdgeData *)(void *)edges;
}

static const CUgraphEdgeData *edges_in(const cudaGraphEdgeData *edges)
{
    return (const CUgraphEdgeData *)(const void *)edges;
}

cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location)
{
    CUmemLocation driver_location = {.type = (CUmemLocationType)location.type, .id = location.id};
    return CALL(cuMemAdvise, 12020, gpusim_device_address(pointer), bytes, (CUmem_advise)advice,
                driver_location);
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                              cudaGraphEdgeData *edges, size_t *count)
{
    return CALL(cuGraphGetEdges, 12030, graph, from, to, edges_out(edges), count);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
                                         cudaGraphEdgeData *edges, size_t *count)
{
    return CALL(cuGraphNodeGetDependencies, 12030, node, dependencies, edges_out(edges), count);
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *dependents,
                                           cudaGraphEdgeData *edges, size_t *count)
{
    return CALL(cuGraphNodeGetDependentNodes, 12030, node, dependents, edges_out(edges), count);
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                     size_t count)
{
    return CALL(cuGraphAddDependencies, 12030, graph, from, to, edges_in(edges), count);
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                        const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                        size_t count)
{
    return CALL(cuGraphRemoveDependencies, 12030, graph, from, to, edges_in(edges), count);
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
                             const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges,
                             size_t count, struct cudaGraphNodeParams *parameters)
{
    return gpusim_graph_add_node(node, graph, dependencies, edges, count, parameters);
}

#endif
