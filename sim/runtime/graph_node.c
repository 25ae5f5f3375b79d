/*
 * Graph nodes, one set of functions per type: add, get, set, and set in an executable.
 *
 * Copies, memsets and kernels name the context they run in; a node made by the runtime runs in the
 * context current on the calling thread.
 */
#include "graph.h"

cudaError_t gpusim_kernel_node_to_driver(const struct cudaKernelNodeParams *from,
                                         CUDA_KERNEL_NODE_PARAMS *to)
{
    *to = (CUDA_KERNEL_NODE_PARAMS){.gridDimX = from->gridDim.x,
                                    .gridDimY = from->gridDim.y,
                                    .gridDimZ = from->gridDim.z,
                                    .blockDimX = from->blockDim.x,
                                    .blockDimY = from->blockDim.y,
                                    .blockDimZ = from->blockDim.z,
                                    .sharedMemBytes = from->sharedMemBytes,
                                    .kernelParams = from->kernelParams,
                                    .extra = from->extra,
                                    .ctx = gpusim_current_context()};
    return gpusim_find_kernel(from->func, &to->kern);
}

void gpusim_kernel_node_from_driver(const CUDA_KERNEL_NODE_PARAMS *from,
                                    struct cudaKernelNodeParams *to)
{
    *to = (struct cudaKernelNodeParams){
        .func = from->kern ? (void *)from->kern : (void *)from->func,
        .gridDim = {from->gridDimX, from->gridDimY, from->gridDimZ},
        .blockDim = {from->blockDimX, from->blockDimY, from->blockDimZ},
        .sharedMemBytes = from->sharedMemBytes,
        .kernelParams = from->kernelParams,
        .extra = from->extra};
    if (from->kern)
        gpusim_remember_kernel(from->kern);
}

/* Enters and translates; a failure is recorded. */
static cudaError_t enter_with_kernel(const struct cudaKernelNodeParams *from,
                                     CUDA_KERNEL_NODE_PARAMS *to)
{
    if (!from)
        return gpusim_fail(cudaErrorInvalidValue);
    if (!gpusim_enter())
        return gpusim_refusal();
    return gpusim_fail(gpusim_kernel_node_to_driver(from, to));
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t count,
                                   const struct cudaKernelNodeParams *parameters)
{
    CUDA_KERNEL_NODE_PARAMS kernel;
    cudaError_t error = enter_with_kernel(parameters, &kernel);
    return error == cudaSuccess ? gpusim_finish(DRIVER(cuGraphAddKernelNode, 12000)(
                                      node, graph, dependencies, count, &kernel))
                                : error;
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node,
                                         struct cudaKernelNodeParams *parameters)
{
    CUDA_KERNEL_NODE_PARAMS kernel;
    cudaError_t error = CALL(cuGraphKernelNodeGetParams, 12000, node, &kernel);
    if (error == cudaSuccess)
        gpusim_kernel_node_from_driver(&kernel, parameters);
    return error;
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaKernelNodeParams *parameters)
{
    CUDA_KERNEL_NODE_PARAMS kernel;
    cudaError_t error = enter_with_kernel(parameters, &kernel);
    return error == cudaSuccess
               ? gpusim_finish(DRIVER(cuGraphKernelNodeSetParams, 12000)(node, &kernel))
               : error;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *parameters)
{
    CUDA_KERNEL_NODE_PARAMS kernel;
    cudaError_t error = enter_with_kernel(parameters, &kernel);
    return error == cudaSuccess ? gpusim_finish(DRIVER(cuGraphExecKernelNodeSetParams,
                                                       12000)(executable, node, &kernel))
                                : error;
}

cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from)
{
    return CALL(cuGraphKernelNodeCopyAttributes, 11000, to, from);
}

_Static_assert(sizeof(cudaKernelNodeAttrValue) == sizeof(CUkernelNodeAttrValue), "same layout");

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaKernelNodeAttrID attribute,
                                            cudaKernelNodeAttrValue *value)
{
    return CALL(cuGraphKernelNodeGetAttribute, 11000, node, (CUkernelNodeAttrID)attribute,
                (CUkernelNodeAttrValue *)(void *)value);
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaKernelNodeAttrID attribute,
                                            const cudaKernelNodeAttrValue *value)
{
    return CALL(cuGraphKernelNodeSetAttribute, 11000, node, (CUkernelNodeAttrID)attribute,
                (const CUkernelNodeAttrValue *)(const void *)value);
}

static cudaError_t enter_with_copy(const struct cudaMemcpy3DParms *from, CUDA_MEMCPY3D *to)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    return gpusim_fail(gpusim_describe_copy(from, to));
}

static cudaError_t add_copy(cudaGraphNode_t *node, cudaGraph_t graph,
                            const cudaGraphNode_t *dependencies, size_t count,
                            const CUDA_MEMCPY3D *copy)
{
    return CALL(cuGraphAddMemcpyNode, 10000, node, graph, dependencies, count, copy,
                gpusim_current_context());
}

/* In a graph, or in an executable when one is given. */
static cudaError_t set_copy(cudaGraphExec_t executable, cudaGraphNode_t node,
                            const CUDA_MEMCPY3D *copy)
{
    return executable ? CALL(cuGraphExecMemcpyNodeSetParams, 10020, executable, node, copy,
                             gpusim_current_context())
                      : CALL(cuGraphMemcpyNodeSetParams, 10000, node, copy);
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t count,
                                   const struct cudaMemcpy3DParms *parameters)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = enter_with_copy(parameters, &copy);
    return error == cudaSuccess ? add_copy(node, graph, dependencies, count, &copy) : error;
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms *parameters)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = CALL(cuGraphMemcpyNodeGetParams, 10000, node, &copy);
    if (error == cudaSuccess)
        gpusim_describe_copy_back(&copy, parameters);
    return error;
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemcpy3DParms *parameters)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = enter_with_copy(parameters, &copy);
    return error == cudaSuccess ? set_copy(NULL, node, &copy) : error;
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms *parameters)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = enter_with_copy(parameters, &copy);
    return error == cudaSuccess ? set_copy(executable, node, &copy) : error;
}

static cudaError_t linear_copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                               CUDA_MEMCPY3D *copy)
{
    if ((unsigned)kind > cudaMemcpyDefault)
        return gpusim_fail(cudaErrorInvalidMemcpyDirection);
    gpusim_describe_linear_copy(to, from, bytes, kind, copy);
    return cudaSuccess;
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *dependencies, size_t count, void *to,
                                     const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = linear_copy(to, from, bytes, kind, &copy);
    if (error != cudaSuccess)
        return error;
    return gpusim_enter() ? add_copy(node, graph, dependencies, count, &copy) : gpusim_refusal();
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from,
                                           size_t bytes, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = linear_copy(to, from, bytes, kind, &copy);
    return error == cudaSuccess ? set_copy(NULL, node, &copy) : error;
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node,
                                               void *to, const void *from, size_t bytes,
                                               enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = linear_copy(to, from, bytes, kind, &copy);
    return error == cudaSuccess ? set_copy(executable, node, &copy) : error;
}

/* The device address `offset` bytes into a variable with room for `bytes`; a failure is
 * recorded. */
static cudaError_t enter_with_symbol(const void *symbol, size_t offset, size_t bytes,
                                     void **address)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    CUdeviceptr start = 0;
    size_t size = 0;
    cudaError_t error = gpusim_find_variable(symbol, &start, &size);
    if (error == cudaSuccess && (offset > size || bytes > size - offset))
        error = cudaErrorInvalidValue;
    *address = gpusim_pointer(start + offset);
    return gpusim_fail(error);
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                           const cudaGraphNode_t *dependencies, size_t count,
                                           const void *symbol, const void *from, size_t bytes,
                                           size_t offset, enum cudaMemcpyKind kind)
{
    void *to = NULL;
    cudaError_t error = enter_with_symbol(symbol, offset, bytes, &to);
    return error == cudaSuccess
               ? cudaGraphAddMemcpyNode1D(node, graph, dependencies, count, to, from, bytes, kind)
               : error;
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                             const cudaGraphNode_t *dependencies, size_t count,
                                             void *to, const void *symbol, size_t bytes,
                                             size_t offset, enum cudaMemcpyKind kind)
{
    void *from = NULL;
    cudaError_t error = enter_with_symbol(symbol, offset, bytes, &from);
    return error == cudaSuccess
               ? cudaGraphAddMemcpyNode1D(node, graph, dependencies, count, to, from, bytes, kind)
               : error;
}

cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol,
                                                 const void *from, size_t bytes, size_t offset,
                                                 enum cudaMemcpyKind kind)
{
    void *to = NULL;
    cudaError_t error = enter_with_symbol(symbol, offset, bytes, &to);
    return error == cudaSuccess ? cudaGraphMemcpyNodeSetParams1D(node, to, from, bytes, kind)
                                : error;
}

cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *to,
                                                   const void *symbol, size_t bytes, size_t offset,
                                                   enum cudaMemcpyKind kind)
{
    void *from = NULL;
    cudaError_t error = enter_with_symbol(symbol, offset, bytes, &from);
    return error == cudaSuccess ? cudaGraphMemcpyNodeSetParams1D(node, to, from, bytes, kind)
                                : error;
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t executable,
                                                     cudaGraphNode_t node, const void *symbol,
                                                     const void *from, size_t bytes, size_t offset,
                                                     enum cudaMemcpyKind kind)
{
    void *to = NULL;
    cudaError_t error = enter_with_symbol(symbol, offset, bytes, &to);
    return error == cudaSuccess
               ? cudaGraphExecMemcpyNodeSetParams1D(executable, node, to, from, bytes, kind)
               : error;
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t executable,
                                                       cudaGraphNode_t node, void *to,
                                                       const void *symbol, size_t bytes,
                                                       size_t offset, enum cudaMemcpyKind kind)
{
    void *from = NULL;
    cudaError_t error = enter_with_symbol(symbol, offset, bytes, &from);
    return error == cudaSuccess
               ? cudaGraphExecMemcpyNodeSetParams1D(executable, node, to, from, bytes, kind)
               : error;
}

_Static_assert(sizeof(struct cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS), "same layout");

static const CUDA_MEMSET_NODE_PARAMS *memset_in(const struct cudaMemsetParams *parameters)
{
    return (const CUDA_MEMSET_NODE_PARAMS *)(const void *)parameters;
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t count,
                                   const struct cudaMemsetParams *parameters)
{
    return CALL(cuGraphAddMemsetNode, 10000, node, graph, dependencies, count,
                memset_in(parameters), gpusim_current_context());
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams *parameters)
{
    return CALL(cuGraphMemsetNodeGetParams, 10000, node,
                (CUDA_MEMSET_NODE_PARAMS *)(void *)parameters);
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemsetParams *parameters)
{
    return CALL(cuGraphMemsetNodeSetParams, 10000, node, memset_in(parameters));
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const struct cudaMemsetParams *parameters)
{
    return CALL(cuGraphExecMemsetNodeSetParams, 10020, executable, node, memset_in(parameters),
                gpusim_current_context());
}
