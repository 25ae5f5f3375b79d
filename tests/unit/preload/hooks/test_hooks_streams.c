/* Stream-ordered memory, pools, captures and graphs. */
#include "fake.h"
#include <pthread.h>

#define OUT_OF_MEMORY 2
#define WRONG_THREAD 908
#define STREAM ((CUstream)0x1000)
#define OTHER_STREAM ((CUstream)0x2000)
#define THIRD_STREAM ((CUstream)0x2100)
#define PER_THREAD ((CUstream)2)
#define EVENT ((CUevent)0x3000)
#define GRAPH ((CUgraph)0x4000)
#define EXECUTABLE ((CUgraphExec)0x5000)
#define POOL ((CUmemoryPool)0x6000)
#define DEFAULT_POOL ((CUmemoryPool)0x6100)

REAL(CUresult, cuMemAllocAsync, (CUdeviceptr * address, size_t size, CUstream stream),
     { *address = 0x7000; })
REAL(CUresult, cuMemAllocAsync_ptsz, (CUdeviceptr * address, size_t size, CUstream stream),
     { *address = 0x7000; })
REAL(CUresult, cuMemAllocFromPoolAsync,
     (CUdeviceptr * address, size_t size, CUmemoryPool pool, CUstream stream),
     { *address = 0x7000; })
REAL(CUresult, cuMemFreeAsync, (CUdeviceptr address, CUstream stream), {})
REAL(CUresult, cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *properties),
     { *pool = POOL; })
REAL(CUresult, cuMemPoolDestroy, (CUmemoryPool pool), {})
REAL(CUresult, cuMemPoolSetAttribute,
     (CUmemoryPool pool, CUmemPool_attribute attribute, void *value), {})
REAL(CUresult, cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device),
     { *pool = DEFAULT_POOL; })
REAL(CUresult, cuMemGetDefaultMemPool,
     (CUmemoryPool * pool, CUmemLocation *location, CUmemAllocationType type), { *pool = POOL; })
REAL(CUresult, cuMemSetMemPool,
     (CUmemLocation * location, CUmemAllocationType type, CUmemoryPool pool), {})
REAL(CUresult, cuDeviceSetMemPool, (CUdevice device, CUmemoryPool pool), {})
REAL(CUresult, cuStreamCreate, (CUstream * stream, unsigned int flags), { *stream = STREAM; })
REAL(CUresult, cuStreamDestroy_v2, (CUstream stream), {})
REAL(CUresult, cuCtxSetCurrent, (CUcontext context), {})
REAL(CUresult, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device),
     { *context = (CUcontext)(uintptr_t)(0xc00 + device); })
REAL(CUresult, cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), {})
REAL(CUresult, cuStreamBeginCapture_v2_ptsz, (CUstream stream, CUstreamCaptureMode mode), {})
REAL(CUresult, cuStreamBeginCaptureToGraph,
     (CUstream stream, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *edges,
      size_t count, CUstreamCaptureMode mode),
     {})
REAL(CUresult, cuStreamBeginRecaptureToGraph,
     (CUstream stream, CUstreamCaptureMode mode, CUgraph graph, CUgraphRecaptureCallback callback,
      void *data),
     {})
REAL(CUresult, cuStreamBeginCaptureToCig, (CUstream stream, CUstreamCigCaptureParams *parameters),
     {})
REAL(CUresult, cuStreamEndCaptureToCig, (CUstream stream), {})
REAL(CUresult, cuStreamEndCapture, (CUstream stream, CUgraph *graph), { *graph = GRAPH; })
REAL(CUresult, cuStreamEndCapture_ptsz, (CUstream stream, CUgraph *graph), { *graph = GRAPH; })
REAL(CUresult, cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream), {})
REAL(CUresult, cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t size, CUstream stream),
     {})
REAL(CUresult, cuEventRecord, (CUevent event, CUstream stream), {})
REAL(CUresult, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags), {})

static int start(void **unused)
{
    start_over(unused);
    USE(cuMemAllocAsync);
    USE(cuMemAllocAsync_ptsz);
    USE(cuMemAllocFromPoolAsync);
    USE(cuMemFreeAsync);
    USE(cuMemPoolCreate);
    USE(cuMemPoolDestroy);
    USE(cuMemPoolSetAttribute);
    USE(cuDeviceGetDefaultMemPool);
    USE(cuDeviceSetMemPool);
    USE(cuMemGetDefaultMemPool);
    USE(cuMemSetMemPool);
    USE(cuStreamCreate);
    USE(cuStreamDestroy_v2);
    USE(cuCtxSetCurrent);
    USE(cuDevicePrimaryCtxRetain);
    USE(cuStreamBeginCapture_v2);
    USE(cuStreamBeginCapture_v2_ptsz);
    USE(cuStreamBeginCaptureToGraph);
    USE(cuStreamBeginRecaptureToGraph);
    USE(cuStreamBeginCaptureToCig);
    USE(cuStreamEndCaptureToCig);
    USE(cuStreamEndCapture);
    USE(cuStreamEndCapture_ptsz);
    USE(cuEventRecord);
    USE(cuStreamWaitEvent);
    return 0;
}

static const struct gm_record *last_record(void)
{
    assert_int_not_equal(record_count(), 0);
    return record_at(record_count() - 1);
}

/* Allocates on a stream and returns its record. */
static const struct gm_record *allocate(CUstream stream)
{
    CUdeviceptr address = 0;
    uint32_t before = record_count();
    assert_int_equal(cuMemAllocAsync(&address, 100, stream), 0);
    assert_int_equal(record_count(), before + 1);
    assert_int_equal(last_record()->address, 0x7000);
    assert_int_equal(last_record()->size, 100);
    return last_record();
}

static void use_device(int device)
{
    CUcontext context;
    cuDevicePrimaryCtxRetain(&context, device);
    cuCtxSetCurrent(context);
}

/* ---- pools and devices ----------------------------------------------------------------------- */

static void an_allocation_is_on_the_device_of_its_pool(void **unused)
{
    CUmemPoolProps properties = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 2}};
    CUmemoryPool pool;
    CUdeviceptr address;
    cuMemPoolCreate(&pool, &properties);
    assert_record(0, GM_EVENT_POOL_CREATE, POOL, 0);
    assert_int_equal(record_at(0)->device, 2);
    cuMemAllocFromPoolAsync(&address, 100, pool, STREAM);
    assert_record(1, GM_EVENT_ALLOC, 0x7000, 100);
    assert_int_equal(record_at(1)->device, 2);
    assert_int_equal(record_at(1)->aux, GM_WORD(POOL));
    assert_int_equal(record_at(1)->flags, GM_FLAG_ASYNC | GM_FLAG_POOL);
    cuMemPoolDestroy(pool);
    assert_record(2, GM_EVENT_POOL_DESTROY, POOL, 0);
    assert_int_equal(record_at(2)->device, 2);
    use_device(1);
    cuMemAllocFromPoolAsync(&address, 100, pool, STREAM); /* of another pool at the same place */
    assert_int_equal(last_record()->device, 1);
}

static void an_allocation_is_on_the_device_of_its_stream(void **unused)
{
    CUstream stream;
    use_device(3);
    cuStreamCreate(&stream, 0);
    use_device(1);
    assert_int_equal(allocate(stream)->device, 3);
    assert_int_equal(allocate(NULL)->device, 1);
    cuStreamDestroy_v2(stream);
    assert_int_equal(allocate(stream)->device, 1);
}

static void an_allocation_is_of_the_kind_of_its_pool(void **unused)
{
    static const struct {
        CUmemLocation location;
        CUmemAllocationType type;
        enum gm_kind kind;
        int device;
    } pools[] = {
        {{CU_MEM_LOCATION_TYPE_HOST, 7}, 1, GM_KIND_PINNED, 1},
        {{CU_MEM_LOCATION_TYPE_HOST_NUMA, 2}, 1, GM_KIND_PINNED, 1},
        {{CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0}, 1, GM_KIND_PINNED, 1},
        {{CU_MEM_LOCATION_TYPE_DEVICE, 2}, 1, GM_KIND_DEVICE, 2},
        {{CU_MEM_LOCATION_TYPE_DEVICE, 2}, CU_MEM_ALLOCATION_TYPE_MANAGED, GM_KIND_MANAGED, 2},
        {{CU_MEM_LOCATION_TYPE_HOST, 0}, CU_MEM_ALLOCATION_TYPE_MANAGED, GM_KIND_MANAGED, 1},
        {{0, 0}, CU_MEM_ALLOCATION_TYPE_MANAGED, GM_KIND_MANAGED, 1},
    };
    CUdeviceptr address;
    use_device(1);
    for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++) {
        CUmemPoolProps properties = {.allocType = pools[i].type, .location = pools[i].location};
        CUmemLocation location = pools[i].location;
        CUmemoryPool pool;
        cuMemPoolCreate(&pool, &properties);
        for (int found = 0; found < 3; found++) { /* created, not destroyed, asked for */
            cuMemAllocFromPoolAsync(&address, 100, pool, NULL);
            assert_int_equal(last_record()->type, GM_EVENT_ALLOC);
            assert_int_equal(last_record()->kind, pools[i].kind);
            assert_int_equal(last_record()->device, pools[i].device);
            assert_int_equal(last_record()->flags, GM_FLAG_ASYNC | GM_FLAG_POOL);
            real_result = found == 0;
            cuMemPoolDestroy(pool); /* is refused first */
            real_result = 0;
            if (found == 1)
                cuMemGetDefaultMemPool(&pool, &location, pools[i].type);
        }
    }
}

/* A device has a current pool for each type of memory; cuMemAllocAsync takes from the pinned one. */
static void a_pool_of_managed_memory_is_not_the_current_one_of_its_device(void **unused)
{
    CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
    use_device(1);
    cuDeviceSetMemPool(1, DEFAULT_POOL);
    cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_MANAGED, POOL);
    assert_int_equal(allocate(NULL)->aux, GM_WORD(DEFAULT_POOL));
    assert_int_equal(last_record()->kind, GM_KIND_DEVICE);
    cuMemSetMemPool(&location, 1, POOL);
    assert_int_equal(allocate(NULL)->aux, GM_WORD(POOL));
    real_result = 1;
    cuMemPoolDestroy(POOL);
    real_result = 0;
    assert_int_equal(allocate(NULL)->aux, GM_WORD(POOL)); /* it was refused */
}

static void the_current_pool_of_a_device_is_named_when_it_is_known(void **unused)
{
    use_device(1);
    assert_int_equal(allocate(NULL)->aux, 0);
    cuDeviceSetMemPool(1, POOL);
    assert_int_equal(allocate(NULL)->aux, GM_WORD(POOL));
    use_device(0);
    assert_int_equal(allocate(NULL)->aux, 0);
    use_device(1);
    cuMemPoolDestroy(POOL);
    assert_int_equal(allocate(NULL)->aux, 0);
}

static void an_attribute_of_a_pool_is_read_in_its_width(void **unused)
{
    struct {
        int value;
        int guard;
    } rule = {1, -1};
    uint64_t threshold = 1ull << 40;
    cuMemPoolSetAttribute(POOL, 2, &rule);
    assert_record(0, GM_EVENT_POOL_SET, POOL, 0);
    assert_int_equal(record_at(0)->aux, 1);
    cuMemPoolSetAttribute(POOL, 4, &threshold);
    assert_int_equal(record_at(1)->aux, threshold);
    assert_int_equal(record_at(1)->extra, 4);
    cuMemPoolSetAttribute(POOL, 14, &rule); /* one whose width we do not know */
    assert_int_equal(record_at(2)->aux, 0);
    assert_int_equal(record_at(2)->extra, 14);
}

static void a_stream_ordered_free_is_booked_when_it_is_called(void **unused)
{
    cuMemFreeAsync(0x7000, STREAM);
    assert_int_equal(records_at_call, 1);
    assert_record(0, GM_EVENT_FREE, 0x7000, 0);
    assert_int_equal(record_at(0)->flags, GM_FLAG_ASYNC);
    real_result = 1;
    cuMemFreeAsync(0x7000, STREAM);
    assert_record(2, GM_EVENT_UNDO, 0x7000, 0);
}

/* ---- captures -------------------------------------------------------------------------------- */

static void what_is_allocated_in_a_capture_becomes_nodes_of_its_graph(void **unused)
{
    CUgraph graph;
    cuStreamBeginCapture_v2(STREAM, 0);
    const struct gm_record *node = allocate(STREAM);
    const uint64_t token = node->aux;
    assert_int_equal(node->type, GM_EVENT_GRAPH_ALLOC_NODE);
    assert_int_equal(node->kind, GM_KIND_GRAPH);
    assert_int_equal(node->flags, GM_FLAG_ASYNC | GM_FLAG_CAPTURED);
    assert_int_not_equal(token, 0);
    cuMemFreeAsync(0x7000, STREAM);
    assert_int_equal(record_count(), 2);
    assert_int_equal(records_at_call, 1); /* a node is not a free: recorded after the call */
    assert_record(1, GM_EVENT_GRAPH_FREE_NODE, 0x7000, 0);
    assert_int_equal(record_at(1)->aux, token);
    assert_int_equal(allocate(OTHER_STREAM)->type, GM_EVENT_ALLOC);
    cuStreamEndCapture(STREAM, &graph);
    assert_record(3, GM_EVENT_GRAPH_CHILD, GRAPH, 0);
    assert_int_equal(record_at(3)->aux, token);
    assert_record(4, GM_EVENT_GRAPH_DESTROY, token, 0);
    assert_int_equal(allocate(STREAM)->type, GM_EVENT_ALLOC);
    cuStreamBeginCapture_v2(STREAM, 0);
    assert_int_not_equal(allocate(STREAM)->aux, token);
}

static void copies_and_sets_in_a_capture_say_so(void **unused)
{
    USE(cuMemcpyAsync);
    USE(cuMemsetD8Async);
    cuMemcpyAsync(0x7000, 0x8000, 10, STREAM);
    assert_int_equal(last_record()->flags, GM_FLAG_ASYNC);
    cuStreamBeginCapture_v2(STREAM, 0);
    cuMemcpyAsync(0x7000, 0x8000, 10, STREAM);
    assert_int_equal(last_record()->flags, GM_FLAG_ASYNC | GM_FLAG_CAPTURED);
    cuMemsetD8Async(0x7000, 0, 10, STREAM);
    assert_int_equal(last_record()->flags, GM_FLAG_ASYNC | GM_FLAG_CAPTURED);
    cuMemsetD8Async(0x7000, 0, 10, OTHER_STREAM);
    assert_int_equal(last_record()->flags, GM_FLAG_ASYNC);
}

static void a_free_that_a_capture_refuses_is_no_node(void **unused)
{
    cuStreamBeginCapture_v2(STREAM, 0);
    real_result = 1;
    cuMemFreeAsync(0x7000, STREAM);
    assert_int_equal(record_count(), 0);
}

static void a_capture_that_fails_ends_without_a_graph(void **unused)
{
    CUgraph graph = NULL;
    cuStreamBeginCapture_v2(STREAM, 0);
    const uint64_t token = allocate(STREAM)->aux;
    real_result = WRONG_THREAD;
    cuStreamEndCapture(STREAM, &graph);
    real_result = 0;
    assert_int_equal(allocate(STREAM)->aux, token); /* it goes on */
    real_result = 901;                              /* invalidated */
    cuStreamEndCapture(STREAM, &graph);
    real_result = 0;
    assert_int_equal(record_count(), 3);
    assert_record(2, GM_EVENT_GRAPH_DESTROY, token, 0);
    assert_int_equal(allocate(STREAM)->type, GM_EVENT_ALLOC);
}

static void a_capture_into_a_graph_names_it(void **unused)
{
    CUgraph graph;
    cuStreamBeginCaptureToGraph(STREAM, GRAPH, NULL, NULL, 0, 0);
    assert_int_equal(allocate(STREAM)->aux, GM_WORD(GRAPH));
    cuStreamEndCapture(STREAM, &graph);
    assert_int_equal(record_count(), 1);
}

/* The graph has its nodes from the first capture; the second adds no work either. */
static void what_is_captured_again_is_no_new_node(void **unused)
{
    CUgraph graph;
    cuStreamBeginRecaptureToGraph(STREAM, 0, GRAPH, NULL, NULL);
    const struct gm_record *node = allocate(STREAM);
    const uint64_t token = node->aux;
    assert_int_equal(node->type, GM_EVENT_GRAPH_ALLOC_NODE);
    assert_int_not_equal(token, GM_WORD(GRAPH));
    cuMemFreeAsync(0x7000, STREAM);
    assert_record(1, GM_EVENT_GRAPH_FREE_NODE, 0x7000, 0);
    cuStreamEndCapture(STREAM, &graph);
    assert_int_equal(record_count(), 3);
    assert_record(2, GM_EVENT_GRAPH_DESTROY, token, 0);
    assert_int_equal(allocate(STREAM)->type, GM_EVENT_ALLOC);
}

static void what_is_captured_for_a_graphics_list_is_in_no_graph(void **unused)
{
    USE(cuMemcpyAsync);
    cuStreamBeginCaptureToCig(STREAM, NULL);
    cuMemcpyAsync(0x7000, 0x8000, 10, STREAM);
    assert_int_equal(last_record()->flags, GM_FLAG_ASYNC | GM_FLAG_CAPTURED);
    cuStreamEndCaptureToCig(STREAM);
    assert_int_equal(last_record()->type, GM_EVENT_GRAPH_DESTROY);
    cuMemcpyAsync(0x7000, 0x8000, 10, STREAM);
    assert_int_equal(last_record()->flags, GM_FLAG_ASYNC);
}

static void a_capture_spreads_by_events(void **unused)
{
    CUgraph graph;
    cuEventRecord(EVENT, OTHER_STREAM);
    cuStreamBeginCapture_v2(STREAM, 0);
    cuStreamWaitEvent(OTHER_STREAM, EVENT, 0);
    assert_int_equal(allocate(OTHER_STREAM)->type, GM_EVENT_ALLOC);
    cuEventRecord(EVENT, STREAM);
    cuStreamWaitEvent(OTHER_STREAM, EVENT, 0);
    assert_int_equal(allocate(OTHER_STREAM)->aux, allocate(STREAM)->aux);
    cuEventRecord(EVENT, THIRD_STREAM); /* is no longer in a capture */
    cuStreamWaitEvent(THIRD_STREAM, EVENT, 0);
    assert_int_equal(allocate(THIRD_STREAM)->type, GM_EVENT_ALLOC);
    cuEventRecord(EVENT, STREAM);
    cuStreamEndCapture(STREAM, &graph);
    assert_int_equal(allocate(OTHER_STREAM)->type, GM_EVENT_ALLOC);
    cuStreamBeginCapture_v2(STREAM, 0);
    cuStreamWaitEvent(OTHER_STREAM, EVENT, 0); /* from the capture that has ended */
    assert_int_equal(allocate(OTHER_STREAM)->type, GM_EVENT_ALLOC);
}

static void a_stream_that_is_destroyed_captures_no_more(void **unused)
{
    cuStreamBeginCapture_v2(STREAM, 0);
    cuStreamDestroy_v2(STREAM);
    assert_int_equal(allocate(STREAM)->type, GM_EVENT_ALLOC);
}

static void *allocate_on_own_stream(void *by_handle)
{
    CUdeviceptr address;
    if (by_handle)
        cuMemAllocAsync(&address, 100, PER_THREAD);
    else
        cuMemAllocAsync_ptsz(&address, 100, NULL);
    return NULL;
}

static void the_default_stream_of_a_thread_is_its_own(void **unused)
{
    CUgraph graph;
    pthread_t thread;
    cuStreamBeginCapture_v2_ptsz(NULL, 0);
    for (uintptr_t by_handle = 0; by_handle < 2; by_handle++) {
        allocate_on_own_stream((void *)by_handle);
        assert_int_equal(last_record()->type, GM_EVENT_GRAPH_ALLOC_NODE);
        pthread_create(&thread, NULL, allocate_on_own_stream, (void *)by_handle);
        pthread_join(thread, NULL);
        assert_int_equal(last_record()->type, GM_EVENT_ALLOC);
    }
    assert_int_equal(allocate(NULL)->type, GM_EVENT_ALLOC); /* the legacy default stream */
    cuStreamEndCapture_ptsz(PER_THREAD, &graph);
    allocate_on_own_stream(NULL);
    assert_int_equal(last_record()->type, GM_EVENT_ALLOC);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

REAL(CUresult, cuGraphAddMemAllocNode,
     (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
      CUDA_MEM_ALLOC_NODE_PARAMS *parameters),
     { parameters->dptr = 0x7000; })
REAL(CUresult, cuGraphAddNode_v2,
     (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies,
      const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *parameters),
     {
         if (parameters->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
             parameters->alloc.dptr = 0x7000;
     })
REAL(CUresult, cuGraphInstantiateWithParams,
     (CUgraphExec * executable, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters),
     { *executable = EXECUTABLE; })
REAL(CUresult, cuGraphDestroy, (CUgraph graph), {})
REAL(CUresult, cuGraphExecDestroy, (CUgraphExec executable), {})
REAL(CUresult, cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned flags), {})
REAL(CUresult, cuEventDestroy_v2, (CUevent event), {})
REAL(CUresult, cuGraphLaunch, (CUgraphExec executable, CUstream stream), {})

static void an_allocation_node_tells_what_the_driver_filled_in(void **unused)
{
    CUgraphNode node;
    CUDA_MEM_ALLOC_NODE_PARAMS parameters = {
        .poolProps = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 2}}, .bytesize = 640};
    USE(cuGraphAddMemAllocNode);
    cuGraphAddMemAllocNode(&node, GRAPH, NULL, 0, &parameters);
    assert_record(0, GM_EVENT_GRAPH_ALLOC_NODE, 0x7000, 640);
    assert_int_equal(record_at(0)->aux, GM_WORD(GRAPH));
    assert_int_equal(record_at(0)->device, 2);
}

/* The driver may give the handle to another thread before its destruction has returned. */
static void graphs_and_executables_end_before_the_call(void **unused)
{
    USE(cuGraphDestroy);
    USE(cuGraphExecDestroy);
    cuGraphDestroy(GRAPH);
    assert_record(0, GM_EVENT_GRAPH_DESTROY, GRAPH, 0);
    assert_int_equal(records_at_call, 1);
    real_result = 1;
    cuGraphExecDestroy(EXECUTABLE);
    assert_int_equal(records_at_call, 2);
    assert_record(1, GM_EVENT_GRAPH_EXEC_DESTROY, EXECUTABLE, 0);
    assert_record(2, GM_EVENT_UNDO, EXECUTABLE, 0);
    assert_int_equal(record_at(2)->kind, GM_EVENT_GRAPH_EXEC_DESTROY);
}

static void an_external_event_carries_no_capture(void **unused)
{
    USE(cuEventRecordWithFlags);
    USE(cuEventDestroy_v2);
    cuStreamBeginCapture_v2(STREAM, 0);
    const uint64_t token = allocate(STREAM)->aux;
    cuEventRecordWithFlags(EVENT, STREAM, 1);
    cuStreamWaitEvent(OTHER_STREAM, EVENT, 0);
    assert_int_equal(allocate(OTHER_STREAM)->type, GM_EVENT_ALLOC);
    cuEventRecordWithFlags(EVENT, STREAM, 0);
    cuEventRecordWithFlags(EVENT, OTHER_STREAM, 1); /* clears nothing */
    cuStreamWaitEvent(OTHER_STREAM, EVENT, 1);
    assert_int_equal(allocate(OTHER_STREAM)->type, GM_EVENT_ALLOC);
    real_result = 1;
    cuEventDestroy_v2(EVENT); /* is refused */
    cuStreamDestroy_v2(STREAM);
    real_result = 0;
    assert_int_equal(allocate(STREAM)->aux, token);
    cuStreamWaitEvent(OTHER_STREAM, EVENT, 0);
    assert_int_equal(allocate(OTHER_STREAM)->aux, token);
    cuStreamWaitEvent((CUstream)0x5300, EVENT, 0);
    cuEventDestroy_v2(EVENT); /* its handle is that of one which was not recorded */
    cuStreamWaitEvent((CUstream)0x5400, EVENT, 0);
    assert_int_equal(allocate((CUstream)0x5300)->aux, token);
    assert_int_equal(allocate((CUstream)0x5400)->type, GM_EVENT_ALLOC);
}

static void a_generic_node_is_what_its_type_says(void **unused)
{
    CUgraphNode node;
    CUgraphNodeParams parameters = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                                    .alloc = {.bytesize = 64}};
    USE(cuGraphAddNode_v2);
    cuGraphAddNode_v2(&node, GRAPH, NULL, NULL, 0, &parameters);
    assert_record(0, GM_EVENT_GRAPH_ALLOC_NODE, 0x7000, 64);
    parameters = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = 0x7000};
    cuGraphAddNode_v2(&node, GRAPH, NULL, NULL, 0, &parameters);
    assert_record(1, GM_EVENT_GRAPH_FREE_NODE, 0x7000, 0);
    parameters = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = (CUgraph)0x4100};
    cuGraphAddNode_v2(&node, GRAPH, NULL, NULL, 0, &parameters);
    assert_record(2, GM_EVENT_GRAPH_CHILD, GRAPH, 0);
    assert_int_equal(record_at(2)->aux, 0x4100);
    parameters = (CUgraphNodeParams){.type = 0}; /* a kernel */
    cuGraphAddNode_v2(&node, GRAPH, NULL, NULL, 0, &parameters);
    real_result = 1;
    parameters = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = 0x7000};
    cuGraphAddNode_v2(&node, GRAPH, NULL, NULL, 0, &parameters);
    assert_int_equal(record_count(), 3);
}

static void an_executable_is_told_with_its_flags(void **unused)
{
    CUgraphExec executable;
    CUDA_GRAPH_INSTANTIATE_PARAMS parameters = {.flags = 1};
    USE(cuGraphInstantiateWithParams);
    cuGraphInstantiateWithParams(&executable, GRAPH, &parameters);
    assert_record(0, GM_EVENT_GRAPH_INSTANTIATE, EXECUTABLE, 0);
    assert_int_equal(record_at(0)->aux, GM_WORD(GRAPH));
    assert_int_equal(record_at(0)->extra, 1);
}

static void a_launch_without_memory_is_a_failed_allocation(void **unused)
{
    USE(cuGraphLaunch);
    cuGraphLaunch(EXECUTABLE, STREAM);
    assert_record(0, GM_EVENT_GRAPH_LAUNCH, EXECUTABLE, 0);
    assert_int_equal(records_at_call, 0);
    real_result = OUT_OF_MEMORY;
    cuGraphLaunch(EXECUTABLE, STREAM);
    assert_record(1, GM_EVENT_ALLOC_FAILED, 0, 0);
    assert_int_equal(record_at(1)->kind, GM_KIND_GRAPH);
    real_result = 1;
    cuGraphLaunch(EXECUTABLE, STREAM);
    assert_int_equal(record_count(), 2);
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_allocation_is_on_the_device_of_its_pool),
        TEST(an_allocation_is_on_the_device_of_its_stream),
        TEST(an_allocation_is_of_the_kind_of_its_pool),
        TEST(a_pool_of_managed_memory_is_not_the_current_one_of_its_device),
        TEST(the_current_pool_of_a_device_is_named_when_it_is_known),
        TEST(an_attribute_of_a_pool_is_read_in_its_width),
        TEST(a_stream_ordered_free_is_booked_when_it_is_called),
        TEST(what_is_allocated_in_a_capture_becomes_nodes_of_its_graph),
        TEST(copies_and_sets_in_a_capture_say_so),
        TEST(a_free_that_a_capture_refuses_is_no_node),
        TEST(a_capture_that_fails_ends_without_a_graph),
        TEST(a_capture_into_a_graph_names_it),
        TEST(what_is_captured_again_is_no_new_node),
        TEST(what_is_captured_for_a_graphics_list_is_in_no_graph),
        TEST(a_capture_spreads_by_events),
        TEST(a_stream_that_is_destroyed_captures_no_more),
        TEST(the_default_stream_of_a_thread_is_its_own),
        TEST(an_allocation_node_tells_what_the_driver_filled_in),
        TEST(graphs_and_executables_end_before_the_call),
        TEST(an_external_event_carries_no_capture),
        TEST(a_generic_node_is_what_its_type_says),
        TEST(an_executable_is_told_with_its_flags),
        TEST(a_launch_without_memory_is_a_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
