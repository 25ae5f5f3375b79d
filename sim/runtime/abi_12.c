/*
 * Functions whose signature CUDA 13 changed, in their forms of CUDA 12: the plain name is the older
 * one, the newer one carries _v2. Counterpart: abi_13.c.
 */
#include "abi_12.h"
#include "graph.h"

#if GPUSIM_CUDART_MAJOR == 12

cudaError_t gpusim_12_advise(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice,
                             int device) ABI_12(cudaMemAdvise);
cudaError_t gpusim_12_advise_v2(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice,
                                struct cudaMemLocation location) ABI_12(cudaMemAdvise_v2);
cudaError_t gpusim_12_get_edges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                                size_t *count) ABI_12(cudaGraphGetEdges);
cudaError_t gpusim_12_get_edges_v2(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                                   CUgraphEdgeData *edges, size_t *count)
    ABI_12(cudaGraphGetEdges_v2);
cudaError_t gpusim_12_get_dependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count)
    ABI_12(cudaGraphNodeGetDependencies);
cudaError_t gpusim_12_get_dependencies_v2(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                          CUgraphEdgeData *edges, size_t *count)
    ABI_12(cudaGraphNodeGetDependencies_v2);
cudaError_t gpusim_12_get_dependents(cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count)
    ABI_12(cudaGraphNodeGetDependentNodes);
cudaError_t gpusim_12_get_dependents_v2(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                        CUgraphEdgeData *edges, size_t *count)
    ABI_12(cudaGraphNodeGetDependentNodes_v2);
cudaError_t gpusim_12_add_dependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                       const cudaGraphNode_t *to, size_t count)
    ABI_12(cudaGraphAddDependencies);
cudaError_t gpusim_12_add_dependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from,
                                          const cudaGraphNode_t *to, const CUgraphEdgeData *edges,
                                          size_t count) ABI_12(cudaGraphAddDependencies_v2);
cudaError_t gpusim_12_remove_dependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                          const cudaGraphNode_t *to, size_t count)
    ABI_12(cudaGraphRemoveDependencies);
cudaError_t gpusim_12_remove_dependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from,
                                             const cudaGraphNode_t *to,
                                             const CUgraphEdgeData *edges, size_t count)
    ABI_12(cudaGraphRemoveDependencies_v2);
cudaError_t gpusim_12_add_node(cudaGraphNode_t *node, cudaGraph_t graph,
                               const cudaGraphNode_t *dependencies, size_t count,
                               struct cudaGraphNodeParams *parameters) ABI_12(cudaGraphAddNode);
cudaError_t gpusim_12_add_node_v2(cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *dependencies,
                                  const cudaGraphEdgeData *edges, size_t count,
                                  struct cudaGraphNodeParams *parameters)
    ABI_12(cudaGraphAddNode_v2);
cudaError_t gpusim_12_elapsed_time_v2(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
    ABI_12(cudaEventElapsedTime_v2);

/* Removed in 13. The thread in these names is from a time before contexts belonged to processes. */
cudaError_t gpusim_12_thread_exit(void) ABI_12(cudaThreadExit);
cudaError_t gpusim_12_thread_synchronize(void) ABI_12(cudaThreadSynchronize);
cudaError_t gpusim_12_thread_set_limit(enum cudaLimit limit, size_t value)
    ABI_12(cudaThreadSetLimit);
cudaError_t gpusim_12_thread_get_limit(size_t *value, enum cudaLimit limit)
    ABI_12(cudaThreadGetLimit);
cudaError_t gpusim_12_launch_on_devices(void *launches, unsigned count, unsigned flags)
    ABI_12(cudaLaunchCooperativeKernelMultiDevice);

cudaError_t gpusim_12_thread_exit(void)
{
    return cudaDeviceReset();
}

cudaError_t gpusim_12_thread_synchronize(void)
{
    return cudaDeviceSynchronize();
}

cudaError_t gpusim_12_thread_set_limit(enum cudaLimit limit, size_t value)
{
    return cudaDeviceSetLimit(limit, value);
}

cudaError_t gpusim_12_thread_get_limit(size_t *value, enum cudaLimit limit)
{
    return cudaDeviceGetLimit(value, limit);
}

cudaError_t gpusim_12_launch_on_devices(void *launches, unsigned count, unsigned flags)
{
    (void)launches, (void)count, (void)flags;
    return gpusim_fail(cudaErrorNotSupported);
}

cudaError_t gpusim_12_advise(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice,
                             int device)
{
    return CALL(cuMemAdvise, 8000, gpusim_device_address(pointer), bytes, (CUmem_advise)advice,
                device);
}

cudaError_t gpusim_12_advise_v2(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice,
                                struct cudaMemLocation location)
{
    CUmemLocation driver_location = {.type = (CUmemLocationType)location.type, .id = location.id};
    return CALL(cuMemAdvise, 12020, gpusim_device_address(pointer), bytes, (CUmem_advise)advice,
                driver_location);
}

cudaError_t gpusim_12_get_edges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                                size_t *count)
{
    return CALL(cuGraphGetEdges, 10000, graph, from, to, count);
}

cudaError_t gpusim_12_get_edges_v2(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                                   CUgraphEdgeData *edges, size_t *count)
{
    return CALL(cuGraphGetEdges, 12030, graph, from, to, edges, count);
}

cudaError_t gpusim_12_get_dependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count)
{
    return CALL(cuGraphNodeGetDependencies, 10000, node, nodes, count);
}

cudaError_t gpusim_12_get_dependencies_v2(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                          CUgraphEdgeData *edges, size_t *count)
{
    return CALL(cuGraphNodeGetDependencies, 12030, node, nodes, edges, count);
}

cudaError_t gpusim_12_get_dependents(cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count)
{
    return CALL(cuGraphNodeGetDependentNodes, 10000, node, nodes, count);
}

cudaError_t gpusim_12_get_dependents_v2(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                        CUgraphEdgeData *edges, size_t *count)
{
    return CALL(cuGraphNodeGetDependentNodes, 12030, node, nodes, edges, count);
}

cudaError_t gpusim_12_add_dependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                       const cudaGraphNode_t *to, size_t count)
{
    return CALL(cuGraphAddDependencies, 10000, graph, from, to, count);
}

cudaError_t gpusim_12_add_dependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from,
                                          const cudaGraphNode_t *to, const CUgraphEdgeData *edges,
                                          size_t count)
{
    return CALL(cuGraphAddDependencies, 12030, graph, from, to, edges, count);
}

cudaError_t gpusim_12_remove_dependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                          const cudaGraphNode_t *to, size_t count)
{
    return CALL(cuGraphRemoveDependencies, 10000, graph, from, to, count);
}

cudaError_t gpusim_12_remove_dependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from,
                                             const cudaGraphNode_t *to,
                                             const CUgraphEdgeData *edges, size_t count)
{
    return CALL(cuGraphRemoveDependencies, 12030, graph, from, to, edges, count);
}

cudaError_t gpusim_12_add_node(cudaGraphNode_t *node, cudaGraph_t graph,
                               const cudaGraphNode_t *dependencies, size_t count,
                               struct cudaGraphNodeParams *parameters)
{
    return gpusim_graph_add_node(node, graph, dependencies, NULL, count, parameters);
}

cudaError_t gpusim_12_add_node_v2(cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *dependencies,
                                  const cudaGraphEdgeData *edges, size_t count,
                                  struct cudaGraphNodeParams *parameters)
{
    return gpusim_graph_add_node(node, graph, dependencies, edges, count, parameters);
}

cudaError_t gpusim_12_elapsed_time_v2(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    return CALL(cuEventElapsedTime, 12080, milliseconds, start, end);
}

#endif
