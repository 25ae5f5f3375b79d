/*
 * Nodes of graphs by type: reading and changing their parameters, in a graph and in an executable.
 */
#include "graph.h"

/* ---- reading --------------------------------------------------------------------------------- */

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *type)
{
    GPUSIM_ENTER();
    struct gpusim_node *node = GPUSIM_FIND(handle, GPUSIM_TYPE_NODE);

    if (!node || !type)
        return CUDA_ERROR_INVALID_VALUE;
    *type = node->operation.type;
    return CUDA_SUCCESS;
}

/* The operation of a node of that type, or NULL. */
static struct gpusim_operation *operation_of(CUgraphNode handle, CUgraphNodeType type)
{
    struct gpusim_node *node = GPUSIM_FIND(handle, GPUSIM_TYPE_NODE);

    return node && node->operation.type == type ? &node->operation : NULL;
}

#define READ_NODE(handle, node_type, out)                                                          \
    GPUSIM_ENTER();                                                                                \
    const struct gpusim_operation *operation = operation_of(handle, node_type);                    \
    if (!operation || !(out))                                                                      \
    return CUDA_ERROR_INVALID_VALUE

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v2 *parameters)
{
    READ_NODE(handle, CU_GRAPH_NODE_TYPE_KERNEL, parameters);
    const CUDA_KERNEL_NODE_PARAMS_v3 *kernel = &operation->kernel;
    *parameters = (CUDA_KERNEL_NODE_PARAMS_v2){
        .func = kernel->func,
        .gridDimX = kernel->gridDimX,
        .gridDimY = kernel->gridDimY,
        .gridDimZ = kernel->gridDimZ,
        .blockDimX = kernel->blockDimX,
        .blockDimY = kernel->blockDimY,
        .blockDimZ = kernel->blockDimZ,
        .sharedMemBytes = kernel->sharedMemBytes,
        .kernelParams = kernel->kernelParams,
        .extra = kernel->extra,
        .kern = kernel->kern,
        .ctx = kernel->ctx,
    };
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1 *parameters)
{
    READ_NODE(handle, CU_GRAPH_NODE_TYPE_KERNEL, parameters);
    const CUDA_KERNEL_NODE_PARAMS_v3 *kernel = &operation->kernel;
    *parameters = (CUDA_KERNEL_NODE_PARAMS_v1){
        .func = kernel->func,
        .gridDimX = kernel->gridDimX,
        .gridDimY = kernel->gridDimY,
        .gridDimZ = kernel->gridDimZ,
        .blockDimX = kernel->blockDimX,
        .blockDimY = kernel->blockDimY,
        .blockDimZ = kernel->blockDimZ,
        .sharedMemBytes = kernel->sharedMemBytes,
        .kernelParams = kernel->kernelParams,
        .extra = kernel->extra,
    };
    return CUDA_SUCCESS;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D *copy)
{
    READ_NODE(handle, CU_GRAPH_NODE_TYPE_MEMCPY, copy);
    const CUDA_MEMCPY3D_PEER *box = &operation->copy;
    *copy = (CUDA_MEMCPY3D){
        .srcXInBytes = box->srcXInBytes,
        .srcY = box->srcY,
        .srcZ = box->srcZ,
        .srcMemoryType = box->srcMemoryType,
        .srcHost = box->srcHost,
        .srcDevice = box->srcDevice,
        .srcArray = box->srcArray,
        .srcPitch = box->srcPitch,
        .srcHeight = box->srcHeight,
        .dstXInBytes = box->dstXInBytes,
        .dstY = box->dstY,
        .dstZ = box->dstZ,
        .dstMemoryType = box->dstMemoryType,
        .dstHost = box->dstHost,
        .dstDevice = box->dstDevice,
        .dstArray = box->dstArray,
        .dstPitch = box->dstPitch,
        .dstHeight = box->dstHeight,
        .WidthInBytes = box->WidthInBytes,
        .Height = box->Height,
        .Depth = box->Depth,
    };
    return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS_v1 *parameters)
{
    READ_NODE(handle, CU_GRAPH_NODE_TYPE_MEMSET, parameters);
    const CUDA_MEMSET_NODE_PARAMS_v2 *set = &operation->set;
    *parameters = (CUDA_MEMSET_NODE_PARAMS_v1){set->dst,         set->pitch, set->value,
                                               set->elementSize, set->width, set->height};
    return CUDA_SUCCESS;
}

CUresult cuGraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS_v1 *parameters)
{
    READ_NODE(handle, CU_GRAPH_NODE_TYPE_HOST, parameters);
    *parameters = (CUDA_HOST_NODE_PARAMS_v1){operation->host.fn, operation->host.userData};
    return CUDA_SUCCESS;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph *graph)
{
    READ_NODE(handle, CU_GRAPH_NODE_TYPE_GRAPH, graph);
    *graph = GPUSIM_HANDLE(CUgraph, operation->child);
    return CUDA_SUCCESS;
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode handle, CUevent *event)
{
    READ_NODE(handle, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
    *event = operation->event;
    return CUDA_SUCCESS;
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode handle, CUevent *event)
{
    READ_NODE(handle, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
    *event = operation->event;
    return CUDA_SUCCESS;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    READ_NODE(handle, CU_GRAPH_NODE_TYPE_MEM_ALLOC, parameters);
    *parameters = operation->alloc.params;
    return CUDA_SUCCESS;
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr *pointer)
{
    READ_NODE(handle, CU_GRAPH_NODE_TYPE_MEM_FREE, pointer);
    *pointer = operation->free;
    return CUDA_SUCCESS;
}

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode handle,
                                        CUDA_BATCH_MEM_OP_NODE_PARAMS *parameters)
{
    READ_NODE(handle, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, parameters);
    *parameters = (CUDA_BATCH_MEM_OP_NODE_PARAMS){.count = operation->batch.count,
                                                  .paramArray = operation->batch.items};
    return CUDA_SUCCESS;
}

/* ---- changing: in a graph (executable NULL) or what an executable made of the node ----------- */

/* The operation to be changed, or NULL if there is no such node or it has another type. */
static struct gpusim_operation *target(CUgraphExec executable, CUgraphNode handle,
                                       CUgraphNodeType type)
{
    if (!executable)
        return operation_of(handle, type);
    struct gpusim_node *node = gpusim_exec_node(executable, handle);
    return node && node->operation.type == type ? &node->operation : NULL;
}

static CUresult set_kernel(CUgraphExec executable, CUgraphNode node,
                           CUDA_KERNEL_NODE_PARAMS_v3 kernel)
{
    struct gpusim_operation *operation = target(executable, node, CU_GRAPH_NODE_TYPE_KERNEL);

    if (!operation)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_check_kernel(&kernel));
    operation->kernel = kernel;
    return CUDA_SUCCESS;
}

static CUresult set_copy(CUgraphExec executable, CUgraphNode node, const CUDA_MEMCPY3D *copy)
{
    struct gpusim_operation *operation = target(executable, node, CU_GRAPH_NODE_TYPE_MEMCPY);

    if (!operation)
        return CUDA_ERROR_INVALID_VALUE;
    operation->copy = gpusim_box(copy);
    return CUDA_SUCCESS;
}

static CUresult set_set(CUgraphExec executable, CUgraphNode node, CUDA_MEMSET_NODE_PARAMS_v2 set)
{
    struct gpusim_operation *operation = target(executable, node, CU_GRAPH_NODE_TYPE_MEMSET);

    if (!operation)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_check_set_shape(set.elementSize));
    operation->set = set;
    return CUDA_SUCCESS;
}

static CUresult set_host(CUgraphExec executable, CUgraphNode node, CUhostFn function, void *data)
{
    struct gpusim_operation *operation = target(executable, node, CU_GRAPH_NODE_TYPE_HOST);

    if (!operation || !function)
        return CUDA_ERROR_INVALID_VALUE;
    operation->host = (CUDA_HOST_NODE_PARAMS_v2){.fn = function, .userData = data};
    return CUDA_SUCCESS;
}

static CUresult set_event(CUgraphExec executable, CUgraphNode node, CUgraphNodeType type,
                          CUevent event)
{
    struct gpusim_operation *operation = target(executable, node, type);

    if (!operation || !GPUSIM_FIND(event, GPUSIM_TYPE_EVENT))
        return CUDA_ERROR_INVALID_VALUE;
    operation->event = event;
    return CUDA_SUCCESS;
}

static CUresult set_batch(CUgraphExec executable, CUgraphNode node, CUstreamBatchMemOpParams *items,
                          unsigned int count)
{
    struct gpusim_operation *operation = target(executable, node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    struct gpusim_operation changed = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                                       .batch = {items, count}};

    if (!operation || !items || count == 0 || count > 256)
        return CUDA_ERROR_INVALID_VALUE;
    if (gpusim_exec_is_running(executable))
        return CUDA_ERROR_ILLEGAL_STATE;
    if (!gpusim_operation_keep(&changed))
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpusim_operation_drop(operation);
    *operation = changed;
    return CUDA_SUCCESS;
}

static CUresult set_child(CUgraphExec executable, CUgraphNode node, CUgraph child_handle)
{
    struct gpusim_operation *operation = target(executable, node, CU_GRAPH_NODE_TYPE_GRAPH);
    struct gpusim_operation changed = {.type = CU_GRAPH_NODE_TYPE_GRAPH,
                                       .child = GPUSIM_FIND(child_handle, GPUSIM_TYPE_GRAPH)};

    if (!operation || !changed.child || gpusim_graph_has_memory(changed.child))
        return CUDA_ERROR_INVALID_VALUE;
    if (gpusim_exec_is_running(executable))
        return CUDA_ERROR_ILLEGAL_STATE;
    if (!gpusim_operation_keep(&changed))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct gpusim_operation old = *operation;
    *operation = changed;
    gpusim_graph_sort(changed.child);
    gpusim_operation_drop(&old);
    return CUDA_SUCCESS;
}

static CUresult set_any(CUgraphExec executable, CUgraphNode node, CUgraphNodeParams *parameters)
{
    switch (parameters->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return set_kernel(executable, node, parameters->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return set_copy(executable, node, &parameters->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return set_set(executable, node, parameters->memset);
    case CU_GRAPH_NODE_TYPE_HOST:
        return set_host(executable, node, parameters->host.fn, parameters->host.userData);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return set_child(executable, node, parameters->graph.graph);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return set_event(executable, node, parameters->type, parameters->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return set_event(executable, node, parameters->type, parameters->eventWait.event);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return set_batch(executable, node, parameters->memOp.paramArray, parameters->memOp.count);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

/* A change through an exported function: lock, then the call. */
#define CHANGE(given, call)                                                                        \
    GPUSIM_ENTER();                                                                                \
    return (given) ? (call) : CUDA_ERROR_INVALID_VALUE

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *parameters)
{
    CHANGE(parameters, set_any(NULL, node, parameters));
}

CUresult cuGraphExecNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                  CUgraphNodeParams *parameters)
{
    CHANGE(parameters && executable, set_any(executable, node, parameters));
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node,
                                       const CUDA_KERNEL_NODE_PARAMS_v2 *parameters)
{
    CHANGE(parameters, set_kernel(NULL, node, gpusim_kernel_of_v2(parameters)));
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)
{
    CHANGE(parameters, set_kernel(NULL, node, gpusim_kernel_of_v1(parameters)));
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v2 *parameters)
{
    CHANGE(parameters && executable, set_kernel(executable, node, gpusim_kernel_of_v2(parameters)));
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)
{
    CHANGE(parameters && executable, set_kernel(executable, node, gpusim_kernel_of_v1(parameters)));
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *copy)
{
    CHANGE(copy, set_copy(NULL, node, copy));
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                        const CUDA_MEMCPY3D *copy, CUcontext context)
{
    (void)context;
    CHANGE(copy && executable, set_copy(executable, node, copy));
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v1 *parameters)
{
    CHANGE(parameters, set_set(NULL, node, gpusim_set_of_v1(parameters, NULL)));
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS_v1 *parameters,
                                        CUcontext context)
{
    CHANGE(parameters && executable,
           set_set(executable, node, gpusim_set_of_v1(parameters, context)));
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS_v1 *parameters)
{
    CHANGE(parameters, set_host(NULL, node, parameters->fn, parameters->userData));
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS_v1 *parameters)
{
    CHANGE(parameters && executable,
           set_host(executable, node, parameters->fn, parameters->userData));
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event)
{
    CHANGE(event, set_event(NULL, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event));
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec executable, CUgraphNode node, CUevent event)
{
    CHANGE(executable, set_event(executable, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event));
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event)
{
    CHANGE(event, set_event(NULL, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event));
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec executable, CUgraphNode node, CUevent event)
{
    CHANGE(executable, set_event(executable, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event));
}

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node,
                                        const CUDA_BATCH_MEM_OP_NODE_PARAMS *parameters)
{
    CHANGE(parameters, set_batch(NULL, node, parameters->paramArray, parameters->count));
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS *parameters)
{
    CHANGE(parameters && executable,
           set_batch(executable, node, parameters->paramArray, parameters->count));
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec executable, CUgraphNode node, CUgraph child)
{
    CHANGE(executable, set_child(executable, node, child));
}

/* ---- attributes of kernel nodes -------------------------------------------------------------- */

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID attribute,
                                       CUkernelNodeAttrValue *value)
{
    GPUSIM_ENTER();
    struct gpusim_node *node = GPUSIM_FIND(handle, GPUSIM_TYPE_NODE);

    if (!node || !value || (int)attribute < 0 || attribute >= CU_LAUNCH_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *value = node->attributes[attribute];
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID attribute,
                                       const CUkernelNodeAttrValue *value)
{
    GPUSIM_ENTER();
    struct gpusim_node *node = GPUSIM_FIND(handle, GPUSIM_TYPE_NODE);

    if (!node || !value || (int)attribute < 0 || attribute >= CU_LAUNCH_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    node->attributes[attribute] = *value;
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to_handle, CUgraphNode from_handle)
{
    GPUSIM_ENTER();
    struct gpusim_node *to = GPUSIM_FIND(to_handle, GPUSIM_TYPE_NODE);
    struct gpusim_node *from = GPUSIM_FIND(from_handle, GPUSIM_TYPE_NODE);

    if (!to || !from)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < CU_LAUNCH_ATTRIBUTE_MAX; i++)
        to->attributes[i] = from->attributes[i];
    return CUDA_SUCCESS;
}
