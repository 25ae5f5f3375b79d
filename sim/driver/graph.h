/*
 * Graphs: nodes with their operations and dependencies, executables made of them, graph memory.
 */
#ifndef GPUMEM_SIM_GRAPH_H
#define GPUMEM_SIM_GRAPH_H

#include "stream.h"

/* The address of an allocation node: held by its graph, by executables and while it is
 * allocated. */
struct gpusim_graph_memory {
    struct gpusim_device *device;
    uint64_t address, size;
    unsigned int references;
    bool allocated;
};

struct gpusim_node {
    struct gpusim_object base;
    struct gpusim_graph *graph;
    struct gpusim_operation operation;
    struct gpusim_node **dependencies;
    size_t dependency_count;
    uint64_t original_handle; /* in a copy: the node it was copied from, which may be gone */
    bool disabled;            /* in an executable */
    bool visited;             /* scratch of a walk */
    size_t index;             /* scratch of a copy */
    CUkernelNodeAttrValue attributes[CU_LAUNCH_ATTRIBUTE_MAX];
};

struct gpusim_user_object {
    struct gpusim_object base;
    void *pointer;
    CUhostFn destroy;
    unsigned int references;
};

struct gpusim_retained {
    struct gpusim_user_object *object;
    unsigned int count;
};

struct gpusim_graph {
    struct gpusim_object base;
    struct gpusim_node **nodes; /* in order of creation; in an executable in order of execution */
    size_t node_count;
    bool is_child;       /* ends with its node */
    uint64_t executable; /* handle of the last executable made of it, and its id */
    uint64_t executable_id;
    struct gpusim_retained *retained; /* user objects */
    size_t retained_count;
};

struct gpusim_exec {
    struct gpusim_object base;
    uint64_t id;
    struct gpusim_graph *graph; /* its own copy */
    unsigned long long flags;
    unsigned int launches; /* under way: kept while host functions run */
    bool destroyed;
};

/* ---- graphs (graph.c) ------------------------------------------------------------------------ */

struct gpusim_graph *gpusim_graph_new(void);
/* May run destructors of user objects, for which the lock is given up. */
void gpusim_graph_delete(struct gpusim_graph *graph);
/* A copy with the same order of nodes; NULL when out of memory. */
struct gpusim_graph *gpusim_graph_copy(const struct gpusim_graph *graph);
/* Appends a node that depends on others of the graph. Takes over what the operation owns on
 * success. */
CUresult gpusim_graph_add(struct gpusim_graph *graph, const CUgraphNode *dependencies, size_t count,
                          const struct gpusim_operation *operation, CUgraphNode *handle);
/* Puts the nodes into an order of execution; false when there is a cycle. */
bool gpusim_graph_sort(struct gpusim_graph *graph);
bool gpusim_graph_has_memory(const struct gpusim_graph *graph);
/* Gives references to the graph; the object's own count already has them. */
bool gpusim_graph_retain(struct gpusim_graph *graph, struct gpusim_user_object *object,
                         unsigned int count);
void gpusim_user_object_release(struct gpusim_user_object *object, unsigned int count);
/* Duplicates what an operation owns, so that the copy can be kept; false when out of memory. */
bool gpusim_operation_keep(struct gpusim_operation *operation);
void gpusim_operation_drop(struct gpusim_operation *operation);

/* ---- parameters of nodes (graph_add.c): older forms become the newest ------------------------ */

CUDA_KERNEL_NODE_PARAMS_v3 gpusim_kernel_of_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *old);
CUDA_KERNEL_NODE_PARAMS_v3 gpusim_kernel_of_v2(const CUDA_KERNEL_NODE_PARAMS_v2 *old);
CUDA_MEMSET_NODE_PARAMS_v2 gpusim_set_of_v1(const CUDA_MEMSET_NODE_PARAMS_v1 *old,
                                            CUcontext context);
/* Addresses of a set may come to life only at the launch, so a node's shape alone is checked. */
CUresult gpusim_check_set_shape(unsigned int element);

/* An executable's copy of a node of its graph, or NULL (graph_exec.c). */
struct gpusim_node *gpusim_exec_node(CUgraphExec handle, CUgraphNode original);
/* Whether a launch is under way, so that memory owned by nodes must stay. */
bool gpusim_exec_is_running(CUgraphExec handle);

/* ---- memory of graphs (graph_memory.c) ------------------------------------------------------- */

struct gpusim_graph_memory *gpusim_graph_memory_new(struct gpusim_device *device, uint64_t size);
void gpusim_graph_memory_release(struct gpusim_graph_memory *memory);
/* Gives storage to a node about to be allocated, or takes it back. Neither counts anything. */
bool gpusim_graph_memory_commit(struct gpusim_graph_memory *memory);
void gpusim_graph_memory_uncommit(struct gpusim_graph_memory *memory);
/* The node's memory comes to life; its storage was committed. */
CUresult gpusim_graph_memory_allocate(struct gpusim_graph_memory *memory);

#endif
