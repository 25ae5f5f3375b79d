/*
 * cudaGraphAddNode and its setters: one structure for every node type.
 *
 * Most members of the union have the same layout in both APIs; kernels, copies, memsets and
 * conditionals are translated, because the driver wants handles, byte units and contexts.
 */
#include "graph.h"
#include <stddef.h>
#include <string.h>

_Static_assert(sizeof(struct cudaGraphNodeParams) == sizeof(CUgraphNodeParams), "same size");
_Static_assert(sizeof(struct cudaMemAllocNodeParamsV2) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2),
               "same layout");
/* Since 13.1 two members follow, a context and the kind of function; we use the current context and
 * our kind. */
_Static_assert(offsetof(struct cudaKernelNodeParams, extra) ==
                   offsetof(struct cudaKernelNodeParamsV2, extra),
               "same layout");
_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS) == sizeof(CUDA_KERNEL_NODE_PARAMS_v3),
               "same layout");

static cudaError_t kernel_to_driver(const struct cudaGraphNodeParams *from, CUgraphNodeParams *to)
{
    struct cudaKernelNodeParams parameters;
    memcpy(&parameters, &from->kernel, sizeof parameters);
    CUDA_KERNEL_NODE_PARAMS kernel;
    cudaError_t error = gpusim_kernel_node_to_driver(&parameters, &kernel);
    memcpy(&to->kernel, &kernel, sizeof kernel);
    return error;
}

static cudaError_t to_driver(const struct cudaGraphNodeParams *from, CUgraphNodeParams *to)
{
    memcpy(to, from, sizeof *to);
    switch (from->type) {
    case cudaGraphNodeTypeKernel:
        return kernel_to_driver(from, to);
    case cudaGraphNodeTypeMemcpy:
        to->memcpy.flags = from->memcpy.flags;
        to->memcpy.reserved = 0;
        to->memcpy.copyCtx = gpusim_current_context();
        return gpusim_describe_copy(&from->memcpy.copyParams, &to->memcpy.copyParams);
    case cudaGraphNodeTypeMemset:
        to->memset.ctx = gpusim_current_context();
        return cudaSuccess;
    case cudaGraphNodeTypeConditional:
        to->conditional.ctx = gpusim_current_context();
        return cudaSuccess;
    default:
        return cudaSuccess;
    }
}

static cudaError_t enter_and_translate(const struct cudaGraphNodeParams *from,
                                       CUgraphNodeParams *to)
{
    if (!from)
        return gpusim_fail(cudaErrorInvalidValue);
    if (!gpusim_enter())
        return gpusim_refusal();
    return gpusim_fail(to_driver(from, to));
}

cudaError_t gpusim_graph_add_node(cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *dependencies,
                                  const cudaGraphEdgeData *edges, size_t count,
                                  struct cudaGraphNodeParams *parameters)
{
    CUgraphNodeParams driver_parameters;
    cudaError_t error = enter_and_translate(parameters, &driver_parameters);
    if (error != cudaSuccess)
        return error;
    error = gpusim_finish(DRIVER(cuGraphAddNode, 12030)(
        node, graph, dependencies, (const CUgraphEdgeData *)(const void *)edges, count,
        &driver_parameters));
    if (error != cudaSuccess)
        return error;
    if (parameters->type == cudaGraphNodeTypeMemAlloc)
        parameters->alloc.dptr = gpusim_pointer(driver_parameters.alloc.dptr);
    if (parameters->type == cudaGraphNodeTypeConditional)
        parameters->conditional.phGraph_out = driver_parameters.conditional.phGraph_out;
    return cudaSuccess;
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *parameters)
{
    CUgraphNodeParams driver_parameters;
    cudaError_t error = enter_and_translate(parameters, &driver_parameters);
    return error == cudaSuccess
               ? gpusim_finish(DRIVER(cuGraphNodeSetParams, 12020)(node, &driver_parameters))
               : error;
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                       struct cudaGraphNodeParams *parameters)
{
    CUgraphNodeParams driver_parameters;
    cudaError_t error = enter_and_translate(parameters, &driver_parameters);
    return error == cudaSuccess ? gpusim_finish(DRIVER(cuGraphExecNodeSetParams,
                                                       12020)(executable, node, &driver_parameters))
                                : error;
}
