/*
 * Graph nodes whose parameters are the same in both APIs: host functions, child graphs, empty
 * nodes, events, semaphores, allocation and free.
 */
#include "runtime.h"

_Static_assert(sizeof(struct cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS), "same layout");

static const CUDA_HOST_NODE_PARAMS *host_in(const struct cudaHostNodeParams *parameters)
{
    return (const CUDA_HOST_NODE_PARAMS *)(const void *)parameters;
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                 const cudaGraphNode_t *dependencies, size_t count,
                                 const struct cudaHostNodeParams *parameters)
{
    return CALL(cuGraphAddHostNode, 10000, node, graph, dependencies, count, host_in(parameters));
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams *parameters)
{
    return CALL(cuGraphHostNodeGetParams, 10000, node, (CUDA_HOST_NODE_PARAMS *)(void *)parameters);
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node,
                                       const struct cudaHostNodeParams *parameters)
{
    return CALL(cuGraphHostNodeSetParams, 10000, node, host_in(parameters));
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                           const struct cudaHostNodeParams *parameters)
{
    return CALL(cuGraphExecHostNodeSetParams, 10020, executable, node, host_in(parameters));
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                       const cudaGraphNode_t *dependencies, size_t count,
                                       cudaGraph_t child)
{
    return CALL(cuGraphAddChildGraphNode, 10000, node, graph, dependencies, count, child);
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph)
{
    return CALL(cuGraphChildGraphNodeGetGraph, 10000, node, graph);
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                 cudaGraph_t child)
{
    return CALL(cuGraphExecChildGraphNodeSetParams, 11010, executable, node, child);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *dependencies, size_t count)
{
    return CALL(cuGraphAddEmptyNode, 10000, node, graph, dependencies, count);
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                        const cudaGraphNode_t *dependencies, size_t count,
                                        cudaEvent_t event)
{
    return CALL(cuGraphAddEventRecordNode, 11010, node, graph, dependencies, count, event);
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event)
{
    return CALL(cuGraphEventRecordNodeGetEvent, 11010, node, event);
}

cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
    return CALL(cuGraphEventRecordNodeSetEvent, 11010, node, event);
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                 cudaEvent_t event)
{
    return CALL(cuGraphExecEventRecordNodeSetEvent, 11010, executable, node, event);
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                      const cudaGraphNode_t *dependencies, size_t count,
                                      cudaEvent_t event)
{
    return CALL(cuGraphAddEventWaitNode, 11010, node, graph, dependencies, count, event);
}

cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event)
{
    return CALL(cuGraphEventWaitNodeGetEvent, 11010, node, event);
}

cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
    return CALL(cuGraphEventWaitNodeSetEvent, 11010, node, event);
}

cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t executable, cudaGraphNode_t node,
                                               cudaEvent_t event)
{
    return CALL(cuGraphExecEventWaitNodeSetEvent, 11010, executable, node, event);
}

_Static_assert(sizeof(struct cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS),
               "same layout");
_Static_assert(offsetof(struct cudaMemAllocNodeParams, dptr) ==
                   offsetof(CUDA_MEM_ALLOC_NODE_PARAMS, dptr),
               "same layout");

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *dependencies, size_t count,
                                     struct cudaMemAllocNodeParams *parameters)
{
    return CALL(cuGraphAddMemAllocNode, 11040, node, graph, dependencies, count,
                (CUDA_MEM_ALLOC_NODE_PARAMS *)(void *)parameters);
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node,
                                           struct cudaMemAllocNodeParams *parameters)
{
    return CALL(cuGraphMemAllocNodeGetParams, 11040, node,
                (CUDA_MEM_ALLOC_NODE_PARAMS *)(void *)parameters);
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                    const cudaGraphNode_t *dependencies, size_t count,
                                    void *pointer)
{
    return CALL(cuGraphAddMemFreeNode, 11040, node, graph, dependencies, count,
                gpusim_device_address(pointer));
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *pointer)
{
    return CALL(cuGraphMemFreeNodeGetParams, 11040, node, gpusim_out(pointer));
}
