/*
 * Streams and the work submitted to them. Work runs before the call that submits it returns, as if
 * the device were infinitely fast. On a capturing stream it becomes a node of the capture's graph.
 */
#ifndef GPUMEM_SIM_STREAM_H
#define GPUMEM_SIM_STREAM_H

#include "driver.h"

struct gpusim_capture;
struct gpusim_graph;

struct gpusim_stream {
    struct gpusim_object base;
    unsigned int flags;
    int priority;
    uint64_t id;
    uint64_t thread; /* of a per-thread default stream */
    uint64_t green;  /* its CUgreenCtx, 0: none */
    bool green_gone;
    struct gpusim_stream *next;
    struct gpusim_capture *capture; /* NULL: not capturing */
    CUgraphNode *capture_tail;      /* nodes the next captured node depends on */
    size_t capture_tail_count;
    CUstreamAttrValue attributes[CU_LAUNCH_ATTRIBUTE_MAX];
};

struct gpusim_event {
    struct gpusim_object base;
    unsigned int flags;
    bool recorded;
    uint64_t time_ns;
    uint64_t waits;      /* of the host, when it was recorded: gpusim_waits */
    unsigned int asked;  /* how often the host asked since then whether it has happened */
    uint64_t capture_id; /* recorded while capturing; 0: not */
    CUgraphNode *capture_tail;
    size_t capture_tail_count;
};

/* One piece of work: submitted to a stream, or the content of a graph node. */
struct gpusim_operation {
    CUgraphNodeType type;
    union {
        CUDA_MEMCPY3D_PEER copy;
        CUDA_MEMSET_NODE_PARAMS_v2 set;
        CUDA_HOST_NODE_PARAMS_v2 host;
        CUDA_KERNEL_NODE_PARAMS_v3 kernel;
        CUevent event;
        struct {
            struct gpusim_graph_memory *memory;
            CUDA_MEM_ALLOC_NODE_PARAMS params;
        } alloc;
        CUdeviceptr free;
        struct gpusim_graph *child; /* owned by the node */
        struct {
            CUstreamBatchMemOpParams *items; /* owned by the node */
            unsigned int count;
        } batch;
    };
};

/* The stream of a handle in the current context: default streams included. */
CUresult gpusim_stream_of(CUstream handle, struct gpusim_stream **stream);
/* Runs the operation, or makes it a node when the stream captures. */
CUresult gpusim_submit(CUstream stream, const struct gpusim_operation *operation);
CUresult gpusim_execute(const struct gpusim_operation *operation);

CUresult gpusim_stream_create(CUstream *handle, struct gpusim_context *context, uint64_t green,
                              unsigned int flags, int priority);
void gpusim_stream_delete(void *stream);
void gpusim_stream_leaves_green(void *stream, uint64_t green);
void gpusim_event_delete(void *event);
CUresult gpusim_event_record(CUevent event);
uint64_t gpusim_thread_id(void);
/* What kernels, copies and sets took so far, in ns, with GPUMEM_SIM_KERNEL_NS: no time of the host. */
extern uint64_t gpusim_device_time;
/* How often the host has waited for a device. */
extern uint64_t gpusim_waits;

/* What cuMemcpy and the others run (copy.c, set.c). */
CUresult gpusim_copy(const CUDA_MEMCPY3D_PEER *copy);
CUDA_MEMCPY3D_PEER gpusim_box(const CUDA_MEMCPY3D *copy);
CUresult gpusim_set(const CUDA_MEMSET_NODE_PARAMS_v2 *set);
CUresult gpusim_batch(const CUstreamBatchMemOpParams *items, unsigned int count);
CUresult gpusim_check_kernel(const CUDA_KERNEL_NODE_PARAMS_v3 *kernel);

/* ---- capture (capture.c) --------------------------------------------------------------------- */

/* Refuses an unsafe call while a capture is under way whose mode forbids it to this thread. */
CUresult gpusim_check_unsafe_call(void);
/* Refuses to wait for a stream that captures, or for anything while one of the context's does. */
CUresult gpusim_check_wait(const struct gpusim_stream *stream);
CUresult gpusim_capture_operation(struct gpusim_stream *stream,
                                  const struct gpusim_operation *operation);
CUresult gpusim_capture_alloc(struct gpusim_stream *stream, struct gpusim_device *device,
                              size_t size, CUdeviceptr *pointer);
CUresult gpusim_capture_event_record(struct gpusim_stream *stream, struct gpusim_event *event);
CUresult gpusim_capture_wait(struct gpusim_stream *stream, struct gpusim_event *event);
/* The stream goes away: its capture ends without a graph. */
void gpusim_capture_abandon(struct gpusim_stream *stream);

#endif
