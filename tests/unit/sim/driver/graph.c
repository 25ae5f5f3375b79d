/*
 * Graphs and stream capture of the simulated driver.
 */
#include "support.h"

#include <string.h>

static CUDA_MEM_ALLOC_NODE_PARAMS allocation_of(size_t size)
{
    return (CUDA_MEM_ALLOC_NODE_PARAMS){
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}},
        .bytesize = size,
    };
}

static void count_call(void *counter)
{
    ++*(int *)counter;
}

static void a_node_of_a_managed_pool_is_managed_memory(void **state)
{
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = allocation_of(5000);
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec executable;

    (void)state;
    alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
    assert_ok(cuGraphCreate(&graph, 0));
    assert_ok(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &alloc));
    assert_ok(cuGraphInstantiate(&executable, graph, 0));
    assert_ok(cuGraphLaunch(executable, NULL));
    assert_int_equal(DELTA(0, GPUSIM_MANAGED, live), 5000);
    assert_int_equal(DELTA(0, GPUSIM_GRAPH, allocs), 0);
    assert_ok(cuMemFree(alloc.dptr));
    assert_int_equal(DELTA(0, GPUSIM_MANAGED, live), 0);
    assert_ok(cuGraphExecDestroy(executable));
    assert_ok(cuGraphDestroy(graph));
}

static void a_launch_allocates_and_frees(void **state)
{
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = allocation_of(5000);
    CUgraph graph;
    CUgraphNode first, set, last;
    CUgraphExec executable;
    CUdeviceptr seen;

    (void)state;
    assert_ok(cuGraphCreate(&graph, 0));
    assert_ok(cuGraphAddMemAllocNode(&first, graph, NULL, 0, &alloc));
    CUDA_MEMSET_NODE_PARAMS fill = {
        .dst = alloc.dptr, .value = 8, .elementSize = 1, .width = 5000, .height = 1};
    assert_ok(cuGraphAddMemsetNode(&set, graph, &first, 1, &fill, context));
    assert_ok(cuGraphAddMemFreeNode(&last, graph, &set, 1, alloc.dptr));
    assert_ok(cuGraphMemFreeNodeGetParams(last, &seen));
    assert_int_equal(seen, alloc.dptr);
    assert_ok(cuGraphInstantiate(&executable, graph, 0));
    assert_int_equal(DELTA(0, GPUSIM_GRAPH, allocs), 0);
    assert_ok(cuGraphLaunch(executable, NULL));
    assert_ok(cuGraphLaunch(executable, NULL));
    assert_ok(cuStreamSynchronize(NULL));
    assert_int_equal(DELTA(0, GPUSIM_GRAPH, allocs), 2);
    assert_int_equal(DELTA(0, GPUSIM_GRAPH, frees), 2);
    assert_int_equal(KIND(0, GPUSIM_GRAPH)->peak, 5000);
    assert_ok(cuGraphExecDestroy(executable));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuGraphExecDestroy(executable));
    assert_ok(cuGraphDestroy(graph));
    assert_ok(cuDeviceGraphMemTrim(0));
}

static void memory_a_graph_leaves_outlives_it_and_is_freed_by_address(void **state)
{
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = allocation_of(3 * MIB);
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec executable;
    cuuint64_t used;
    int value = 3;

    (void)state;
    assert_ok(cuGraphCreate(&graph, 0));
    assert_ok(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &alloc));
    assert_ok(cuGraphInstantiate(&executable, graph, 0));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(alloc.dptr, &value, 4));
    assert_ok(cuGraphLaunch(executable, NULL));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(executable, NULL)); /* still allocated */
    assert_ok(cuMemcpyHtoD(alloc.dptr, &value, 4));
    assert_ok(cuGraphExecDestroy(executable));
    assert_ok(cuGraphDestroy(graph));
    assert_int_equal(DELTA(0, GPUSIM_GRAPH, live), 3 * MIB);
    assert_ok(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
    assert_int_equal(used, 3 * MIB);
    assert_ok(cuMemFreeAsync(alloc.dptr, NULL));
    assert_int_equal(DELTA(0, GPUSIM_GRAPH, live), 0);
    assert_ok(cuDeviceGraphMemTrim(0));
    assert_ok(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &used));
    assert_int_equal(used, 0);
}

static void auto_free_frees_what_the_last_launch_left(void **state)
{
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = allocation_of(100);
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec executable, second;

    (void)state;
    assert_ok(cuGraphCreate(&graph, 0));
    assert_ok(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &alloc));
    assert_ok(
        cuGraphInstantiate(&executable, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&second, graph, 0));
    for (int i = 0; i < 3; i++)
        assert_ok(cuGraphLaunch(executable, NULL));
    assert_int_equal(DELTA(0, GPUSIM_GRAPH, allocs), 3);
    assert_int_equal(DELTA(0, GPUSIM_GRAPH, frees), 2);
    assert_int_equal(DELTA(0, GPUSIM_GRAPH, live), 100);
    assert_ok(cuMemFree(alloc.dptr));
    assert_ok(cuGraphExecDestroy(executable));
    assert_ok(cuGraphInstantiate(&second, graph, 0));
    assert_ok(cuGraphExecDestroy(second));
    assert_ok(cuGraphDestroy(graph));
}

static void a_launch_without_room_does_nothing(void **state)
{
    CUDA_MEM_ALLOC_NODE_PARAMS small = allocation_of(MIB), large = allocation_of(200 * MIB);
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec executable;
    CUdeviceptr hog;

    (void)state;
    assert_ok(cuGraphCreate(&graph, 0));
    assert_ok(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &small));
    assert_ok(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &large));
    assert_ok(cuGraphInstantiate(&executable, graph, 0));
    assert_ok(cuMemAlloc(&hog, 100 * MIB));
    assert_cuda(CUDA_ERROR_OUT_OF_MEMORY, cuGraphLaunch(executable, NULL));
    assert_int_equal(DELTA(0, GPUSIM_GRAPH, allocs), 0);
    assert_int_equal(oracle->failed - before.failed, 1);
    assert_ok(cuMemFree(hog));
    assert_ok(cuGraphLaunch(executable, NULL));
    assert_ok(cuMemFree(small.dptr));
    assert_ok(cuMemFree(large.dptr));
    assert_ok(cuGraphExecDestroy(executable));
    assert_ok(cuGraphDestroy(graph));
    assert_ok(cuDeviceGraphMemTrim(0));
}

static void nodes_run_after_what_they_depend_on(void **state)
{
    CUgraph graph;
    CUgraphNode copy, fill, edges_from[2], edges_to[2];
    CUgraphExec executable;
    CUdeviceptr pointer;
    size_t count = 2;
    unsigned int seen = 0;

    (void)state;
    assert_ok(cuMemAlloc(&pointer, 8));
    assert_ok(cuGraphCreate(&graph, 0));
    CUDA_MEMCPY3D back = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = pointer,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = &seen,
                          .WidthInBytes = 4,
                          .Height = 1,
                          .Depth = 1};
    CUDA_MEMSET_NODE_PARAMS set = {
        .dst = pointer, .value = 21, .elementSize = 4, .width = 1, .height = 1};
    assert_ok(cuGraphAddMemcpyNode(&copy, graph, NULL, 0, &back, context));
    assert_ok(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &set, context));
    assert_ok(cuGraphAddDependencies(graph, &fill, &copy, NULL, 1)); /* added later, runs first */
    assert_ok(cuGraphGetEdges(graph, edges_from, edges_to, NULL, &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(edges_from[0], fill);
    assert_ok(cuGraphInstantiate(&executable, graph, 0));
    assert_ok(cuGraphLaunch(executable, NULL));
    assert_int_equal(seen, 21);
    set.value = 22;
    assert_ok(cuGraphExecMemsetNodeSetParams(executable, fill, &set, context));
    assert_ok(cuGraphLaunch(executable, NULL));
    assert_int_equal(seen, 22);
    assert_ok(cuGraphNodeSetEnabled(executable, copy, 0));
    seen = 0;
    assert_ok(cuGraphLaunch(executable, NULL));
    assert_int_equal(seen, 0);
    assert_ok(cuGraphAddDependencies(graph, &copy, &fill, NULL, 1)); /* a cycle */
    CUgraphExec cyclic;
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&cyclic, graph, 0));
    assert_ok(cuGraphExecDestroy(executable));
    assert_ok(cuGraphDestroy(graph));
    assert_ok(cuMemFree(pointer));
}

static void graphs_are_cloned_nested_and_updated(void **state)
{
    int calls = 0, other = 0;
    CUDA_HOST_NODE_PARAMS host = {count_call, &calls}, changed = {count_call, &other};
    CUgraph child, parent, clone;
    CUgraphNode inner, outer, found;
    CUgraphExec executable;
    CUgraphExecUpdateResultInfo result;
    size_t count;

    (void)state;
    assert_ok(cuGraphCreate(&child, 0));
    assert_ok(cuGraphAddHostNode(&inner, child, NULL, 0, &host));
    assert_ok(cuGraphCreate(&parent, 0));
    assert_ok(cuGraphAddChildGraphNode(&outer, parent, NULL, 0, child));
    assert_ok(cuGraphAddHostNode(&inner, parent, &outer, 1, &host));
    assert_ok(cuGraphClone(&clone, parent));
    assert_ok(cuGraphNodeFindInClone(&found, inner, clone));
    assert_ok(cuGraphHostNodeSetParams(found, &changed));
    assert_ok(cuGraphInstantiate(&executable, parent, 0));
    assert_ok(cuGraphLaunch(executable, NULL));
    assert_int_equal(calls, 2);
    assert_ok(cuGraphExecUpdate(executable, clone, &result));
    assert_ok(cuGraphLaunch(executable, NULL));
    assert_int_equal(calls, 3);
    assert_int_equal(other, 1);
    assert_ok(cuGraphDestroyNode(found));
    assert_ok(cuGraphGetNodes(clone, NULL, &count));
    assert_int_equal(count, 1);
    assert_cuda(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
                cuGraphExecUpdate(executable, clone, &result));
    assert_int_equal(result.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    assert_ok(cuGraphExecDestroy(executable));
    assert_ok(cuGraphDestroy(child));
    assert_ok(cuGraphDestroy(parent));
    assert_ok(cuGraphDestroy(clone));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(clone));
}

static void the_generic_form_adds_every_memory_node(void **state)
{
    CUgraphNodeParams parameters = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    CUgraph graph;
    CUgraphNode alloc, set, last;
    CUgraphNodeType type;
    CUgraphExec executable;
    CUdeviceptr pointer;

    (void)state;
    assert_ok(cuGraphCreate(&graph, 0));
    parameters.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    parameters.alloc.poolProps.location =
        (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1};
    parameters.alloc.bytesize = 77;
    assert_ok(cuGraphAddNode(&alloc, graph, NULL, NULL, 0, &parameters));
    pointer = parameters.alloc.dptr;
    memset(&parameters, 0, sizeof(parameters));
    parameters.type = CU_GRAPH_NODE_TYPE_MEMSET;
    parameters.memset.dst = pointer;
    parameters.memset.elementSize = 1;
    parameters.memset.width = 77;
    parameters.memset.height = 1;
    assert_ok(cuGraphAddNode(&set, graph, &alloc, NULL, 1, &parameters));
    memset(&parameters, 0, sizeof(parameters));
    parameters.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
    parameters.free.dptr = pointer;
    assert_ok(cuGraphAddNode(&last, graph, &set, NULL, 1, &parameters));
    assert_ok(cuGraphNodeGetType(last, &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_MEM_FREE);
    assert_ok(cuGraphInstantiate(&executable, graph, 0));
    assert_ok(cuGraphLaunch(executable, NULL));
    assert_int_equal(DELTA(1, GPUSIM_GRAPH, allocs), 1); /* the device of the node */
    assert_int_equal(DELTA(1, GPUSIM_GRAPH, frees), 1);
    assert_ok(cuGraphExecDestroy(executable));
    assert_ok(cuGraphDestroy(graph));
}

static void an_error_of_a_node_comes_with_the_synchronisation(void **state)
{
    CUDA_MEMSET_NODE_PARAMS set = {.dst = 4096, .elementSize = 1, .width = 1, .height = 1};
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec executable;

    (void)state;
    assert_ok(cuGraphCreate(&graph, 0));
    assert_ok(cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, context));
    assert_ok(cuGraphInstantiate(&executable, graph, 0));
    assert_ok(cuGraphLaunch(executable, NULL));
    assert_cuda(CUDA_ERROR_UNKNOWN, cuStreamSynchronize(NULL));
    assert_ok(cuStreamSynchronize(NULL));
    assert_ok(cuGraphExecDestroy(executable));
    assert_ok(cuGraphDestroy(graph));
}

/* ---- capture --------------------------------------------------------------------------------- */

static void captured_work_becomes_nodes(void **state)
{
    CUstream stream;
    CUstreamCaptureStatus status;
    CUgraph graph;
    CUgraphExec executable;
    CUdeviceptr pointer;
    int seen = 0, calls = 0;
    size_t count;

    (void)state;
    assert_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    assert_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_ok(cuMemAllocAsync(&pointer, 640, stream));
    assert_ok(cuMemsetD8Async(pointer, 1, 640, stream));
    assert_ok(cuMemcpyDtoHAsync(&seen, pointer, 4, stream));
    assert_ok(cuLaunchHostFunc(stream, count_call, &calls));
    assert_ok(cuMemFreeAsync(pointer, stream));
    assert_ok(cuStreamIsCapturing(stream, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_ok(cuStreamEndCapture(stream, &graph));
    assert_int_equal(DELTA(0, GPUSIM_GRAPH, allocs) + DELTA(0, GPUSIM_DEVICE, allocs), 0);
    assert_int_equal(seen + calls, 0);
    assert_ok(cuGraphGetNodes(graph, NULL, &count));
    assert_int_equal(count, 5);
    assert_ok(cuGraphInstantiate(&executable, graph, 0));
    assert_ok(cuGraphLaunch(executable, stream));
    assert_int_equal(seen, 0x01010101);
    assert_int_equal(calls, 1);
    assert_int_equal(DELTA(0, GPUSIM_GRAPH, allocs), 1);
    assert_int_equal(DELTA(0, GPUSIM_GRAPH, frees), 1);
    assert_ok(cuGraphExecDestroy(executable));
    assert_ok(cuGraphDestroy(graph));
    assert_ok(cuStreamDestroy(stream));
}

static void streams_join_a_capture_by_events(void **state)
{
    CUstream origin, other;
    CUevent fork_event, join_event;
    CUgraph graph;
    size_t count;

    (void)state;
    assert_ok(cuStreamCreate(&origin, 0));
    assert_ok(cuStreamCreate(&other, 0));
    assert_ok(cuEventCreate(&fork_event, CU_EVENT_DISABLE_TIMING));
    assert_ok(cuEventCreate(&join_event, CU_EVENT_DISABLE_TIMING));
    int calls = 0;
    assert_ok(cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    assert_ok(cuLaunchHostFunc(origin, count_call, &calls));
    assert_ok(cuEventRecord(fork_event, origin));
    assert_ok(cuStreamWaitEvent(other, fork_event, 0));
    assert_ok(cuLaunchHostFunc(other, count_call, &calls));
    assert_cuda(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(other, &graph));
    assert_cuda(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(fork_event));
    assert_ok(cuEventRecord(join_event, other));
    assert_ok(cuStreamWaitEvent(origin, join_event, 0));
    assert_ok(cuStreamEndCapture(origin, &graph));
    assert_ok(cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
    assert_int_equal(count, 1);
    assert_ok(cuGraphDestroy(graph));

    assert_ok(cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    assert_ok(cuEventRecord(fork_event, origin));
    assert_ok(cuStreamWaitEvent(other, fork_event, 0));
    assert_ok(cuLaunchHostFunc(other, count_call, &calls));
    assert_cuda(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(origin, &graph));
    assert_null(graph);
    assert_int_equal(calls, 0);
    assert_ok(cuEventDestroy(fork_event));
    assert_ok(cuEventDestroy(join_event));
    assert_ok(cuStreamDestroy(origin));
    assert_ok(cuStreamDestroy(other));
}

static void unsafe_calls_invalidate_a_capture_unless_relaxed(void **state)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUstream stream;
    CUgraph graph;
    CUdeviceptr pointer;

    (void)state;
    assert_ok(cuStreamCreate(&stream, 0));
    assert_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_ok(cuThreadExchangeStreamCaptureMode(&mode));
    assert_ok(cuMemAlloc(&pointer, 64));
    assert_ok(cuMemFree(pointer));
    assert_ok(cuThreadExchangeStreamCaptureMode(&mode));
    assert_cuda(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&pointer, 64));
    assert_cuda(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuMemAllocAsync(&pointer, 64, stream));
    assert_cuda(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    assert_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_cuda(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream));
    assert_cuda(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    assert_cuda(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_cuda(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(stream, &graph));
    assert_ok(cuStreamDestroy(stream));
}

static void a_stream_destroyed_while_capturing_ends_the_capture(void **state)
{
    CUstream stream;
    CUdeviceptr pointer;

    (void)state;
    assert_ok(cuStreamCreate(&stream, 0));
    assert_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_ok(cuMemAllocAsync(&pointer, 64, stream));
    assert_ok(cuStreamDestroy(stream));
    assert_ok(cuMemAlloc(&pointer, 64));
    assert_ok(cuMemFree(pointer));
}

/* ---- user objects ---------------------------------------------------------------------------- */

static void a_user_object_goes_with_its_last_graph(void **state)
{
    int destroyed = 0;
    CUuserObject object;
    CUgraph graph;
    CUgraphExec executable;

    (void)state;
    assert_ok(
        cuUserObjectCreate(&object, &destroyed, count_call, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    assert_ok(cuGraphCreate(&graph, 0));
    assert_ok(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    assert_ok(cuGraphInstantiate(&executable, graph, 0));
    assert_ok(cuGraphDestroy(graph));
    assert_int_equal(destroyed, 0);
    assert_ok(cuGraphExecDestroy(executable));
    assert_int_equal(destroyed, 1);
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuUserObjectRelease(object, 1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_test, end_test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_node_of_a_managed_pool_is_managed_memory),
        TEST(a_launch_allocates_and_frees),
        TEST(memory_a_graph_leaves_outlives_it_and_is_freed_by_address),
        TEST(auto_free_frees_what_the_last_launch_left),
        TEST(a_launch_without_room_does_nothing),
        TEST(nodes_run_after_what_they_depend_on),
        TEST(graphs_are_cloned_nested_and_updated),
        TEST(the_generic_form_adds_every_memory_node),
        TEST(an_error_of_a_node_comes_with_the_synchronisation),
        TEST(captured_work_becomes_nodes),
        TEST(streams_join_a_capture_by_events),
        TEST(unsafe_calls_invalidate_a_capture_unless_relaxed),
        TEST(a_stream_destroyed_while_capturing_ends_the_capture),
        TEST(a_user_object_goes_with_its_last_graph),
    };

    return cmocka_run_group_tests(tests, start_driver, NULL);
}
