/*
 * Graphs as structures: nodes, dependencies, copies, order, and the functions that look at them.
 */
#include "graph.h"
#include "memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpusim_graph *gpusim_graph_new(void)
{
    return gpusim_object_new(sizeof(struct gpusim_graph), GPUSIM_TYPE_GRAPH, NULL);
}

/* ---- operations ------------------------------------------------------------------------------ */

bool gpusim_operation_keep(struct gpusim_operation *operation)
{
    switch (operation->type) {
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        operation->alloc.memory->references++;
        return true;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        operation->child = gpusim_graph_copy(operation->child);
        if (operation->child)
            operation->child->is_child = true;
        return operation->child != NULL;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
        size_t bytes = operation->batch.count * sizeof(*operation->batch.items);
        CUstreamBatchMemOpParams *items = malloc(bytes);

        if (!items)
            return false;
        memcpy(items, operation->batch.items, bytes);
        operation->batch.items = items;
        return true;
    }
    default:
        return true;
    }
}

void gpusim_operation_drop(struct gpusim_operation *operation)
{
    if (operation->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        gpusim_graph_memory_release(operation->alloc.memory);
    else if (operation->type == CU_GRAPH_NODE_TYPE_GRAPH)
        gpusim_graph_delete(operation->child);
    else if (operation->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
        free(operation->batch.items);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void delete_node(struct gpusim_node *node)
{
    gpusim_operation_drop(&node->operation);
    free(node->dependencies);
    gpusim_object_delete(node);
}

static bool depends(const struct gpusim_node *node, const struct gpusim_node *on)
{
    for (size_t i = 0; i < node->dependency_count; i++) {
        if (node->dependencies[i] == on)
            return true;
    }
    return false;
}

static bool add_dependency(struct gpusim_node *node, struct gpusim_node *on)
{
    struct gpusim_node **grown =
        realloc(node->dependencies, (node->dependency_count + 1) * sizeof(struct gpusim_node *));
    if (!grown)
        return false;
    node->dependencies = grown;
    node->dependencies[node->dependency_count++] = on;
    return true;
}

static void remove_dependency(struct gpusim_node *node, const struct gpusim_node *on)
{
    for (size_t i = 0; i < node->dependency_count; i++) {
        if (node->dependencies[i] == on) {
            memmove(&node->dependencies[i], &node->dependencies[i + 1],
                    (--node->dependency_count - i) * sizeof(struct gpusim_node *));
            return;
        }
    }
}

static struct gpusim_node *append_operation(struct gpusim_graph *graph,
                                            const struct gpusim_operation *operation)
{
    struct gpusim_node **grown =
        realloc(graph->nodes, (graph->node_count + 1) * sizeof(struct gpusim_node *));
    if (!grown)
        return NULL;
    graph->nodes = grown;

    struct gpusim_node *node = gpusim_object_new(sizeof(*node), GPUSIM_TYPE_NODE, NULL);
    if (!node)
        return NULL;
    node->graph = graph;
    node->operation = *operation;
    graph->nodes[graph->node_count++] = node;
    return node;
}

static struct gpusim_node *node_in(CUgraphNode handle, const struct gpusim_graph *graph)
{
    struct gpusim_node *node = GPUSIM_FIND(handle, GPUSIM_TYPE_NODE);

    return node && node->graph == graph ? node : NULL;
}

CUresult gpusim_graph_add(struct gpusim_graph *graph, const CUgraphNode *dependencies, size_t count,
                          const struct gpusim_operation *operation, CUgraphNode *handle)
{
    if (count && !dependencies)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (!node_in(dependencies[i], graph))
            return CUDA_ERROR_INVALID_VALUE;
    }
    struct gpusim_node *node = append_operation(graph, operation);
    if (!node)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (!add_dependency(node, node_in(dependencies[i], graph))) {
            graph->node_count--;
            free(node->dependencies);
            gpusim_object_delete(node);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    *handle = GPUSIM_HANDLE(CUgraphNode, node);
    return CUDA_SUCCESS;
}

/* ---- whole graphs ---------------------------------------------------------------------------- */

void gpusim_graph_delete(struct gpusim_graph *graph)
{
    struct gpusim_retained *retained = graph->retained;
    size_t retained_count = graph->retained_count;

    for (size_t i = 0; i < graph->node_count; i++)
        delete_node(graph->nodes[i]);
    free(graph->nodes);
    gpusim_object_delete(graph);
    /* Last, because destructors run without the lock. */
    for (size_t i = 0; i < retained_count; i++)
        gpusim_user_object_release(retained[i].object, retained[i].count);
    free(retained);
}

static size_t position(const struct gpusim_graph *graph, const struct gpusim_node *node)
{
    size_t i = 0;

    while (graph->nodes[i] != node)
        i++;
    return i;
}

static bool copy_nodes(struct gpusim_graph *copy, const struct gpusim_graph *graph)
{
    for (size_t i = 0; i < graph->node_count; i++) {
        struct gpusim_operation operation = graph->nodes[i]->operation;

        if (!gpusim_operation_keep(&operation))
            return false;
        struct gpusim_node *node = append_operation(copy, &operation);
        if (!node) {
            gpusim_operation_drop(&operation);
            return false;
        }
        graph->nodes[i]->index = i;
        node->original_handle = graph->nodes[i]->base.handle;
        memcpy(node->attributes, graph->nodes[i]->attributes, sizeof(node->attributes));
    }
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct gpusim_node *node = graph->nodes[i];

        for (size_t j = 0; j < node->dependency_count; j++) {
            if (!add_dependency(copy->nodes[i], copy->nodes[node->dependencies[j]->index]))
                return false;
        }
    }
    return true;
}

struct gpusim_graph *gpusim_graph_copy(const struct gpusim_graph *graph)
{
    struct gpusim_graph *copy = gpusim_graph_new();
    bool complete = copy && copy_nodes(copy, graph);

    for (size_t i = 0; complete && i < graph->retained_count; i++) {
        graph->retained[i].object->references++;
        complete = gpusim_graph_retain(copy, graph->retained[i].object, 1);
        if (!complete)
            graph->retained[i].object->references--;
    }
    if (copy && !complete) {
        gpusim_graph_delete(copy);
        copy = NULL;
    }
    return copy;
}

bool gpusim_graph_sort(struct gpusim_graph *graph)
{
    struct gpusim_node **sorted = calloc(graph->node_count + 1, sizeof(struct gpusim_node *));
    size_t count = 0, before;

    if (!sorted)
        return false;
    for (size_t i = 0; i < graph->node_count; i++)
        graph->nodes[i]->visited = false;
    do { /* usually one pass, because programs add nodes in an order of execution */
        before = count;
        for (size_t i = 0; i < graph->node_count; i++) {
            struct gpusim_node *node = graph->nodes[i];
            bool ready = !node->visited;

            for (size_t j = 0; ready && j < node->dependency_count; j++)
                ready = node->dependencies[j]->visited;
            if (ready) {
                node->visited = true;
                sorted[count++] = node;
            }
        }
    } while (count > before && count < graph->node_count);
    bool complete = count == graph->node_count;
    if (complete && count > 0)
        memcpy(graph->nodes, sorted, count * sizeof(struct gpusim_node *));
    free(sorted);
    return complete;
}

bool gpusim_graph_has_memory(const struct gpusim_graph *graph)
{
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct gpusim_operation *operation = &graph->nodes[i]->operation;

        if (operation->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
            operation->type == CU_GRAPH_NODE_TYPE_MEM_FREE ||
            (operation->type == CU_GRAPH_NODE_TYPE_GRAPH &&
             gpusim_graph_has_memory(operation->child)))
            return true;
    }
    return false;
}

CUresult cuGraphCreate(CUgraph *handle, unsigned int flags)
{
    GPUSIM_ENTER();
    if (!handle || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct gpusim_graph *graph = gpusim_graph_new();
    if (!graph)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = GPUSIM_HANDLE(CUgraph, graph);
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph handle)
{
    GPUSIM_ENTER();
    struct gpusim_graph *graph = GPUSIM_FIND(handle, GPUSIM_TYPE_GRAPH);

    if (!graph || graph->is_child)
        return CUDA_ERROR_INVALID_VALUE;
    gpusim_graph_delete(graph);
    return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph *handle, CUgraph original)
{
    GPUSIM_ENTER();
    struct gpusim_graph *graph = GPUSIM_FIND(original, GPUSIM_TYPE_GRAPH);

    if (!handle || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (gpusim_graph_has_memory(graph))
        return CUDA_ERROR_NOT_SUPPORTED;
    struct gpusim_graph *copy = gpusim_graph_copy(graph);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = GPUSIM_HANDLE(CUgraph, copy);
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode *handle, CUgraphNode original, CUgraph clone)
{
    GPUSIM_ENTER();
    struct gpusim_graph *graph = GPUSIM_FIND(clone, GPUSIM_TYPE_GRAPH);

    if (!handle || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < graph->node_count; i++) {
        if (graph->nodes[i]->original_handle == (uint64_t)(uintptr_t)original) {
            *handle = GPUSIM_HANDLE(CUgraphNode, graph->nodes[i]);
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphDestroyNode(CUgraphNode handle)
{
    GPUSIM_ENTER();
    struct gpusim_node *node = GPUSIM_FIND(handle, GPUSIM_TYPE_NODE);

    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    struct gpusim_graph *graph = node->graph;
    if (gpusim_graph_has_memory(graph))
        return CUDA_ERROR_NOT_SUPPORTED; /* nodes of such a graph cannot be deleted */
    for (size_t i = 0; i < graph->node_count; i++)
        remove_dependency(graph->nodes[i], node);
    size_t index = position(graph, node);
    memmove(&graph->nodes[index], &graph->nodes[index + 1],
            (--graph->node_count - index) * sizeof(struct gpusim_node *));
    delete_node(node);
    return CUDA_SUCCESS;
}

/* ---- lists: the count alone, or as many entries as fit ------------------------------------- */

struct list {
    CUgraphNode *first, *second; /* second: the other ends of edges */
    CUgraphEdgeData *edges;
    size_t room, count;
};

static void list_add(struct list *list, const struct gpusim_node *first,
                     const struct gpusim_node *second)
{
    if (list->count < list->room) {
        if (list->first)
            list->first[list->count] = GPUSIM_HANDLE(CUgraphNode, first);
        if (list->second)
            list->second[list->count] = GPUSIM_HANDLE(CUgraphNode, second);
        if (list->edges)
            list->edges[list->count] = (CUgraphEdgeData){0};
    }
    list->count++;
}

/* Unused places become NULL. The count is the number of entries written or, without an array, of
 * all. */
static void list_end(const struct list *list, size_t *count)
{
    size_t written = list->count < list->room ? list->count : list->room;

    if (!list->first) {
        *count = list->count;
        return;
    }
    for (size_t i = written; i < list->room; i++) {
        list->first[i] = NULL;
        if (list->second)
            list->second[i] = NULL;
    }
    *count = written;
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, size_t *count)
{
    GPUSIM_ENTER();
    struct gpusim_graph *graph = GPUSIM_FIND(handle, GPUSIM_TYPE_GRAPH);

    if (!graph || !count)
        return CUDA_ERROR_INVALID_VALUE;
    struct list list = {.first = nodes, .room = nodes ? *count : 0};
    for (size_t i = 0; i < graph->node_count; i++)
        list_add(&list, graph->nodes[i], NULL);
    list_end(&list, count);
    return CUDA_SUCCESS;
}

CUresult cuGraphGetRootNodes(CUgraph handle, CUgraphNode *nodes, size_t *count)
{
    GPUSIM_ENTER();
    struct gpusim_graph *graph = GPUSIM_FIND(handle, GPUSIM_TYPE_GRAPH);

    if (!graph || !count)
        return CUDA_ERROR_INVALID_VALUE;
    struct list list = {.first = nodes, .room = nodes ? *count : 0};
    for (size_t i = 0; i < graph->node_count; i++) {
        if (graph->nodes[i]->dependency_count == 0)
            list_add(&list, graph->nodes[i], NULL);
    }
    list_end(&list, count);
    return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges_v2(CUgraph handle, CUgraphNode *from, CUgraphNode *to,
                            CUgraphEdgeData *edges, size_t *count)
{
    GPUSIM_ENTER();
    struct gpusim_graph *graph = GPUSIM_FIND(handle, GPUSIM_TYPE_GRAPH);

    if (!graph || !count || !from != !to)
        return CUDA_ERROR_INVALID_VALUE;
    struct list list = {.first = from, .second = to, .edges = edges, .room = from ? *count : 0};
    for (size_t i = 0; i < graph->node_count; i++) {
        for (size_t j = 0; j < graph->nodes[i]->dependency_count; j++)
            list_add(&list, graph->nodes[i]->dependencies[j], graph->nodes[i]);
    }
    list_end(&list, count);
    return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges(CUgraph handle, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
    return cuGraphGetEdges_v2(handle, from, to, NULL, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode *nodes,
                                       CUgraphEdgeData *edges, size_t *count)
{
    GPUSIM_ENTER();
    struct gpusim_node *node = GPUSIM_FIND(handle, GPUSIM_TYPE_NODE);

    if (!node || !count)
        return CUDA_ERROR_INVALID_VALUE;
    struct list list = {.first = nodes, .edges = edges, .room = nodes ? *count : 0};
    for (size_t i = 0; i < node->dependency_count; i++)
        list_add(&list, node->dependencies[i], NULL);
    list_end(&list, count);
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode handle, CUgraphNode *nodes, size_t *count)
{
    return cuGraphNodeGetDependencies_v2(handle, nodes, NULL, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode handle, CUgraphNode *nodes,
                                         CUgraphEdgeData *edges, size_t *count)
{
    GPUSIM_ENTER();
    struct gpusim_node *node = GPUSIM_FIND(handle, GPUSIM_TYPE_NODE);

    if (!node || !count)
        return CUDA_ERROR_INVALID_VALUE;
    struct list list = {.first = nodes, .edges = edges, .room = nodes ? *count : 0};
    for (size_t i = 0; i < node->graph->node_count; i++) {
        if (depends(node->graph->nodes[i], node))
            list_add(&list, node->graph->nodes[i], NULL);
    }
    list_end(&list, count);
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode handle, CUgraphNode *nodes, size_t *count)
{
    return cuGraphNodeGetDependentNodes_v2(handle, nodes, NULL, count);
}

CUresult cuGraphAddDependencies_v2(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *edges, size_t count)
{
    GPUSIM_ENTER();
    struct gpusim_graph *graph = GPUSIM_FIND(handle, GPUSIM_TYPE_GRAPH);

    (void)edges;
    if (!graph || (count && (!from || !to)))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        struct gpusim_node *first = node_in(from[i], graph), *second = node_in(to[i], graph);

        if (!first || !second || first == second || depends(second, first))
            return CUDA_ERROR_INVALID_VALUE;
        if (!add_dependency(second, first))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                                size_t count)
{
    return cuGraphAddDependencies_v2(handle, from, to, NULL, count);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph handle, const CUgraphNode *from,
                                      const CUgraphNode *to, const CUgraphEdgeData *edges,
                                      size_t count)
{
    GPUSIM_ENTER();
    struct gpusim_graph *graph = GPUSIM_FIND(handle, GPUSIM_TYPE_GRAPH);

    (void)edges;
    if (!graph || (count && (!from || !to)))
        return CUDA_ERROR_INVALID_VALUE;
    if (gpusim_graph_has_memory(graph))
        return CUDA_ERROR_NOT_SUPPORTED; /* edges of such a graph cannot be deleted */
    for (size_t i = 0; i < count; i++) {
        struct gpusim_node *first = node_in(from[i], graph), *second = node_in(to[i], graph);

        if (!first || !second || !depends(second, first))
            return CUDA_ERROR_INVALID_VALUE;
        remove_dependency(second, first);
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphRemoveDependencies(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                                   size_t count)
{
    return cuGraphRemoveDependencies_v2(handle, from, to, NULL, count);
}

CUresult cuGraphDebugDotPrint(CUgraph handle, const char *path, unsigned int flags)
{
    GPUSIM_ENTER();
    struct gpusim_graph *graph = GPUSIM_FIND(handle, GPUSIM_TYPE_GRAPH);
    FILE *file = graph && path ? fopen(path, "w") : NULL;

    (void)flags;
    if (!file)
        return CUDA_ERROR_INVALID_VALUE;
    fprintf(file, "digraph graph_%" PRIx64 " {\n", graph->base.handle);
    for (size_t i = 0; i < graph->node_count; i++) {
        fprintf(file, "  n%zu [label=\"type %d\"];\n", i, (int)graph->nodes[i]->operation.type);
        for (size_t j = 0; j < graph->nodes[i]->dependency_count; j++)
            fprintf(file, "  n%zu -> n%zu;\n", position(graph, graph->nodes[i]->dependencies[j]),
                    i);
    }
    fprintf(file, "}\n");
    return fclose(file) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
