/*
 * The families of the driver API, each in the forms that differ for a profiler: contexts and
 * streams of two devices, captures that spread, graphs in graphs, virtual memory, memory of other
 * owners.
 */
#include "plant.h"
#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static CUcontext context[2];
static CUstream stream[2];

static void two_devices(void)
{
    CUdeviceptr a, b, c, d;
    LOG(cuCtxCreate(&context[0], NULL, 0, 0));
    LOG(cuStreamCreate(&stream[0], CU_STREAM_NON_BLOCKING));
    LOG(cuCtxCreate(&context[1], NULL, 0, 1));
    LOG(cuStreamCreate(&stream[1], CU_STREAM_NON_BLOCKING));
    LOG(cuMemAlloc(&a, 1000));                 /* device 1 */
    LOG(cuMemAllocAsync(&b, 2000, stream[1])); /* device 1 */
    LOG(cuCtxPopCurrent(NULL));
    LOG(cuMemAlloc(&c, 3000)); /* device 0 */
    LOG(cuMemAllocAsync(&d, 4000, stream[0]));
    LOG(cuMemFreeAsync(d, stream[0]));
    LOG(cuMemFreeAsync(b, stream[1]));
    LOG(cuMemFree(c));
    LOG(cuCtxPushCurrent(context[1]));
    LOG(cuMemFree(a));
    LOG(cuCtxSetCurrent(context[0])); /* now twice on the stack */
}

static void arrays(void)
{
    static const CUarray_format formats[] = {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_HALF,
                                             CU_AD_FORMAT_FLOAT, CU_AD_FORMAT_SNORM_INT16X4,
                                             CU_AD_FORMAT_UNORM_INT8X1};
    CUarray array;
    CUmipmappedArray mipmap;
    for (unsigned i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        CUDA_ARRAY3D_DESCRIPTOR shape = {
            .Width = 33, .Height = 17, .Depth = 5, .Format = formats[i], .NumChannels = 4};
        LOG(cuArray3DCreate(&array, &shape));
        LOG(cuArrayDestroy(array));
        LOG(cuMipmappedArrayCreate(&mipmap, &shape, 4));
        LOG(cuMipmappedArrayDestroy(mipmap));
        shape.Flags = CUDA_ARRAY3D_LAYERED;
        LOG(cuMipmappedArrayCreate(&mipmap, &shape, 4));
        LOG(cuMipmappedArrayDestroy(mipmap));
        shape.Flags = CUDA_ARRAY3D_SPARSE;
        LOG(cuArray3DCreate(&array, &shape));
        LOG(cuArrayDestroy(array));
    }
    LOG(cuArray3DCreate(&array, NULL));
    LOG(cuArrayCreate(NULL, NULL));
}

static void pitched(void)
{
    CUdeviceptr address;
    size_t pitch;
    LOG(cuMemAllocPitch(&address, &pitch, 1000, 37, 16));
    LOG(cuMemFree(address));
    LOG(cuMemAllocPitch(&address, NULL, 1000, 37, 16));
}

static CUgraphExec instantiate(CUgraph graph, unsigned long long flags)
{
    CUgraphExec executable = NULL;
    LOG(cuGraphInstantiate(&executable, graph, flags));
    return executable;
}

static void captures(void)
{
    CUgraph graph;
    CUdeviceptr a, b, c;
    CUevent forked, joined;
    CUstream other;
    LOG(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    LOG(cuEventCreate(&forked, 0));
    LOG(cuEventCreate(&joined, 0));
    LOG(cuStreamBeginCapture(stream[0], CU_STREAM_CAPTURE_MODE_RELAXED));
    LOG(cuMemAllocAsync(&a, 5000, stream[0]));
    LOG(cuEventRecord(forked, stream[0]));
    LOG(cuStreamWaitEvent(other, forked, 0));
    LOG(cuMemAllocAsync(&b, 6000, other));
    LOG(cuMemFreeAsync(a, other));
    LOG(cuEventRecord(joined, other));
    LOG(cuStreamWaitEvent(stream[0], joined, 0));
    LOG(cuMemsetD8Async(b, 0, 6000, stream[0]));
    LOG(cuStreamEndCapture(stream[0], &graph));
    LOG(cuMemAllocAsync(&c, 7000, other)); /* no longer captured */
    CUgraphExec executable = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    for (int i = 0; i < 3; i++)
        LOG(cuGraphLaunch(executable, stream[0]));
    LOG(cuMemFreeAsync(b, stream[0]));
    LOG(cuMemFreeAsync(b, stream[0])); /* refused */
    LOG(cuMemFree(c));
    LOG(cuGraphExecDestroy(executable));
    LOG(cuGraphDestroy(graph));
    LOG(cuStreamDestroy(other));
}

static CUdeviceptr add_allocation(CUgraph graph, size_t size, CUgraphNode *node)
{
    CUgraphNodeParams parameters = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    parameters.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    parameters.alloc.poolProps.location =
        (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1};
    parameters.alloc.bytesize = size;
    LOG(cuGraphAddNode(node, graph, NULL, NULL, 0, &parameters));
    return parameters.alloc.dptr;
}

static void graphs(void)
{
    CUgraph graph, child, found;
    CUgraphNode node, freed;
    CUdeviceptr late;
    LOG(cuGraphCreate(&graph, 0));
    CUdeviceptr address = add_allocation(graph, 8000, &node);
    CUgraphNodeParams parameters = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};
    parameters.free.dptr = address;
    LOG(cuGraphAddNode(&freed, graph, &node, NULL, 1, &parameters));
    add_allocation(graph, 9000, &node); /* stays until the next launch */
    PLANTED(9000, 1);
    LOG(cuGraphCreate(&child, 0));
    LOG(cuGraphAddChildGraphNode(&node, child, NULL, 0, graph));
    LOG(cuGraphClone(&found, graph));
    CUgraphExec executable = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    LOG(cuGraphLaunch(executable, stream[0]));
    LOG(cuGraphLaunch(executable, stream[0]));
    LOG(cuGraphExecDestroy(executable));
    LOG(cuStreamBeginCaptureToGraph(stream[0], child, NULL, NULL, 0,
                                    CU_STREAM_CAPTURE_MODE_RELAXED));
    LOG(cuMemAllocAsync(&late, 10000, stream[0]));
    PLANTED(10000, 1);
    LOG(cuStreamEndCapture(stream[0], &found));
    executable = instantiate(child, 0);
    LOG(cuGraphLaunch(executable, stream[0]));
    LOG(cuDeviceGraphMemTrim(1));
}

static void virtual_memory(void)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes =
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1}};
    CUmemGenericAllocationHandle handle, imported;
    CUdeviceptr range;
    size_t size = 4 << 20;
    int shared;
    LOG(cuMemCreate(&handle, size, &properties, 0));
    LOG(cuMemAddressReserve(&range, 2 * size, 0, 0, 0));
    LOG(cuMemMap(range + size, size, 0, handle, 0));
    LOG(cuMemExportToShareableHandle(&shared, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    LOG(cuMemImportFromShareableHandle(&imported, (void *)(uintptr_t)shared,
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    LOG(cuMemImportFromShareableHandle(&imported, (void *)(uintptr_t)-1,
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    LOG(cuMemRelease(imported));
    LOG(cuMemRelease(handle));        /* lives on in its mapping */
    LOG(cuMemUnmap(range, 2 * size)); /* refused: not mapped as one */
    LOG(cuMemUnmap(range + size, size));
    LOG(cuMemAddressFree(range, 2 * size));
    LOG(cuMemCreate(&handle, 1ull << 60, &properties, 0));
    properties.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0};
    LOG(cuMemCreate(&handle, size, &properties, 0));
    LOG(cuMemRelease(handle));
}

static void memory_of_others(void)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC description = {
        .type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .size = 1 << 20};
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.offset = 4096, .size = 12345};
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC shape = {
        .arrayDesc = {.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1},
        .numLevels = 3};
    CUexternalMemory external;
    CUdeviceptr address, opened;
    CUmipmappedArray mipmap;
    CUipcMemHandle ipc;
    description.handle.fd = memfd_create("external", 0);
    if (ftruncate(description.handle.fd, 1 << 20) != 0)
        abort();
    LOG(cuImportExternalMemory(&external, &description));
    LOG(cuExternalMemoryGetMappedBuffer(&address, external, &buffer));
    LOG(cuExternalMemoryGetMappedMipmappedArray(&mipmap, external, &shape));
    buffer.size = 1 << 21;
    LOG(cuExternalMemoryGetMappedBuffer(&opened, external, &buffer));
    LOG(cuMemFree(address));
    LOG(cuMipmappedArrayDestroy(mipmap));
    LOG(cuDestroyExternalMemory(external));
    LOG(cuMemAlloc(&address, 4096));
    LOG(cuIpcGetMemHandle(&ipc, address));
    LOG(cuIpcOpenMemHandle(&opened, ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    LOG(cuIpcCloseMemHandle(address));
    LOG(cuMemFree(address));
}

static void pools(void)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1}};
    CUmemoryPool pool, imported, found;
    CUmemPoolPtrExportData data;
    CUdeviceptr address, again;
    int shared;
    LOG(cuMemPoolCreate(&pool, &properties));
    LOG(cuMemAllocFromPoolAsync(&address, 3333, pool, stream[0]));
    LOG(cuMemPoolExportToShareableHandle(&shared, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                         0));
    LOG(cuMemPoolImportFromShareableHandle(&imported, (void *)(uintptr_t)shared,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    LOG(cuMemPoolExportPointer(&data, address));
    LOG(cuMemPoolImportPointer(&again, imported, &data));
    LOG(cuMemFreeAsync(address, stream[0]));
    LOG(cuDeviceSetMemPool(1, pool));
    LOG(cuDeviceGetMemPool(&found, 1));
    LOG(cuMemAllocAsync(&address, 4444, stream[1]));
    LOG(cuMemFree(address));
    LOG(cuMemPoolDestroy(pool));
    LOG(cuMemAllocAsync(&address, 5555, stream[1]));
    PLANTED(5555, 1);
}

static void leave_things_to_the_contexts(void)
{
    CUdeviceptr address;
    void *pinned;
    CUcontext current;
    LOG(cuMemAlloc(&address, 1111));
    LOG(cuMemAllocManaged(&address, 2222, CU_MEM_ATTACH_GLOBAL));
    LOG(cuMemAllocHost(&pinned, 3333));
    LOG(cuMemHostAlloc(&pinned, 0, 0)); /* refused */
    LOG(cuCtxDestroy(context[0]));
    LOG(cuCtxGetCurrent(&current));
    LOG(cuMemAlloc(&address, 1111)); /* in a context that is gone */
    LOG(cuCtxSetCurrent(context[1]));
    LOG(cuMemAlloc(&address, 1111));
    LOG(cuCtxDestroy(context[1]));
    LOG(cuDevicePrimaryCtxRetain(&current, 0));
    LOG(cuDevicePrimaryCtxRetain(&current, 0));
    LOG(cuCtxSetCurrent(current));
    LOG(cuMemAlloc(&address, 6666));
    LOG(cuDevicePrimaryCtxRelease(0));
    LOG(cuDevicePrimaryCtxRelease(0)); /* the last */
    LOG(cuDevicePrimaryCtxRelease(0)); /* refused */
    LOG(cuDevicePrimaryCtxRetain(&current, 0));
    LOG(cuMemAlloc(&address, 7777));
    LOG(cuDevicePrimaryCtxReset(0));
}

int main(void)
{
    LOG(cuInit(0));
    two_devices();
    arrays();
    pitched();
    captures();
    graphs();
    virtual_memory();
    memory_of_others();
    pools();
    leave_things_to_the_contexts();
    return 0;
}
