/*
 * Graphs: nodes with their operations and dependencies, executables made of them, graph memory.
 */
#ifndef GPUMEM_SIM_GRAPH_H
#define GPUMEM_SIM_GRAPH_H

#include "stream.h"

/* The address of an allocation node: held by its graph, by executables and while it is allocated.
 */
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
    struct gpusim_node *original; /* in a clone: compared by handle, it may be gone */
    uint64_t original_handle;
    uint64_t index; /* order of creation; scratch order of a walk */
    bool disabled;  /* in an executable */
    bool visited;
    CUkernelNodeAttrValue attributes[CU_LAUNCH_ATTRIBUTE_MAX];
};

struct gpusim_retained {
    struct gpusim_user_object *object;
    unsigned int count;
};

struct gpusim_graph {
    struct gpusim_object base;
    struct gpusim_node **nodes;
    size_t node_count;
    struct gpusim_graph *parent;     /* a child graph: goes with its node */
    unsigned int executables;        /* instantiations alive; only one with memory nodes */
    struct gpusim_retained *objects; /* user objects */
    size_t object_count;
};

struct gpusim_exec {
    struct gpusim_object base;
    struct gpusim_graph *graph; /* its own copy */
    uint64_t source_handle;     /* the graph it was made of */
    unsigned long long flags;
    unsigned int launches; /* under way: kept while host functions run */
    bool destroyed;
};

struct gpusim_user_object {
    struct gpusim_object base;
    void *pointer;
    CUhostFn destroy;
    unsigned int references;
};

#endif
