/*
 * Adding nodes to graphs, each type through its own function and all through the generic one. Every
 * type ends as an operation (stream.h).
 */
#include "graph.h"
#include "memory.h"
#include "newer.h"

/* Adds a node to the graph of a handle; on failure drops what the operation owns. */
static CUresult add_node(CUgraphNode *node, CUgraph handle, const CUgraphNode *dependencies,
                         size_t count, struct gpusim_operation operation)
{
    struct gpusim_graph *graph = GPUSIM_FIND(handle, GPUSIM_TYPE_GRAPH);
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    if (node && graph)
        result = gpusim_graph_add(graph, dependencies, count, &operation, node);
    if (result != CUDA_SUCCESS)
        gpusim_operation_drop(&operation);
    return result;
}

CUDA_KERNEL_NODE_PARAMS_v3 gpusim_kernel_of_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *old)
{
    return (CUDA_KERNEL_NODE_PARAMS_v3){
        .func = old->func,
        .gridDimX = old->gridDimX,
        .gridDimY = old->gridDimY,
        .gridDimZ = old->gridDimZ,
        .blockDimX = old->blockDimX,
        .blockDimY = old->blockDimY,
        .blockDimZ = old->blockDimZ,
        .sharedMemBytes = old->sharedMemBytes,
        .kernelParams = old->kernelParams,
        .extra = old->extra,
    };
}

CUDA_KERNEL_NODE_PARAMS_v3 gpusim_kernel_of_v2(const CUDA_KERNEL_NODE_PARAMS_v2 *old)
{
    return (CUDA_KERNEL_NODE_PARAMS_v3){
        .func = old->func,
        .gridDimX = old->gridDimX,
        .gridDimY = old->gridDimY,
        .gridDimZ = old->gridDimZ,
        .blockDimX = old->blockDimX,
        .blockDimY = old->blockDimY,
        .blockDimZ = old->blockDimZ,
        .sharedMemBytes = old->sharedMemBytes,
        .kernelParams = old->kernelParams,
        .extra = old->extra,
        .kern = old->kern,
        .ctx = old->ctx,
    };
}

CUresult gpusim_check_set_shape(unsigned int element)
{
    return element == 1 || element == 2 || element == 4 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- adding ---------------------------------------------------------------------------------- */

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                             size_t count)
{
    GPUSIM_ENTER();
    return add_node(node, graph, dependencies, count,
                    (struct gpusim_operation){.type = CU_GRAPH_NODE_TYPE_EMPTY});
}

static CUresult add_kernel(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                           size_t count, CUDA_KERNEL_NODE_PARAMS_v3 kernel)
{
    GPUSIM_TRY(gpusim_check_kernel(&kernel));
    return add_node(node, graph, dependencies, count,
                    (struct gpusim_operation){.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = kernel});
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS_v2 *parameters)
{
    GPUSIM_ENTER();
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    return add_kernel(node, graph, dependencies, count, gpusim_kernel_of_v2(parameters));
}

CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)
{
    GPUSIM_ENTER();
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    return add_kernel(node, graph, dependencies, count, gpusim_kernel_of_v1(parameters));
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const CUDA_MEMCPY3D *copy, CUcontext context)
{
    GPUSIM_ENTER();
    (void)context;
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    return add_node(
        node, graph, dependencies, count,
        (struct gpusim_operation){.type = CU_GRAPH_NODE_TYPE_MEMCPY, .copy = gpusim_box(copy)});
}

static CUresult add_set(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                        size_t count, CUDA_MEMSET_NODE_PARAMS_v2 set)
{
    GPUSIM_TRY(gpusim_check_set_shape(set.elementSize));
    return add_node(node, graph, dependencies, count,
                    (struct gpusim_operation){.type = CU_GRAPH_NODE_TYPE_MEMSET, .set = set});
}

CUDA_MEMSET_NODE_PARAMS_v2 gpusim_set_of_v1(const CUDA_MEMSET_NODE_PARAMS_v1 *old,
                                            CUcontext context)
{
    return (CUDA_MEMSET_NODE_PARAMS_v2){old->dst,   old->pitch,  old->value, old->elementSize,
                                        old->width, old->height, context};
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS_v1 *parameters,
                              CUcontext context)
{
    GPUSIM_ENTER();
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    return add_set(node, graph, dependencies, count, gpusim_set_of_v1(parameters, context));
}

static CUresult add_host(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                         size_t count, CUhostFn function, void *data)
{
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    return add_node(
        node, graph, dependencies, count,
        (struct gpusim_operation){.type = CU_GRAPH_NODE_TYPE_HOST, .host = {function, data}});
}

CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                            size_t count, const CUDA_HOST_NODE_PARAMS_v1 *parameters)
{
    GPUSIM_ENTER();
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    return add_host(node, graph, dependencies, count, parameters->fn, parameters->userData);
}

static CUresult add_event(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                          size_t count, CUgraphNodeType type, CUevent event)
{
    if (!GPUSIM_FIND(event, GPUSIM_TYPE_EVENT))
        return CUDA_ERROR_INVALID_VALUE;
    return add_node(node, graph, dependencies, count,
                    (struct gpusim_operation){.type = type, .event = event});
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph,
                                   const CUgraphNode *dependencies, size_t count, CUevent event)
{
    GPUSIM_ENTER();
    return add_event(node, graph, dependencies, count, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                 size_t count, CUevent event)
{
    GPUSIM_ENTER();
    return add_event(node, graph, dependencies, count, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

static CUresult add_child(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                          size_t count, CUgraph child_handle, bool move)
{
    struct gpusim_graph *child = GPUSIM_FIND(child_handle, GPUSIM_TYPE_GRAPH);
    struct gpusim_operation operation = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = child};

    if (!child || child_handle == graph || child->is_child)
        return CUDA_ERROR_INVALID_VALUE;
    if (move) {
        struct gpusim_graph *parent = GPUSIM_FIND(graph, GPUSIM_TYPE_GRAPH);

        if (!parent || !node)
            return CUDA_ERROR_INVALID_VALUE;
        GPUSIM_TRY(gpusim_graph_add(parent, dependencies, count, &operation, node));
        child->is_child = true;
        return CUDA_SUCCESS;
    }
    if (gpusim_graph_has_memory(child))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!gpusim_operation_keep(&operation))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return add_node(node, graph, dependencies, count, operation);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                  size_t count, CUgraph child)
{
    GPUSIM_ENTER();
    return add_child(node, graph, dependencies, count, child, false);
}

static CUresult add_batch(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                          size_t count, CUstreamBatchMemOpParams *items, unsigned int item_count)
{
    struct gpusim_operation operation = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                                         .batch = {items, item_count}};

    if (!items || item_count == 0 || item_count > 256)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpusim_operation_keep(&operation))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return add_node(node, graph, dependencies, count, operation);
}

CUresult cuGraphAddBatchMemOpNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                  size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS *parameters)
{
    GPUSIM_ENTER();
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    return add_batch(node, graph, dependencies, count, parameters->paramArray, parameters->count);
}

static CUresult add_alloc(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                          size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    const CUmemPoolProps *properties = &parameters->poolProps;
    struct gpusim_device *device;

    if (parameters->bytesize == 0)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_pool_place(&properties->location, properties->allocType, &device));
    if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return CUDA_ERROR_NOT_SUPPORTED; /* graph memory cannot be shared */
    struct gpusim_graph_memory *memory = gpusim_graph_memory_new(device, parameters->bytesize);
    if (!memory)
        return gpusim_allocation_end(CUDA_ERROR_OUT_OF_MEMORY);
    struct gpusim_operation operation = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                                         .alloc = {memory, *parameters}};
    operation.alloc.params.dptr = memory->address;
    operation.alloc.params.accessDescs = NULL; /* the caller's array does not outlive the call */
    operation.alloc.params.accessDescCount = 0;
    GPUSIM_TRY(add_node(node, graph, dependencies, count, operation));
    parameters->dptr = operation.alloc.params.dptr;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    GPUSIM_ENTER();
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    return add_alloc(node, graph, dependencies, count, parameters);
}

static CUresult add_free(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                         size_t count, CUdeviceptr pointer)
{
    if (!pointer)
        return CUDA_ERROR_INVALID_VALUE;
    return add_node(
        node, graph, dependencies, count,
        (struct gpusim_operation){.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = pointer});
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                               size_t count, CUdeviceptr pointer)
{
    GPUSIM_ENTER();
    return add_free(node, graph, dependencies, count, pointer);
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *edges, size_t count,
                           CUgraphNodeParams *parameters)
{
    GPUSIM_ENTER();
    (void)edges;
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    switch (parameters->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return add_kernel(node, graph, dependencies, count, parameters->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return add_node(
            node, graph, dependencies, count,
            (struct gpusim_operation){.type = CU_GRAPH_NODE_TYPE_MEMCPY,
                                      .copy = gpusim_box(&parameters->memcpy.copyParams)});
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return add_set(node, graph, dependencies, count, parameters->memset);
    case CU_GRAPH_NODE_TYPE_HOST:
        return add_host(node, graph, dependencies, count, parameters->host.fn,
                        parameters->host.userData);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return add_child(node, graph, dependencies, count, parameters->graph.graph,
                         parameters->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return add_node(node, graph, dependencies, count,
                        (struct gpusim_operation){.type = CU_GRAPH_NODE_TYPE_EMPTY});
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return add_event(node, graph, dependencies, count, parameters->type,
                         parameters->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return add_event(node, graph, dependencies, count, parameters->type,
                         parameters->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
        CUDA_MEM_ALLOC_NODE_PARAMS alloc = {
            .poolProps = parameters->alloc.poolProps,
            .bytesize = parameters->alloc.bytesize,
        };
        GPUSIM_TRY(add_alloc(node, graph, dependencies, count, &alloc));
        parameters->alloc.dptr = alloc.dptr;
        return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return add_free(node, graph, dependencies, count, parameters->free.dptr);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return add_batch(node, graph, dependencies, count, parameters->memOp.paramArray,
                         parameters->memOp.count);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                        size_t count, CUgraphNodeParams *parameters)
{
    return cuGraphAddNode_v2(node, graph, dependencies, NULL, count, parameters);
}

/* The prototype is that of the second; it only adds types of nodes. */
CUresult cuGraphAddNode_v3(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *edges, size_t count,
                           CUgraphNodeParams *parameters)
{
    return cuGraphAddNode_v2(node, graph, dependencies, edges, count, parameters);
}
