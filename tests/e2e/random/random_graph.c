/* Random program: memory of graphs: nodes, captures, launches, memory that outlives them. */
#include "random.h"

CUresult cuGraphInstantiate_v1(CUgraphExec *, CUgraph, CUgraphNode *, char *,
                               size_t) __asm__("cuGraphInstantiate");
CUresult cuGraphInstantiate_v2(CUgraphExec *, CUgraph, CUgraphNode *, char *,
                               size_t) __asm__("cuGraphInstantiate_v2");
CUresult cuStreamBeginCapture_v1(CUstream) __asm__("cuStreamBeginCapture" PTSZ);
CUresult cuGraphAddNode_v1(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
                           CUgraphNodeParams *) __asm__("cuGraphAddNode");
CUresult cuGraphAddNode_v2(CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *,
                           size_t, CUgraphNodeParams *);
CUresult cuGraphAddNode_v3(CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *,
                           size_t, CUgraphNodeParams *);
/* The headers at hand may lack them. */
CUresult begin_recapture(CUstream, CUstreamCaptureMode, CUgraph, void *callback,
                         void *data) __asm__("cuStreamBeginRecaptureToGraph" PTSZ);
CUresult begin_graphics(CUstream, void **list) __asm__("cuStreamBeginCaptureToCig" PTSZ);
CUresult end_graphics(CUstream) __asm__("cuStreamEndCaptureToCig" PTSZ);

/* ---- nodes ----------------------------------------------------------------------------------- */

static int add_allocation(CUgraph graph, CUgraphNode *node, CUdeviceptr *address)
{
    CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    CUDA_MEM_ALLOC_NODE_PARAMS parameters = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = current_device()}},
        .bytesize = random_size(),
    };
    struct cudaMemAllocNodeParams runtime = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {.type = cudaMemLocationTypeDevice, .id = current_device()}},
        .bytesize = parameters.bytesize,
    };
    int result;
    if (pick(8) == 0) {
        parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
        runtime.poolProps.allocType = cudaMemAllocationTypeManaged;
    }
    any.alloc.poolProps = parameters.poolProps;
    any.alloc.bytesize = parameters.bytesize;
    switch (pick(5)) {
    case 0:
        result = LOG(cuGraphAddMemAllocNode(node, graph, NULL, 0, &parameters));
        *address = parameters.dptr;
        break;
    case 1:
        result = LOG(cudaGraphAddMemAllocNode(node, graph, NULL, 0, &runtime));
        *address = (CUdeviceptr)runtime.dptr;
        break;
    case 2:
        result = LOG_AS("cuGraphAddNode_v2", cuGraphAddNode_v2(node, graph, NULL, NULL, 0, &any));
        *address = any.alloc.dptr;
        break;
    case 3:
        result = LOG_AS("cuGraphAddNode_v3", cuGraphAddNode_v3(node, graph, NULL, NULL, 0, &any));
        *address = any.alloc.dptr;
        break;
    default:
        result = LOG_AS("cuGraphAddNode", cuGraphAddNode_v1(node, graph, NULL, 0, &any));
        *address = any.alloc.dptr;
    }
    return result == 0;
}

static int add_free(CUgraph graph, const CUgraphNode *after, CUdeviceptr address)
{
    CUgraphNode node;
    CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};
    const size_t count = after ? 1 : 0;
    any.free.dptr = address;
    switch (pick(4)) {
    case 0:
        return LOG(cuGraphAddMemFreeNode(&node, graph, after, count, address)) == 0;
    case 1:
        return LOG(cudaGraphAddMemFreeNode(&node, graph, after, count, (void *)address)) == 0;
    case 2:
        return LOG_AS("cuGraphAddNode_v2",
                      cuGraphAddNode_v2(&node, graph, after, NULL, count, &any)) == 0;
    default:
        return LOG_AS("cuGraphAddNode_v3",
                      cuGraphAddNode_v3(&node, graph, after, NULL, count, &any)) == 0;
    }
}

static CUgraphExec instantiate(CUgraph graph)
{
    CUgraphExec executable = NULL;
    const unsigned long long flags = pick(2) ? CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH : 0;
    CUDA_GRAPH_INSTANTIATE_PARAMS parameters = {.flags = flags};
    cudaGraphInstantiateParams runtime = {.flags = flags};
    int result;
    switch (pick(7)) {
    case 0:
        result =
            LOG_AS("cuGraphInstantiate", cuGraphInstantiate_v1(&executable, graph, NULL, NULL, 0));
        break;
    case 1:
        result = LOG_AS("cuGraphInstantiate_v2",
                        cuGraphInstantiate_v2(&executable, graph, NULL, NULL, 0));
        break;
    case 2:
        result = LOG(cuGraphInstantiateWithFlags(&executable, graph, flags));
        break;
    case 3:
        result = LOG(cuGraphInstantiateWithParams(&executable, graph, &parameters));
        break;
    case 4:
        result = LOG(cudaGraphInstantiate(&executable, graph, flags));
        break;
    case 5:
        result = LOG(cudaGraphInstantiateWithFlags(&executable, graph, flags));
        break;
    default:
        result = LOG(cudaGraphInstantiateWithParams(&executable, graph, &runtime));
    }
    return result == 0 ? executable : NULL;
}

static int launch(CUgraphExec executable)
{
    return pick(2) ? LOG(cudaGraphLaunch(executable, random_stream()))
                   : LOG(cuGraphLaunch(executable, random_stream()));
}

/* Keeps the graph if it can be launched, and destroys it otherwise. */
static void keep_graph(CUgraph graph, CUdeviceptr address)
{
    const CUgraphExec executable = instantiate(graph);
    if (executable)
        keep((struct object){
            .family = EXECUTABLE, .pointer = executable, .graph = graph, .address = address});
    else
        LOG(cuGraphDestroy(graph));
}

/* Memory that lives inside one launch, and half of the time some that outlives it. */
static void build(void)
{
    CUgraph graph;
    CUgraphNode allocated;
    CUdeviceptr address = 0, staying = 0;
    if (LOG(cuGraphCreate(&graph, 0)) != 0)
        return;
    if (add_allocation(graph, &allocated, &address))
        add_free(graph, &allocated, address);
    if (pick(2) && !add_allocation(graph, &allocated, &staying))
        staying = 0;
    keep_graph(graph, staying);
}

/* ---- captures -------------------------------------------------------------------------------- */

static CUgraph begin_capture(CUstream stream)
{
    CUgraph graph = NULL;
    int result;
    switch (pick(5)) {
    case 0:
        result = LOG_AS("cuStreamBeginCapture" PTSZ, cuStreamBeginCapture_v1(stream));
        break;
    case 1:
        result = LOG(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        break;
    case 2:
        result = LOG(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        break;
    default:
        if (LOG(cuGraphCreate(&graph, 0)) != 0)
            return NULL;
        result = pick(2) ? LOG(cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0,
                                                           CU_STREAM_CAPTURE_MODE_RELAXED))
                         : LOG(cudaStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0,
                                                             cudaStreamCaptureModeThreadLocal));
        if (result != 0)
            LOG(cuGraphDestroy(graph));
    }
    return result == 0 ? (graph ? graph : (CUgraph)-1) : NULL;
}

/* The capture spreads to another stream and returns. */
static void fork_and_join(CUstream stream, CUdeviceptr address)
{
    CUevent forked, joined;
    const CUstream other = streams[current_device()][stream == streams[current_device()][0]];
    LOG(cuEventCreate(&forked, CU_EVENT_DISABLE_TIMING));
    LOG(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
    LOG(cuEventRecord(forked, stream));
    LOG(cuStreamWaitEvent(other, forked, 0));
    LOG(cudaMemsetAsync((void *)address, 0, 16, other));
    LOG(cuEventRecordWithFlags(joined, other, 0));
    LOG(cuStreamWaitEvent(stream, joined, 0));
    LOG(cuEventDestroy(forked));
    LOG(cuEventDestroy(joined));
}

/* Submits work to a capturing stream; the same `shape` makes the same nodes. Returns the memory
 * that is to outlive a launch, or 0. */
static CUdeviceptr capture_work(CUstream stream, size_t size, unsigned shape)
{
    CUdeviceptr address = 0, staying = 0;
    if (LOG(cudaMallocAsync((void **)&address, size, stream)) == 0) {
        shape & 1 ? (void)LOG(cudaMemsetAsync((void *)address, 0, size, stream))
                  : fork_and_join(stream, address);
        pick(2) ? LOG(cudaFreeAsync((void *)address, stream))
                : LOG(cuMemFreeAsync(address, stream));
    }
    if (shape & 2 && LOG(cuMemAllocAsync(&staying, size, stream)) != 0)
        staying = 0;
    return staying;
}

/* Captures into the same graph again: its nodes keep their memory. The end of the capture refuses
 * other or less work, and the graph stays as it was. */
static void capture_again(CUstream stream, CUgraph graph, size_t size, unsigned shape)
{
    CUgraph same;
    if (LOG_AS("cuStreamBeginRecaptureToGraph" PTSZ,
               begin_recapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED, graph, NULL, NULL)) != 0)
        return;
    switch (pick(6)) {
    case 0:
        capture_work(stream, size + 4096, shape);
        break;
    case 1:
        break;
    case 2:
        capture_work(stream, size, shape);
        capture_work(stream, size, shape);
        break;
    default:
        capture_work(stream, size, shape);
    }
    pick(2) ? LOG(cudaStreamEndCapture(stream, &same)) : LOG(cuStreamEndCapture(stream, &same));
}

static void capture(void)
{
    CUgraph graph = NULL;
    const cudaStream_t stream = created_stream();
    const size_t size = 64 + random_size();
    const unsigned shape = pick(2) + 2 * (pick(3) == 0);
    if (!begin_capture(stream))
        return;
    const CUdeviceptr staying = capture_work(stream, size, shape);
    if ((pick(2) ? LOG(cudaStreamEndCapture(stream, &graph))
                 : LOG(cuStreamEndCapture(stream, &graph))) != 0 ||
        !graph)
        return;
    for (unsigned times = pick(3); times > 0; times--)
        capture_again(stream, graph, size, shape);
    keep_graph(graph, staying);
}

/* Captures into a command list of a graphics library, which runs it, so there is no graph of ours.
 * It cannot allocate, and has its own function to end. The legacy stream is refused. */
static void capture_graphics(void)
{
    void *list = &list;
    CUdeviceptr refused;
    CUgraph graph;
    const cudaStream_t stream = random_stream();
    const int memory = find_sized(LINEAR, 64);
    if (pick(6) == 0)
        list = NULL; /* refused */
    if (LOG_AS("cuStreamBeginCaptureToCig" PTSZ, begin_graphics(stream, &list)) != 0)
        return;
    if (memory >= 0)
        LOG(cudaMemsetAsync(objects[memory].pointer, 1, 64, stream));
    if (pick(2))
        LOG(cuMemAllocAsync(&refused, 1000, stream));
    if (pick(3) == 0)
        LOG(cuStreamEndCapture(stream, &graph)); /* refused */
    LOG_AS("cuStreamEndCaptureToCig" PTSZ, end_graphics(stream));
    if (pick(4) == 0)
        LOG_AS("cuStreamEndCaptureToCig" PTSZ, end_graphics(stream)); /* refused: over */
}

/* ---- use of graphs --------------------------------------------------------------------------- */

static void launch_one(struct object *executable)
{
    if (executable->device != current_device())
        return;
    if (launch(executable->pointer) == 0)
        executable->live = executable->address != 0;
}

/* Memory that outlived its launch, freed by its address or by another graph. */
static void free_left_over(struct object *executable)
{
    CUgraph graph;
    if (!executable->live)
        return;
    if (pick(2)) {
        const struct object memory = {.pointer = (void *)executable->address};
        if (free_linear(memory) == 0)
            executable->live = 0;
        return;
    }
    if (LOG(cuGraphCreate(&graph, 0)) != 0)
        return;
    if (add_free(graph, NULL, executable->address)) {
        const CUgraphExec freeing = instantiate(graph);
        if (freeing && launch(freeing) == 0)
            executable->live = 0;
        if (freeing)
            LOG(cudaGraphExecDestroy(freeing));
    }
    LOG(cudaGraphDestroy(graph));
}

/* Graphs with memory cannot be cloned or become a child (refused). Others can. */
static void copy_graph(CUgraph original)
{
    CUgraph parent, clone;
    CUgraphNode node;
    if (LOG(cuGraphClone(&clone, original)) == 0)
        LOG(cuGraphDestroy(clone));
    if (LOG(cuGraphCreate(&parent, 0)) != 0)
        return;
    LOG(cuGraphAddChildGraphNode(&node, parent, NULL, 0, original));
    keep_graph(parent, 0);
}

/* Graphs without memory: cloned, updated, put into another. */
static void update(void)
{
    CUgraph graph, clone;
    CUgraphExecUpdateResultInfo info;
    const cudaStream_t stream = created_stream();
    const int memory = find_sized(LINEAR, 64);
    if (memory < 0 || !begin_capture(stream))
        return;
    LOG(cudaMemsetAsync(objects[memory].pointer, 1, 64, stream));
    if (LOG(cuStreamEndCapture(stream, &graph)) != 0)
        return;
    const CUgraphExec executable = instantiate(graph);
    if (executable && LOG(cuGraphClone(&clone, graph)) == 0) {
        LOG(cuGraphExecUpdate(executable, clone, &info));
        LOG(cuGraphDestroy(clone));
    }
    if (executable) {
        launch(executable);
        LOG(cuGraphExecDestroy(executable));
    }
    copy_graph(graph);
    LOG(cudaGraphDestroy(graph));
}

void STEP(graph)(void)
{
    const int index = find(EXECUTABLE);
    switch (pick(13)) {
    case 0:
        LOG(cuDeviceGraphMemTrim(current_device()));
        break;
    case 1:
        LOG(cudaDeviceGraphMemTrim(current_device()));
        break;
    case 2:
        update();
        break;
    case 3:
    case 4:
        build();
        break;
    case 5:
    case 6:
        capture();
        break;
    case 7:
        if (index >= 0)
            copy_graph(objects[index].graph);
        break;
    case 8:
        if (index >= 0)
            free_left_over(&objects[index]);
        break;
    case 9:
        capture_graphics();
        break;
    default:
        if (index >= 0)
            launch_one(&objects[index]);
    }
}

#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM
/* Ends no life: memory that outlived the launch is from now on like any other. */
void drop_executable(int index)
{
    const struct object object = objects[index];
    pick(2) ? LOG(cudaGraphExecDestroy(object.pointer)) : LOG(cuGraphExecDestroy(object.pointer));
    pick(2) ? LOG(cudaGraphDestroy(object.graph)) : LOG(cuGraphDestroy(object.graph));
    forget(index);
    if (object.live)
        keep_on(object.device,
                (struct object){.family = LINEAR, .pointer = (void *)object.address});
}
#endif
