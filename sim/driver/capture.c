/*
 * Stream capture: work submitted to a capturing stream becomes nodes of a graph, each after the
 * stream's last ones (its tail). Events carry tails to other streams, which join the capture by
 * waiting for them and must be joined back before the end. Calls that would wait for the device, or
 * that a capture mode forbids, fail; the first kind also makes the capture invalid.
 */
#include "graph.h"
#include "memory.h"
#include "newer.h"

#include <stdlib.h>
#include <string.h>

struct gpusim_capture {
    uint64_t id;
    struct gpusim_graph *graph;
    bool owns_graph; /* made for the capture, not given */
    bool again;      /* the graph has the nodes already */
    size_t repeated; /* how many of them were captured again */
    bool graphics;   /* into a command list of a graphics library */
    bool invalid;
    CUstreamCaptureMode mode;
    uint64_t thread;
    struct gpusim_stream *origin;
    struct gpusim_stream **streams; /* all streams that capture into it */
    size_t stream_count;
    struct gpusim_capture *next;
};

static struct gpusim_capture *captures; /* under way */
static uint64_t last_capture_id;
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* ---- rules ----------------------------------------------------------------------------------- */

CUresult gpusim_check_unsafe_call(void)
{
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    for (struct gpusim_capture *capture = captures; capture; capture = capture->next) {
        bool own = capture->thread == gpusim_thread_id();

        if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
            continue;
        if (own || (thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                    capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL)) {
            capture->invalid = true;
            return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return CUDA_SUCCESS;
}

CUresult gpusim_check_wait(const struct gpusim_stream *stream)
{
    CUresult error = gpusim_device_error;

    if (stream && stream->capture) {
        stream->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (!stream)
        GPUSIM_TRY(gpusim_check_unsafe_call());
    gpusim_device_error = CUDA_SUCCESS;
    return error;
}

/* ---- tails ----------------------------------------------------------------------------------- */

static bool set_tail(CUgraphNode **tail, size_t *tail_count, const CUgraphNode *nodes, size_t count)
{
    CUgraphNode *copy = malloc((count ? count : 1) * sizeof(*copy));

    if (!copy)
        return false;
    if (count)
        memcpy(copy, nodes, count * sizeof(*copy));
    free(*tail);
    *tail = copy;
    *tail_count = count;
    return true;
}

static bool add_to_tail(struct gpusim_stream *stream, const CUgraphNode *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;

        while (at < stream->capture_tail_count && stream->capture_tail[at] != nodes[i])
            at++;
        if (at < stream->capture_tail_count)
            continue;
        CUgraphNode *grown =
            realloc(stream->capture_tail, (stream->capture_tail_count + 1) * sizeof(*grown));
        if (!grown)
            return false;
        stream->capture_tail = grown;
        stream->capture_tail[stream->capture_tail_count++] = nodes[i];
    }
    return true;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* The node to be captured again next: it must have the same kind and the same memory. */
static struct gpusim_node *node_to_capture_again(struct gpusim_capture *capture,
                                                 const struct gpusim_operation *operation)
{
    struct gpusim_graph *graph = capture->graph;
    struct gpusim_node *node =
        capture->repeated < graph->node_count ? graph->nodes[capture->repeated++] : NULL;
    bool same = node && node->operation.type == operation->type;

    if (same && operation->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        same = node->operation.alloc.memory->size == operation->alloc.memory->size;
    if (same && operation->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        same = node->operation.free == operation->free;
    return same ? node : NULL;
}

static CUresult append_again(struct gpusim_stream *stream, struct gpusim_operation *operation)
{
    struct gpusim_node *node = node_to_capture_again(stream->capture, operation);
    CUgraphNode handle = node ? GPUSIM_HANDLE(CUgraphNode, node) : NULL;

    if (!node) {
        stream->capture->invalid = true;
        return CUDA_ERROR_GRAPH_RECAPTURE_FAILURE;
    }
    if (!set_tail(&stream->capture_tail, &stream->capture_tail_count, &handle, 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (operation->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
        gpusim_graph_memory_release(operation->alloc.memory);
        *operation = node->operation;
    } else {
        gpusim_operation_drop(&node->operation);
        node->operation = *operation;
    }
    return CUDA_SUCCESS;
}

static CUresult append_captured(struct gpusim_stream *stream, struct gpusim_operation *operation)
{
    CUgraphNode node;

    if (stream->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->capture->graphics && (operation->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
                                      operation->type == CU_GRAPH_NODE_TYPE_MEM_FREE))
        return CUDA_ERROR_NOT_PERMITTED;
    if (stream->capture->again)
        return append_again(stream, operation);
    GPUSIM_TRY(gpusim_graph_add(stream->capture->graph, stream->capture_tail,
                                stream->capture_tail_count, operation, &node));
    return set_tail(&stream->capture_tail, &stream->capture_tail_count, &node, 1)
               ? CUDA_SUCCESS
               : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult gpusim_capture_operation(struct gpusim_stream *stream,
                                  const struct gpusim_operation *operation)
{
    struct gpusim_operation kept = *operation;

    if (!gpusim_operation_keep(&kept))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = append_captured(stream, &kept);
    if (result != CUDA_SUCCESS)
        gpusim_operation_drop(&kept);
    return result;
}

CUresult gpusim_capture_alloc(struct gpusim_stream *stream, struct gpusim_device *device,
                              size_t size, CUdeviceptr *pointer)
{
    struct gpusim_graph_memory *memory;

    /* A node's parameters name pinned memory alone. */
    if (device->place == GPUSIM_PLACE_MANAGED)
        return CUDA_ERROR_NOT_SUPPORTED;
    memory = gpusim_graph_memory_new(device, size);
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct gpusim_operation operation = {
        .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
        .alloc = {memory,
                  {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = gpusim_pool_location(device)},
                   .bytesize = size,
                   .dptr = memory->address}},
    };
    CUresult result = append_captured(stream, &operation);
    if (result == CUDA_SUCCESS)
        *pointer = operation.alloc.memory->address;
    else
        gpusim_operation_drop(&operation);
    return result;
}

/* ---- streams that take part ------------------------------------------------------------------ */

static bool join_capture(struct gpusim_stream *stream, struct gpusim_capture *capture)
{
    struct gpusim_stream **grown =
        realloc(capture->streams, (capture->stream_count + 1) * sizeof(struct gpusim_stream *));

    if (!grown)
        return false;
    capture->streams = grown;
    capture->streams[capture->stream_count++] = stream;
    stream->capture = capture;
    return true;
}

static void leave_capture(struct gpusim_stream *stream)
{
    free(stream->capture_tail);
    stream->capture_tail = NULL;
    stream->capture_tail_count = 0;
    stream->capture = NULL;
}

/* Ends the capture. Its graph stays if the program supplied it, or if keep_graph says so. */
static void end_capture(struct gpusim_capture *capture, bool keep_graph)
{
    struct gpusim_capture **link = &captures;
    struct gpusim_graph *graph = capture->owns_graph && !keep_graph ? capture->graph : NULL;

    for (size_t i = 0; i < capture->stream_count; i++)
        leave_capture(capture->streams[i]);
    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    free(capture->streams);
    free(capture);
    if (graph)
        gpusim_graph_delete(graph);
}

void gpusim_capture_abandon(struct gpusim_stream *stream)
{
    struct gpusim_capture *capture = stream->capture;

    if (!capture)
        return;
    if (capture->origin == stream) {
        end_capture(capture, false);
        return;
    }
    capture->invalid = true;
    for (size_t i = 0; i < capture->stream_count; i++) {
        if (capture->streams[i] == stream)
            capture->streams[i] = capture->streams[--capture->stream_count];
    }
    leave_capture(stream);
}

static struct gpusim_capture *capture_of_id(uint64_t id)
{
    struct gpusim_capture *capture = captures;

    while (capture && capture->id != id)
        capture = capture->next;
    return capture;
}

CUresult gpusim_capture_event_record(struct gpusim_stream *stream, struct gpusim_event *event)
{
    if (stream->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!set_tail(&event->capture_tail, &event->capture_tail_count, stream->capture_tail,
                  stream->capture_tail_count))
        return CUDA_ERROR_OUT_OF_MEMORY;
    event->capture_id = stream->capture->id;
    return CUDA_SUCCESS;
}

CUresult gpusim_capture_wait(struct gpusim_stream *stream, struct gpusim_event *event)
{
    struct gpusim_capture *capture = event->capture_id ? capture_of_id(event->capture_id) : NULL;

    if (!event->capture_id) {
        if (!stream->capture || !event->recorded)
            return CUDA_SUCCESS;
        stream->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (!capture)
        return CUDA_ERROR_CAPTURED_EVENT; /* of a capture that is over */
    if (capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->capture && stream->capture != capture) {
        stream->capture->invalid = capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (stream == stream->base.context->legacy_stream) {
        capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (!stream->capture && !join_capture(stream, capture))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return add_to_tail(stream, event->capture_tail, event->capture_tail_count)
               ? CUDA_SUCCESS
               : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- beginning ------------------------------------------------------------------------------- */

static CUresult begin_capture(CUstream handle, CUstreamCaptureMode mode, struct gpusim_graph *given,
                              const CUgraphNode *dependencies, size_t count)
{
    struct gpusim_stream *stream;

    GPUSIM_TRY(gpusim_stream_of(handle, &stream));
    if ((unsigned int)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream == stream->base.context->legacy_stream)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;

    struct gpusim_capture *capture = calloc(1, sizeof(*capture));
    struct gpusim_graph *graph = given ? given : gpusim_graph_new();
    if (!capture || !graph || !join_capture(stream, capture)) {
        if (graph && !given)
            gpusim_graph_delete(graph);
        free(capture);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    capture->id = ++last_capture_id;
    capture->graph = graph;
    capture->owns_graph = !given;
    capture->mode = mode;
    capture->thread = gpusim_thread_id();
    capture->origin = stream;
    capture->next = captures;
    captures = capture;
    if (!add_to_tail(stream, dependencies, count)) {
        end_capture(capture, false);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    GPUSIM_ENTER();
    return begin_capture(stream, mode, NULL, NULL, 0);
}

CUresult cuStreamBeginCapture(CUstream stream)
{
    return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph handle,
                                     const CUgraphNode *dependencies, const CUgraphEdgeData *edges,
                                     size_t count, CUstreamCaptureMode mode)
{
    GPUSIM_ENTER();
    struct gpusim_graph *graph = GPUSIM_FIND(handle, GPUSIM_TYPE_GRAPH);

    (void)edges;
    if (!graph || (count && !dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        struct gpusim_node *node = GPUSIM_FIND(dependencies[i], GPUSIM_TYPE_NODE);

        if (!node || node->graph != graph)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return begin_capture(stream, mode, graph, dependencies, count);
}

/* The capture that begin_capture() attached to the stream, for the unusual kinds of capture. */
static struct gpusim_capture *capture_begun_on(CUstream handle)
{
    struct gpusim_stream *stream;

    return gpusim_stream_of(handle, &stream) == CUDA_SUCCESS ? stream->capture : NULL;
}

CUresult cuStreamBeginRecaptureToGraph(CUstream stream, CUstreamCaptureMode mode, CUgraph handle,
                                       CUgraphRecaptureCallback callback, void *data)
{
    GPUSIM_ENTER();
    struct gpusim_graph *graph = GPUSIM_FIND(handle, GPUSIM_TYPE_GRAPH);

    (void)data;
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (callback)
        return CUDA_ERROR_NOT_SUPPORTED; /* differences are accepted without a check */
    GPUSIM_TRY(begin_capture(stream, mode, graph, NULL, 0));
    capture_begun_on(stream)->again = true;
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginRecaptureToGraph_ptsz(CUstream stream, CUstreamCaptureMode mode,
                                            CUgraph graph, CUgraphRecaptureCallback callback,
                                            void *data)
{
    return cuStreamBeginRecaptureToGraph(stream ? stream : CU_STREAM_PER_THREAD, mode, graph,
                                         callback, data);
}

CUresult cuStreamBeginCaptureToCig(CUstream stream, CUstreamCigCaptureParams *parameters)
{
    GPUSIM_ENTER();
    if (!parameters || !parameters->streamCigParams)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED, NULL, NULL, 0));
    capture_begun_on(stream)->graphics = true;
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCaptureToCig_ptsz(CUstream stream, CUstreamCigCaptureParams *parameters)
{
    return cuStreamBeginCaptureToCig(stream ? stream : CU_STREAM_PER_THREAD, parameters);
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* The graphics library runs the command list, so the work ends here. */
CUresult cuStreamEndCaptureToCig(CUstream handle)
{
    GPUSIM_ENTER();
    struct gpusim_stream *stream;

    GPUSIM_TRY(gpusim_stream_of(handle, &stream));
    if (!stream->capture || !stream->capture->graphics || stream->capture->origin != stream)
        return CUDA_ERROR_INVALID_VALUE;
    end_capture(stream->capture, false);
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCaptureToCig_ptsz(CUstream stream)
{
    return cuStreamEndCaptureToCig(stream ? stream : CU_STREAM_PER_THREAD);
}

/* Marks a node and all it depends on. Walks with a list of its own: graphs can be deep. */
static bool mark_ancestors(struct gpusim_graph *graph, const CUgraphNode *tail, size_t count)
{
    struct gpusim_node **pending = calloc(graph->node_count + 1, sizeof(struct gpusim_node *));
    size_t pending_count = 0;

    if (!pending)
        return false;
    for (size_t i = 0; i < graph->node_count; i++)
        graph->nodes[i]->visited = false;
    for (size_t i = 0; i < count; i++) {
        struct gpusim_node *node = GPUSIM_FIND(tail[i], GPUSIM_TYPE_NODE);

        if (node && node->graph == graph && !node->visited) {
            node->visited = true;
            pending[pending_count++] = node;
        }
    }
    while (pending_count > 0) {
        struct gpusim_node *node = pending[--pending_count];

        for (size_t i = 0; i < node->dependency_count; i++) {
            if (!node->dependencies[i]->visited) {
                node->dependencies[i]->visited = true;
                pending[pending_count++] = node->dependencies[i];
            }
        }
    }
    free(pending);
    return true;
}

/* Whether the origin stream has waited for everything that the other streams captured. */
static bool all_joined(const struct gpusim_capture *capture)
{
    const struct gpusim_stream *origin = capture->origin;

    if (!mark_ancestors(capture->graph, origin->capture_tail, origin->capture_tail_count))
        return false;
    for (size_t i = 0; i < capture->stream_count; i++) {
        for (size_t j = 0; j < capture->streams[i]->capture_tail_count; j++) {
            struct gpusim_node *node =
                GPUSIM_FIND(capture->streams[i]->capture_tail[j], GPUSIM_TYPE_NODE);

            if (node && !node->visited)
                return false;
        }
    }
    return true;
}

/* In a dry run libraries of mathematics launch nothing. Where a program captured calls of these alone, XLA refuses a graph
 * without a node. */
static void stand_for_libraries(struct gpusim_graph *graph)
{
    const struct gpusim_operation nothing = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    CUgraphNode node;
    if (graph->node_count == 0 && getenv("GPUMEM_DRY_LIBRARIES"))
        gpusim_graph_add(graph, NULL, 0, &nothing, &node);
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph)
{
    GPUSIM_ENTER();
    struct gpusim_stream *stream;

    GPUSIM_TRY(gpusim_stream_of(handle, &stream));
    struct gpusim_capture *capture = stream->capture;
    if (!capture || capture->graphics)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (capture->thread != gpusim_thread_id() && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;

    CUresult result = capture->invalid       ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                      : !all_joined(capture) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                      : capture->again && capture->repeated != capture->graph->node_count
                          ? CUDA_ERROR_GRAPH_RECAPTURE_FAILURE
                          : CUDA_SUCCESS;
    CUgraph captured = GPUSIM_HANDLE(CUgraph, capture->graph);
    if (result == CUDA_SUCCESS)
        stand_for_libraries(capture->graph);
    end_capture(capture, result == CUDA_SUCCESS && graph);
    if (graph)
        *graph = result == CUDA_SUCCESS ? captured : NULL;
    return result;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static CUstreamCaptureStatus status_of(const struct gpusim_stream *stream)
{
    return !stream->capture           ? CU_STREAM_CAPTURE_STATUS_NONE
           : stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                      : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
    GPUSIM_ENTER();
    struct gpusim_stream *stream;

    GPUSIM_TRY(gpusim_stream_of(handle, &stream));
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    *status = status_of(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id,
                                   CUgraph *graph, const CUgraphNode **dependencies,
                                   const CUgraphEdgeData **edges, size_t *count)
{
    GPUSIM_ENTER();
    struct gpusim_stream *stream;

    GPUSIM_TRY(gpusim_stream_of(handle, &stream));
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    *status = status_of(stream);
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_SUCCESS;
    if (id)
        *id = stream->capture->id;
    if (graph)
        *graph = GPUSIM_HANDLE(CUgraph, stream->capture->graph);
    if (dependencies)
        *dependencies = stream->capture_tail;
    if (edges)
        *edges = NULL; /* all edges are plain */
    if (count)
        *count = stream->capture_tail_count;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                   CUgraph *graph, const CUgraphNode **dependencies, size_t *count)
{
    return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, NULL, count);
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    return cuStreamGetCaptureInfo_v3(stream, status, id, NULL, NULL, NULL, NULL);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode *dependencies,
                                              const CUgraphEdgeData *edges, size_t count,
                                              unsigned int flags)
{
    GPUSIM_ENTER();
    struct gpusim_stream *stream;

    (void)edges;
    GPUSIM_TRY(gpusim_stream_of(handle, &stream));
    if (status_of(stream) != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_ERROR_ILLEGAL_STATE;
    if ((count && !dependencies) || flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        struct gpusim_node *node = GPUSIM_FIND(dependencies[i], GPUSIM_TYPE_NODE);

        if (!node || node->graph != stream->capture->graph)
            return CUDA_ERROR_INVALID_VALUE;
    }
    bool done =
        flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES
            ? set_tail(&stream->capture_tail, &stream->capture_tail_count, dependencies, count)
            : add_to_tail(stream, dependencies, count);
    return done ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *dependencies, size_t count,
                                           unsigned int flags)
{
    return cuStreamUpdateCaptureDependencies_v2(stream, dependencies, NULL, count, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    GPUSIM_ENTER();
    if (!mode || (unsigned int)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
