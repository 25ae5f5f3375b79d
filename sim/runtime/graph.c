/*
 * Graphs as a whole: creation, structure, executables, memory attributes, user objects. Nodes are
 * in graph_node.c and graph_generic_node.c, launches in stream_work.c.
 */
#include "runtime.h"

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
    return CALL(cuGraphCreate, 10000, graph, flags);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    return CALL(cuGraphDestroy, 10000, graph);
}

cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t original)
{
    return CALL(cuGraphClone, 10000, clone, original);
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *node, cudaGraphNode_t original,
                                     cudaGraph_t clone)
{
    return CALL(cuGraphNodeFindInClone, 10000, node, original, clone);
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
    return CALL(cuGraphNodeGetType, 10000, node, (CUgraphNodeType *)(void *)type);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    return CALL(cuGraphGetNodes, 10000, graph, nodes, count);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    return CALL(cuGraphGetRootNodes, 10000, graph, nodes, count);
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node)
{
    return CALL(cuGraphDestroyNode, 10000, node);
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags)
{
    return CALL(cuGraphDebugDotPrint, 11030, graph, path, flags);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                 unsigned long long flags)
{
    return CALL(cuGraphInstantiateWithFlags, 11040, executable, graph, flags);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph,
                                          unsigned long long flags)
{
    return cudaGraphInstantiate(executable, graph, flags);
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t executable, unsigned long long *flags)
{
    return CALL(cuGraphExecGetFlags, 12000, executable, (cuuint64_t *)(void *)flags);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable)
{
    return CALL(cuGraphExecDestroy, 10000, executable);
}

_Static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo),
               "same layout");

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *result)
{
    return CALL(cuGraphExecUpdate, 12000, executable, graph,
                (CUgraphExecUpdateResultInfo *)(void *)result);
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node,
                                    unsigned int enabled)
{
    return CALL(cuGraphNodeSetEnabled, 11060, executable, node, enabled);
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node,
                                    unsigned int *enabled)
{
    return CALL(cuGraphNodeGetEnabled, 11060, executable, node, enabled);
}

cudaError_t cudaDeviceGraphMemTrim(int device)
{
    return CALL(cuDeviceGraphMemTrim, 11040, device);
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute,
                                           void *value)
{
    return CALL(cuDeviceGetGraphMemAttribute, 11040, device, (CUgraphMem_attribute)attribute,
                value);
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute,
                                           void *value)
{
    return CALL(cuDeviceSetGraphMemAttribute, 11040, device, (CUgraphMem_attribute)attribute,
                value);
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *data, cudaHostFn_t destroy,
                                 unsigned int references, unsigned int flags)
{
    return CALL(cuUserObjectCreate, 11030, object, data, destroy, references, flags);
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count)
{
    return CALL(cuUserObjectRetain, 11030, object, count);
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count)
{
    return CALL(cuUserObjectRelease, 11030, object, count);
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                      unsigned int count, unsigned int flags)
{
    return CALL(cuGraphRetainUserObject, 11030, graph, object, count, flags);
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                       unsigned int count)
{
    return CALL(cuGraphReleaseUserObject, 11030, graph, object, count);
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
                                             unsigned int initial, unsigned int flags)
{
    return CALL(cuGraphConditionalHandleCreate, 12030, (CUgraphConditionalHandle *)handle, graph,
                gpusim_current_context(), initial, flags);
}
