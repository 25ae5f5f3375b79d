/*
 * Executables: instantiating a graph, launching, updating.
 *
 * A launch first finds room for every allocation node, so that a refused launch has no effect and
 * counts nothing. Then the nodes run in order. A copy or set that fails then is an error of the
 * device: the launch has succeeded and the next synchronisation returns the error, as on a GPU.
 */
#include "graph.h"
#include "memory.h"

static uint64_t last_id; /* of an executable */

struct gpusim_node *gpusim_exec_node(CUgraphExec handle, CUgraphNode original)
{
    struct gpusim_exec *executable = GPUSIM_FIND(handle, GPUSIM_TYPE_EXEC);

    for (size_t i = 0; executable && i < executable->graph->node_count; i++) {
        if (executable->graph->nodes[i]->original_handle == (uint64_t)(uintptr_t)original)
            return executable->graph->nodes[i];
    }
    return NULL;
}

bool gpusim_exec_is_running(CUgraphExec handle)
{
    struct gpusim_exec *executable = GPUSIM_FIND(handle, GPUSIM_TYPE_EXEC);

    return executable && executable->launches;
}

/* Puts a graph and its child graphs into order. */
static bool sort_all(struct gpusim_graph *graph)
{
    for (size_t i = 0; i < graph->node_count; i++) {
        if (graph->nodes[i]->operation.type == CU_GRAPH_NODE_TYPE_GRAPH &&
            !sort_all(graph->nodes[i]->operation.child))
            return false;
    }
    return gpusim_graph_sort(graph);
}

static CUresult instantiate_exec(CUgraphExec *handle, CUgraph graph_handle,
                                 unsigned long long flags)
{
    const unsigned long long known =
        CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
        CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    struct gpusim_graph *graph = GPUSIM_FIND(graph_handle, GPUSIM_TYPE_GRAPH);

    if (!handle || !graph || graph->is_child || (flags & ~known))
        return CUDA_ERROR_INVALID_VALUE;
    /* A graph with memory nodes can have only one executable at a time. */
    const struct gpusim_exec *other = gpusim_object_of(graph->executable, GPUSIM_TYPE_EXEC);
    if (gpusim_graph_has_memory(graph) && other && other->id == graph->executable_id)
        return CUDA_ERROR_INVALID_VALUE;

    struct gpusim_exec *executable = gpusim_object_new(sizeof(*executable), GPUSIM_TYPE_EXEC, NULL);
    struct gpusim_context *context;
    CUresult taken =
        executable && gpusim_current(&context) == CUDA_SUCCESS
            ? gpusim_object_take(&executable->base, context->device, GPUSIM_TAKES_GRAPH)
            : CUDA_SUCCESS;
    if (taken != CUDA_SUCCESS) {
        gpusim_object_delete(executable);
        return taken;
    }
    struct gpusim_graph *copy = executable ? gpusim_graph_copy(graph) : NULL;
    if (!copy) {
        if (executable)
            gpusim_object_delete(executable);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    copy->is_child = true; /* no other function may destroy or instantiate it */
    if (!sort_all(copy)) {
        gpusim_graph_delete(copy);
        gpusim_object_delete(executable);
        return CUDA_ERROR_INVALID_VALUE;
    }
    executable->graph = copy;
    executable->flags = flags;
    executable->id = ++last_id;
    graph->executable = executable->base.handle;
    graph->executable_id = executable->id;
    *handle = GPUSIM_HANDLE(CUgraphExec, executable);
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *handle, CUgraph graph, unsigned long long flags)
{
    GPUSIM_ENTER();
    return instantiate_exec(handle, graph, flags);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *handle, CUgraph graph, CUgraphNode *error_node,
                               char *log, size_t log_size)
{
    GPUSIM_ENTER();
    if (error_node)
        *error_node = NULL;
    if (log && log_size)
        log[0] = '\0';
    return instantiate_exec(handle, graph, 0);
}

CUresult cuGraphInstantiate(CUgraphExec *handle, CUgraph graph, CUgraphNode *error_node, char *log,
                            size_t log_size)
{
    return cuGraphInstantiate_v2(handle, graph, error_node, log, log_size);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *handle, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
    GPUSIM_ENTER();
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = instantiate_exec(handle, graph, parameters->flags);
    parameters->hErrNode_out = NULL;
    parameters->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                             : result == CUDA_ERROR_INVALID_VALUE
                                 ? CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
                                 : CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}

CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t *flags)
{
    GPUSIM_ENTER();
    struct gpusim_exec *executable = GPUSIM_FIND(handle, GPUSIM_TYPE_EXEC);

    if (!executable || !flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = executable->flags;
    return CUDA_SUCCESS;
}

static void delete_if_unused(struct gpusim_exec *executable)
{
    struct gpusim_graph *graph = executable->graph;

    if (!executable->destroyed || executable->launches)
        return;
    gpusim_object_delete(executable);
    gpusim_graph_delete(graph);
}

/* An executable that its handle still names. */
static struct gpusim_exec *exec_of(CUgraphExec handle)
{
    struct gpusim_exec *executable = GPUSIM_FIND(handle, GPUSIM_TYPE_EXEC);

    return executable && !executable->destroyed ? executable : NULL;
}

CUresult cuGraphExecDestroy(CUgraphExec handle)
{
    GPUSIM_ENTER();
    struct gpusim_exec *executable = exec_of(handle);

    if (!executable)
        return CUDA_ERROR_INVALID_VALUE;
    executable->destroyed = true;
    delete_if_unused(executable);
    return CUDA_SUCCESS;
}

/* ---- launching ------------------------------------------------------------------------------- */

/* Calls the function for each allocation node, child graphs included, until it returns false. */
static bool each_allocation(const struct gpusim_graph *graph,
                            bool (*function)(struct gpusim_graph_memory *, void *), void *data)
{
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct gpusim_operation *operation = &graph->nodes[i]->operation;

        if (operation->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
            !function(operation->alloc.memory, data))
            return false;
        if (operation->type == CU_GRAPH_NODE_TYPE_GRAPH &&
            !each_allocation(operation->child, function, data))
            return false;
    }
    return true;
}

static bool is_free(struct gpusim_graph_memory *memory, void *unused)
{
    (void)unused;
    return !memory->allocated;
}

/* Memory left over from the last launch keeps its storage; the others get theirs. */
static bool commit(struct gpusim_graph_memory *memory, void *committed)
{
    if (!memory->allocated && !gpusim_graph_memory_commit(memory))
        return false;
    ++*(size_t *)committed;
    return true;
}

static bool uncommit(struct gpusim_graph_memory *memory, void *committed)
{
    size_t *left = committed;

    if ((*left)-- == 0)
        return false;
    if (!memory->allocated)
        gpusim_graph_memory_uncommit(memory);
    return true;
}

/* Ends the lives that the last launch left over, keeping their storage for this one. */
static bool free_left_over(struct gpusim_graph_memory *memory, void *unused)
{
    struct gpusim_allocation *allocation =
        memory->allocated ? gpusim_allocation_from(memory->address) : NULL;

    (void)unused;
    if (allocation && allocation->node == memory) {
        gpusim_graph_memory_commit(
            memory); /* lies in granules that are committed, so this cannot fail */
        gpusim_allocation_free(allocation, false);
    }
    return true;
}

static CUresult run_nodes(const struct gpusim_graph *graph)
{
    CUresult first = CUDA_SUCCESS;

    for (size_t i = 0; i < graph->node_count; i++) {
        struct gpusim_node *node = graph->nodes[i];
        CUresult result;

        if (node->disabled)
            continue;
        if (node->operation.type == CU_GRAPH_NODE_TYPE_GRAPH)
            result = run_nodes(node->operation.child);
        else if (node->operation.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
            result = gpusim_graph_memory_allocate(node->operation.alloc.memory);
        else if (node->operation.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
            result = gpusim_free_address(node->operation.free, false);
        else
            result = gpusim_execute(&node->operation);
        if (first == CUDA_SUCCESS)
            first = result;
    }
    return first;
}

static CUresult launch_exec(struct gpusim_exec *executable)
{
    struct gpusim_graph *graph = executable->graph;
    size_t committed = 0;

    if (!(executable->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) &&
        !each_allocation(graph, is_free, NULL))
        return CUDA_ERROR_INVALID_VALUE;
    if (!each_allocation(graph, commit, &committed)) {
        each_allocation(graph, uncommit, &committed);
        return gpusim_allocation_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    each_allocation(graph, free_left_over, NULL);
    executable->launches++;
    if (run_nodes(graph) != CUDA_SUCCESS)
        gpusim_device_error =
            CUDA_ERROR_UNKNOWN; /* told once: 700 would fail the device for good */
    executable->launches--;
    delete_if_unused(executable);
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle)
{
    GPUSIM_ENTER();
    struct gpusim_exec *executable = exec_of(handle);
    struct gpusim_stream *stream;

    if (!executable)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_stream_of(stream_handle, &stream));
    if (!stream->capture)
        return launch_exec(executable);
    if (gpusim_graph_has_memory(executable->graph))
        return CUDA_ERROR_NOT_SUPPORTED;
    struct gpusim_operation operation = {.type = CU_GRAPH_NODE_TYPE_GRAPH,
                                         .child = executable->graph};
    return gpusim_capture_operation(stream, &operation);
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream stream_handle)
{
    GPUSIM_ENTER();
    struct gpusim_stream *stream;

    GPUSIM_TRY(gpusim_stream_of(stream_handle, &stream));
    return exec_of(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- changing an executable ------------------------------------------------------------------ */

static CUgraphExecUpdateResult compare(const struct gpusim_graph *old,
                                       const struct gpusim_graph *now)
{
    if (old->node_count != now->node_count)
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < old->node_count; i++) {
        if (old->nodes[i]->operation.type != now->nodes[i]->operation.type)
            return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        if (old->nodes[i]->dependency_count != now->nodes[i]->dependency_count)
            return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle,
                              CUgraphExecUpdateResultInfo *result)
{
    GPUSIM_ENTER();
    struct gpusim_exec *executable = exec_of(handle);
    struct gpusim_graph *graph = GPUSIM_FIND(graph_handle, GPUSIM_TYPE_GRAPH);

    if (!executable || !graph || !result)
        return CUDA_ERROR_INVALID_VALUE;
    *result = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED};
    if (gpusim_graph_has_memory(graph) || executable->launches)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    struct gpusim_graph *copy = gpusim_graph_copy(graph);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result->result = sort_all(copy) ? compare(executable->graph, copy) : CU_GRAPH_EXEC_UPDATE_ERROR;
    if (result->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
        gpusim_graph_delete(copy);
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    /* Lookups by nodes of the graph that the executable was made of still find its nodes. */
    for (size_t i = 0; i < copy->node_count; i++) {
        copy->nodes[i]->original_handle = executable->graph->nodes[i]->original_handle;
        copy->nodes[i]->disabled = executable->graph->nodes[i]->disabled;
    }
    struct gpusim_graph *old = executable->graph;
    copy->is_child = true;
    executable->graph = copy;
    gpusim_graph_delete(old);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate(CUgraphExec handle, CUgraph graph, CUgraphNode *error_node,
                           CUgraphExecUpdateResult *result)
{
    CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
    CUresult error = cuGraphExecUpdate_v2(handle, graph, &info);

    if (error_node)
        *error_node = info.errorNode;
    if (result)
        *result = info.result;
    return error;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode original, unsigned int enabled)
{
    GPUSIM_ENTER();
    struct gpusim_node *node = gpusim_exec_node(handle, original);
    CUgraphNodeType type = node ? node->operation.type : CU_GRAPH_NODE_TYPE_EMPTY;

    /* Only these can be switched off. */
    if (type != CU_GRAPH_NODE_TYPE_KERNEL && type != CU_GRAPH_NODE_TYPE_MEMCPY &&
        type != CU_GRAPH_NODE_TYPE_MEMSET)
        return CUDA_ERROR_INVALID_VALUE;
    node->disabled = !enabled;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode original, unsigned int *enabled)
{
    GPUSIM_ENTER();
    struct gpusim_node *node = gpusim_exec_node(handle, original);

    if (!node || !enabled)
        return CUDA_ERROR_INVALID_VALUE;
    *enabled = !node->disabled;
    return CUDA_SUCCESS;
}
