/*
 * The memory functions of CUDA 13.1 to 13.5, through the driver API: multicast binds that name the
 * device next to those that do not, logical endpoints, copies with attributes, graphs captured
 * again, captures for a graphics library. With an argument the program gets them from
 * cuGetProcAddress, at the version of the argument; without one, it is linked to them.
 */
#define __CUDA_API_VERSION_INTERNAL /* every ABI under its own name */
#include "newer.h"
#include "plant.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PHYSICAL ((size_t)2 << 20)

/* FUNCTION(symbol, name that cuGetProcAddress knows, version of the ABI, newest of its name) */
#define FUNCTIONS                                                                                  \
    FUNCTION(cuMulticastBindMem, cuMulticastBindMem, 12010, 0)                                     \
    FUNCTION(cuMulticastBindMem_v2, cuMulticastBindMem, 13010, 1)                                  \
    FUNCTION(cuMulticastBindAddr_v2, cuMulticastBindAddr, 13010, 1)                                \
    FUNCTION(cuStreamBeginCaptureToCig, cuStreamBeginCaptureToCig, 13010, 1)                       \
    FUNCTION(cuStreamEndCaptureToCig, cuStreamEndCaptureToCig, 13010, 1)                           \
    FUNCTION(cuMemcpyWithAttributesAsync, cuMemcpyWithAttributesAsync, 13020, 1)                   \
    FUNCTION(cuMemcpy3DWithAttributesAsync, cuMemcpy3DWithAttributesAsync, 13020, 1)               \
    FUNCTION(cuStreamBeginRecaptureToGraph, cuStreamBeginRecaptureToGraph, 13030, 1)               \
    FUNCTION(cuLogicalEndpointIdReserve, cuLogicalEndpointIdReserve, 13030, 1)                     \
    FUNCTION(cuLogicalEndpointIdRelease, cuLogicalEndpointIdRelease, 13030, 1)                     \
    FUNCTION(cuLogicalEndpointCreate, cuLogicalEndpointCreate, 13030, 1)                           \
    FUNCTION(cuLogicalEndpointDestroy, cuLogicalEndpointDestroy, 13030, 1)                         \
    FUNCTION(cuLogicalEndpointBindMem, cuLogicalEndpointBindMem, 13030, 1)                         \
    FUNCTION(cuLogicalEndpointBindAddr, cuLogicalEndpointBindAddr, 13030, 1)                       \
    FUNCTION(cuLogicalEndpointUnbind, cuLogicalEndpointUnbind, 13030, 1)                           \
    FUNCTION(cuGraphAddNode_v3, cuGraphAddNode, 13040, 1)

#define FUNCTION(symbol, name, version, newest) static __typeof__(symbol) *driver_##symbol = symbol;
FUNCTIONS
#undef FUNCTION

/* The newest of a name at the requested version, others at their own. */
static void find_all(int asked)
{
    CUdriverProcAddressQueryResult status;
#define FUNCTION(symbol, name, version, newest)                                                    \
    driver_##symbol = NULL;                                                                        \
    LOG(cuGetProcAddress_v2(#name, (void **)&driver_##symbol, newest ? asked : version, 0,         \
                            &status));
    FUNCTIONS
#undef FUNCTION
}

static CUmemGenericAllocationHandle create_memory(CUdevice device)
{
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
    properties.location.id = device;
    LOG(cuMemCreate(&handle, PHYSICAL, &properties, 0));
    return handle;
}

/* The memory lives as long as it is bound, whoever bound it. */
static void multicast(void)
{
    CUmemGenericAllocationHandle team, memory[2] = {create_memory(0), create_memory(1)};
    CUmulticastObjectProp properties = {.numDevices = 2, .size = 2 * PHYSICAL};
    CUdeviceptr address;
    LOG(cuMulticastCreate(&team, &properties));
    LOG(cuMulticastAddDevice(team, 0));
    LOG(cuMulticastAddDevice(team, 1));
    LOG(driver_cuMulticastBindMem_v2(team, 0, 0, memory[0], 0, PHYSICAL, 0));
    LOG(driver_cuMulticastBindMem_v2(team, 0, 0, memory[1], 0, PHYSICAL, 0)); /* of device 1 */
    LOG(driver_cuMulticastBindMem(team, 0, memory[1], 0, PHYSICAL, 0));
    LOG(cuMemRelease(memory[0]));
    LOG(cuMemRelease(memory[1]));
    LOG(cuMulticastUnbind(team, 0, 0, PHYSICAL)); /* the first one goes here */
    memory[0] = create_memory(0);
    LOG(cuMemAddressReserve(&address, PHYSICAL, 0, 0, 0));
    LOG(cuMemMap(address, PHYSICAL, 0, memory[0], 0));
    LOG(driver_cuMulticastBindAddr_v2(team, 0, PHYSICAL, address, PHYSICAL, 0));
    LOG(cuMemRelease(memory[0]));
    LOG(cuMemUnmap(address, PHYSICAL));
    LOG(cuMemAddressFree(address, PHYSICAL));
    LOG(cuMemRelease(team)); /* both others here */
}

static void endpoint(void)
{
    CUlogicalEndpointId id = 77;
    CUlogicalEndpointProp properties = {.type = CU_LOGICAL_ENDPOINT_TYPE_UNICAST,
                                        .size = 4 * PHYSICAL};
    CUmemGenericAllocationHandle memory[2] = {create_memory(0), create_memory(0)};
    CUdeviceptr address;
    LOG(driver_cuLogicalEndpointIdReserve(&id, 1));
    printf("endpoint %u\n", id);
    LOG(driver_cuLogicalEndpointCreate(id, &properties));
    LOG(driver_cuLogicalEndpointCreate(id, &properties)); /* there is one */
    LOG(driver_cuLogicalEndpointBindMem(id, 0, 0, memory[0], 0, PHYSICAL, 0));
    LOG(driver_cuLogicalEndpointBindMem(id, 1, PHYSICAL, memory[1], 0, PHYSICAL, 0)); /* refused */
    LOG(cuMemAddressReserve(&address, PHYSICAL, 0, 0, 0));
    LOG(cuMemMap(address, PHYSICAL, 0, memory[1], 0));
    LOG(driver_cuLogicalEndpointBindAddr(id, 0, 2 * PHYSICAL, (void *)(uintptr_t)address, PHYSICAL,
                                         0));
    LOG(cuMemUnmap(address, PHYSICAL));
    LOG(cuMemAddressFree(address, PHYSICAL));
    LOG(cuMemRelease(memory[0]));
    LOG(cuMemRelease(memory[1]));
    LOG(driver_cuLogicalEndpointUnbind(id, 0, 2 * PHYSICAL, PHYSICAL)); /* the second goes */
    LOG(driver_cuLogicalEndpointUnbind(id, 0, 2 * PHYSICAL, PHYSICAL));
    LOG(driver_cuLogicalEndpointIdRelease(id, 1)); /* in use */
    LOG(driver_cuLogicalEndpointDestroy(id));      /* the first goes */
    LOG(driver_cuLogicalEndpointIdRelease(id, 1));
}

static void copies(CUstream stream)
{
    CUdeviceptr from, to;
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    CUDA_MEMCPY3D_BATCH_OP box = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    LOG(cuMemAlloc_v2(&from, 4096));
    LOG(cuMemAlloc_v2(&to, 4096));
    LOG(driver_cuMemcpyWithAttributesAsync(to, from, 4000, &attributes, stream));
    LOG(driver_cuMemcpyWithAttributesAsync(to, from, 4000, NULL, stream));
    box.src.type = box.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    box.src.op.ptr.ptr = from;
    box.dst.op.ptr.ptr = to;
    box.extent.width = 30;
    box.extent.height = 20;
    box.extent.depth = 2;
    LOG(driver_cuMemcpy3DWithAttributesAsync(&box, 0, stream));
    LOG(driver_cuMemcpy3DWithAttributesAsync(NULL, 0, stream));
    LOG(cuMemFree_v2(from));
    LOG(cuMemFree_v2(to));
}

static void capture_work(CUstream stream, size_t size)
{
    CUdeviceptr address = 0;
    LOG(cuMemAllocAsync(&address, size, stream));
    LOG(cuMemsetD8Async(address, 1, 100, stream));
    LOG(cuMemFreeAsync(address, stream));
}

/* Each launch makes and ends the memory of the graph's own nodes, however often captured. */
static void capture_again(CUstream stream)
{
    CUgraph graph, same;
    CUgraphExec executable;
    LOG(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    capture_work(stream, 50000);
    LOG(cuStreamEndCapture(stream, &graph));
    for (int round = 0; round < 2; round++) {
        LOG(driver_cuStreamBeginRecaptureToGraph(stream, CU_STREAM_CAPTURE_MODE_RELAXED, graph,
                                                 NULL, NULL));
        capture_work(stream, 50000);
        LOG(cuStreamEndCapture(stream, &same));
        printf("the same graph: %d\n", graph == same);
        LOG(cuGraphInstantiateWithFlags(&executable, graph, 0));
        LOG(cuGraphLaunch(executable, stream));
        LOG(cuGraphLaunch(executable, stream));
        LOG(cuGraphExecDestroy(executable));
    }
    LOG(driver_cuStreamBeginRecaptureToGraph(stream, CU_STREAM_CAPTURE_MODE_RELAXED, graph, NULL,
                                             NULL));
    capture_work(stream, 70000); /* other memory: refused */
    LOG(cuStreamEndCapture(stream, &same));
    LOG(cuGraphDestroy(graph));
}

static void graphics_list(CUstream stream)
{
    void *list = &list;
    CUstreamCigCaptureParams parameters;
    CUdeviceptr memory, refused = 0;
    memset(&parameters, 0, sizeof(parameters));
    memcpy(&parameters, &list, sizeof(list));
    LOG(cuMemAlloc_v2(&memory, 4096));
    LOG(driver_cuStreamBeginCaptureToCig(stream, &parameters));
    LOG(cuMemsetD8Async(memory, 7, 4096, stream));
    LOG(cuMemAllocAsync(&refused, 1000, stream));
    LOG(driver_cuStreamEndCaptureToCig(stream));
    LOG(driver_cuStreamEndCaptureToCig(stream));
    LOG(cuMemFree_v2(memory));
}

static void node(CUstream stream)
{
    CUgraph graph;
    CUgraphExec executable;
    CUgraphNode added;
    CUgraphNodeParams parameters = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    parameters.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    parameters.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    parameters.alloc.bytesize = 123456;
    LOG(cuGraphCreate(&graph, 0));
    LOG(driver_cuGraphAddNode_v3(&added, graph, NULL, NULL, 0, &parameters));
    LOG(cuGraphInstantiateWithFlags(&executable, graph, 0));
    LOG(cuGraphLaunch(executable, stream));
    LOG(cuMemFreeAsync(parameters.alloc.dptr, stream));
    LOG(cuGraphExecDestroy(executable));
    LOG(cuGraphDestroy(graph));
}

int main(int count, char **arguments)
{
    CUcontext context;
    CUstream stream;
    LOG(cuInit(0));
    LOG(cuDevicePrimaryCtxRetain(&context, 0));
    LOG(cuCtxSetCurrent(context));
    LOG(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (count > 1)
        find_all(atoi(arguments[1]));
    multicast();
    endpoint();
    copies(stream);
    capture_again(stream);
    graphics_list(stream);
    node(stream);
    LOG(cuStreamSynchronize(stream));
    return 0;
}
