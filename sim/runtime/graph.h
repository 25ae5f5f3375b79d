/*
 * Translation of graph node parameters between the runtime's structures and the driver's.
 */
#ifndef GPUMEM_SIM_RUNTIME_GRAPH_H
#define GPUMEM_SIM_RUNTIME_GRAPH_H

#include "runtime.h"

/* The function of a kernel node is a host function here and a kernel handle in the driver. */
cudaError_t gpusim_kernel_node_to_driver(const struct cudaKernelNodeParams *from,
                                         CUDA_KERNEL_NODE_PARAMS *to);
void gpusim_kernel_node_from_driver(const CUDA_KERNEL_NODE_PARAMS *from,
                                    struct cudaKernelNodeParams *to);

/* cudaGraphAddNode of every runtime version; `edges` may be NULL. */
cudaError_t gpusim_graph_add_node(cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *dependencies,
                                  const cudaGraphEdgeData *edges, size_t count,
                                  struct cudaGraphNodeParams *parameters);

#endif
