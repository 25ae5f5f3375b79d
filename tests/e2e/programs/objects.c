/*
 * Objects of the driver whose memory, references or handles are easily taken for another's: objects MODE.
 * Each mode holds its own numbers against the oracle; what it leaves behind is planted.
 */
#include "plant.h"
#include <cuda.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static CUcontext begin(void)
{
    CUcontext context;
    cuInit(0);
    LOG(cuDevicePrimaryCtxRetain(&context, 0));
    LOG(cuCtxPushCurrent(context));
    return context;
}

/* ---- pools that are on no device, or of managed memory --------------------------------------- */

static CUmemoryPool pool_at(CUmemLocationType where, CUmemAllocationType type)
{
    CUmemPoolProps properties = {.allocType = type, .location = {.type = where}};
    CUmemoryPool pool = NULL;
    LOG(cuMemPoolCreate(&pool, &properties));
    return pool;
}

static void use(CUmemoryPool pool, size_t size)
{
    CUdeviceptr address;
    LOG(cuMemAllocFromPoolAsync(&address, size, pool, NULL));
    LOG(cuMemFreeAsync(address, NULL));
    LOG(cuMemAllocFromPoolAsync(&address, size, pool, NULL));
    LOG(cuMemFree(address));
    LOG(cuMemPoolDestroy(pool));
}

/* A location has a current pool for each type, and cuMemAllocAsync takes from the pinned one. */
static void default_pools(void)
{
    static const CUmemLocationType places[] = {
        CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_LOCATION_TYPE_DEVICE};
    CUdeviceptr address, of_device;
    for (unsigned i = 0; i < 6; i++) {
        CUmemLocation location = {.type = places[i % 3]};
        CUmemAllocationType type =
            i < 3 ? CU_MEM_ALLOCATION_TYPE_PINNED : CU_MEM_ALLOCATION_TYPE_MANAGED;
        CUmemoryPool found, own = pool_at(location.type, type);
        LOG(cuMemGetDefaultMemPool(&found, &location, type));
        LOG(cuMemAllocFromPoolAsync(&address, 5 * MIB, found, NULL));
        LOG(cuMemPoolDestroy(found)); /* is refused */
        LOG(cuMemFreeAsync(address, NULL));
        LOG(cuMemAllocFromPoolAsync(&address, 6 * MIB, found, NULL));
        LOG(cuMemSetMemPool(&location, type, own));
        LOG(cuMemGetMemPool(&found, &location, type));
        LOG(cuMemAllocFromPoolAsync(&of_device, 7 * MIB, found, NULL));
        LOG(cuMemFree(of_device));
        LOG(cuMemAllocAsync(&of_device, MIB, NULL));
        LOG(cuMemFree(of_device));
        LOG(cuMemFree(address));
        LOG(cuMemPoolDestroy(own));
    }
}

/* A node has the properties of the pool from which its capture took. */
static void capture_from(CUmemoryPool pool)
{
    CUstream stream;
    CUgraph graph;
    CUgraphExec executable;
    CUdeviceptr address = 0;
    LOG(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    LOG(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    LOG(cuMemAllocFromPoolAsync(&address, 3 * MIB, pool, stream));
    LOG(cuStreamEndCapture(stream, &graph));
    LOG(cuGraphInstantiate(&executable, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    for (int i = 0; i < 3; i++)
        LOG(cuGraphLaunch(executable, stream));
    LOG(cuMemFree(address));
    LOG(cuGraphExecDestroy(executable));
    LOG(cuGraphDestroy(graph));
    LOG(cuStreamDestroy(stream));
}

static void pools(void)
{
    CUmemPoolProps wrong = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT}};
    CUmemoryPool pool;
    CUdeviceptr device, managed, host;
    CUcontext own;
    begin();
    use(pool_at(CU_MEM_LOCATION_TYPE_HOST, CU_MEM_ALLOCATION_TYPE_PINNED), 40 * MIB);
    use(pool_at(CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_ALLOCATION_TYPE_PINNED), 41 * MIB);
    use(pool_at(CU_MEM_LOCATION_TYPE_NONE, CU_MEM_ALLOCATION_TYPE_MANAGED), 42 * MIB);
    use(pool_at(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ALLOCATION_TYPE_MANAGED), 43 * MIB);
    use(pool_at(CU_MEM_LOCATION_TYPE_HOST, CU_MEM_ALLOCATION_TYPE_MANAGED), 44 * MIB);
    LOG(cuMemPoolCreate(&pool, &wrong));
    default_pools();
    capture_from(pool_at(CU_MEM_LOCATION_TYPE_HOST, CU_MEM_ALLOCATION_TYPE_PINNED));
    /* What a pool gave outlives the context it was taken in. */
    LOG(cuCtxCreate(&own, NULL, 0, 0));
    pool = pool_at(CU_MEM_LOCATION_TYPE_HOST, CU_MEM_ALLOCATION_TYPE_PINNED);
    LOG(cuMemAllocFromPoolAsync(&host, 400 * MIB, pool, NULL));
    PLANTED(400 * MIB, 1);
    pool = pool_at(CU_MEM_LOCATION_TYPE_NONE, CU_MEM_ALLOCATION_TYPE_MANAGED);
    LOG(cuMemAllocFromPoolAsync(&managed, 100 * MIB, pool, NULL));
    PLANTED(100 * MIB, 1);
    LOG(cuCtxDestroy(own));
    LOG(cuMemAlloc(&device, 10 * MIB));
    PLANTED(10 * MIB, 1);
}

/* ---- green contexts: each holds the primary context, and is another name of it ----------------- */

static CUgreenCtx new_green(CUcontext *converted)
{
    CUdevResource all, share;
    CUdevResourceDesc description = NULL;
    CUgreenCtx green = NULL;
    unsigned groups = 1;
    LOG(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    LOG(cuDevSmResourceSplitByCount(&share, &groups, &all, NULL, 0, 8));
    LOG(cuDevResourceGenerateDesc(&description, &share, 1));
    LOG(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    LOG(cuCtxFromGreenCtx(converted, green));
    return green;
}

/* Nobody but the green context holds the primary one: it ends with it, and so does memory. */
static void green_alone(void)
{
    CUcontext converted, primary;
    CUdeviceptr address;
    CUgreenCtx green = new_green(&converted);
    LOG(cuCtxPushCurrent(converted));
    LOG(cuMemAlloc(&address, 32 * MIB));
    LOG(cuCtxDestroy(converted)); /* is refused: it is the primary one */
    LOG(cuDevicePrimaryCtxRetain(&primary, 0));
    LOG(cuDevicePrimaryCtxRelease(0));
    LOG(cuMemAlloc(&address, 33 * MIB));
    LOG(cuMemFree(address));
    LOG(cuGreenCtxDestroy(green));
    LOG(cuGreenCtxDestroy(green)); /* is refused */
    LOG(cuCtxPopCurrent(&converted));
}

/* The program's own reference goes first: its memory lives on with the green context's. */
static void green_held(void)
{
    CUcontext converted, primary, current, own;
    CUdeviceptr of_primary, of_green, of_own, ordered;
    CUstream stream;
    LOG(cuDevicePrimaryCtxRetain(&primary, 0));
    CUgreenCtx green = new_green(&converted);
    LOG(cuCtxPushCurrent(primary));
    LOG(cuMemAlloc(&of_primary, 64 * MIB));
    LOG(cuCtxSetCurrent(converted));
    LOG(cuCtxGetCurrent(&current));
    LOG(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    LOG(cuMemAllocAsync(&ordered, 3 * MIB, stream));
    LOG(cuMemFreeAsync(ordered, stream));
    LOG(cuStreamDestroy(stream));
    LOG(cuMemAlloc(&of_green, 65 * MIB));
    LOG(cuDevicePrimaryCtxRelease(0));
    LOG(cuMemFree(of_primary));
    LOG(cuDevicePrimaryCtxRetain(&primary, 0));
    LOG(cuGreenCtxDestroy(green));
    LOG(cuCtxSetCurrent(primary));
    LOG(cuMemFree(of_green));
    LOG(cuMemAlloc(&of_primary, 5 * MIB));
    /* The handles of the green context are another's now, whose end is none of the primary's. */
    LOG(cuCtxCreate(&own, NULL, 0, 0));
    LOG(cuMemAlloc(&of_own, 7 * MIB));
    LOG(cuCtxDestroy(own));
    LOG(cuMemFree(of_primary));
    LOG(cuCtxPopCurrent(&current));
    LOG(cuDevicePrimaryCtxRelease(0));
}

static void green(void)
{
    CUcontext primary, converted;
    CUdeviceptr address;
    cuInit(0);
    green_alone();
    green_held();
    LOG(cuDevicePrimaryCtxRetain(&primary, 0));
    new_green(&converted);
    LOG(cuCtxPushCurrent(converted));
    LOG(cuMemAlloc(&address, 9 * MIB));
    PLANTED(9 * MIB, 1);
}

/* ---- sparse arrays: tiles keep the memory that they show ---------------------------------------- */

static const CUmemAllocationProp tile_pool = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    .allocFlags = {.usage = CU_MEM_CREATE_USAGE_TILE_POOL}};

static CUarrayMapInfo tiles_of(CUarray array, unsigned x, CUmemGenericAllocationHandle memory)
{
    return (CUarrayMapInfo){
        .resourceType = CU_RESOURCE_TYPE_ARRAY,
        .resource = {.array = array},
        .subresource = {.sparseLevel = {.offsetX = x,
                                        .extentWidth = 256,
                                        .extentHeight = 256,
                                        .extentDepth = 1}},
        .memOperationType = memory ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP,
        .memHandleType = CU_MEM_HANDLE_TYPE_GENERIC,
        .memHandle = {memory},
        .deviceBitMask = 1,
    };
}

static void sparse(void)
{
    CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = 1024,
                                     .Height = 1024,
                                     .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                                     .NumChannels = 1,
                                     .Flags = CUDA_ARRAY3D_SPARSE};
    CUarray array, deferred, gone;
    CUmemGenericAllocationHandle memory[4] = {0};
    begin();
    LOG(cuArray3DCreate(&gone, &shape));
    LOG(cuArray3DCreate(&array, &shape));
    PLANTED(0, 1); /* without storage of its own */
    shape.Flags = CUDA_ARRAY3D_DEFERRED_MAPPING;
    LOG(cuArray3DCreate(&deferred, &shape));
    PLANTED(0, 1);
    LOG(cuMemCreate(&memory[0], 2 * MIB, &tile_pool, 0));
    PLANTED(2 * MIB, 1);
    for (int i = 1; i < 4; i++)
        LOG(cuMemCreate(&memory[i], (2 * MIB) << i, &tile_pool, 0));
    CUarrayMapInfo tiles[] = {tiles_of(array, 0, memory[0]), tiles_of(array, 256, memory[1]),
                              tiles_of(gone, 0, memory[2]), tiles_of(deferred, 0, memory[3])};
    LOG(cuMemMapArrayAsync(tiles, 4, NULL));
    for (int i = 0; i < 4; i++)
        LOG(cuMemRelease(memory[i]));
    tiles[0] = tiles_of(array, 128, 0);
    LOG(cuMemMapArrayAsync(tiles, 1, NULL)); /* is refused: no boundary of a tile */
    tiles[0] = tiles_of(array, 256, 0);
    LOG(cuMemMapArrayAsync(tiles, 1, NULL));
    LOG(cuArrayDestroy(gone));
    /* What part is meant is ignored where the mapping was deferred. */
    tiles[0] = tiles_of(deferred, 77, 0);
    LOG(cuMemMapArrayAsync(tiles, 1, NULL));
}

/* ---- events that take no part in a capture ------------------------------------------------------ */

static void external_events(void)
{
    CUstream captured, other;
    CUevent external, inner, again;
    CUgraph graph;
    CUdeviceptr kept, freed, node;
    begin();
    LOG(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
    LOG(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    LOG(cuEventCreate(&external, 0));
    LOG(cuEventCreate(&inner, 0));
    LOG(cuMemAllocAsync(&freed, 2 * MIB, other));
    LOG(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    LOG(cuEventRecordWithFlags(external, captured, CU_EVENT_RECORD_EXTERNAL));
    LOG(cuStreamWaitEvent(other, external, 0)); /* does not join */
    LOG(cuMemAllocAsync(&kept, 64 * MIB, other));
    PLANTED(64 * MIB, 1);
    LOG(cuMemFreeAsync(freed, other));
    /* One that carries the capture goes on to do so beside an external one. */
    LOG(cuEventRecord(inner, captured));
    LOG(cuStreamWaitEvent(captured, external, CU_EVENT_WAIT_EXTERNAL));
    LOG(cuStreamWaitEvent(other, inner, 0)); /* joins */
    LOG(cuMemAllocAsync(&node, MIB, other));
    LOG(cuMemFreeAsync(node, other));
    LOG(cuEventRecord(inner, other));
    LOG(cuStreamWaitEvent(captured, inner, 0));
    /* The handle of an event that carried the capture is that of one that does not. */
    LOG(cuEventDestroy(inner));
    LOG(cuEventCreate(&again, 0));
    LOG(cuStreamEndCapture(captured, &graph));
    LOG(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    LOG(cuEventRecord(again, captured));
    LOG(cuEventDestroy(again));
    LOG(cuEventCreate(&inner, 0));
    LOG(cuStreamWaitEvent(other, inner, 0)); /* never recorded: joins nothing */
    LOG(cuMemAllocAsync(&kept, 4 * MIB, other));
    PLANTED(4 * MIB, 1);
    LOG(cuStreamEndCapture(captured, &graph));
}

/* ---- handles that other threads get before their destruction has returned ---------------------- */

#define THREADS 4

static int rounds;

static void in_threads(void *(*run)(void *), int count)
{
    pthread_t threads[THREADS];
    rounds = count;
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void *churn_contexts(void *number)
{
    CUcontext own;
    CUdeviceptr address;
    for (int i = 0; i < rounds; i++) {
        if (cuCtxCreate(&own, NULL, 0, 0) != 0)
            abort();
        if (cuMemAlloc(&address, 4096) != 0)
            abort();
        if ((i + (intptr_t)number) % 2 && cuMemFree(address) != 0)
            abort(); /* else it ends with its context */
        if (cuCtxDestroy(own) != 0)
            abort();
    }
    return NULL;
}

static void contexts_race(void)
{
    begin();
    in_threads(churn_contexts, 3000);
}

static CUcontext shared;

static void *churn_graphs(void *number)
{
    CUgraph graph;
    CUgraphExec executable;
    CUgraphNode node;
    CUstream stream;
    cuCtxSetCurrent(shared);
    if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != 0)
        abort();
    for (int i = 0; i < rounds; i++) {
        CUDA_MEM_ALLOC_NODE_PARAMS parameters = {
            .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                          .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
            .bytesize = 4096 + 512 * (size_t)(intptr_t)number};
        if (cuGraphCreate(&graph, 0) != 0 ||
            cuGraphAddMemAllocNode(&node, graph, NULL, 0, &parameters) != 0 ||
            cuGraphInstantiate(&executable, graph, 0) != 0 || cuGraphDestroy(graph) != 0 ||
            cuGraphLaunch(executable, stream) != 0 ||
            cuMemFreeAsync(parameters.dptr, stream) != 0 || cuGraphExecDestroy(executable) != 0)
            abort();
    }
    return NULL;
}

static void graphs_race(void)
{
    shared = begin();
    in_threads(churn_graphs, 4000);
}

static CUmemoryPool of_host; /* a default pool, whose destruction is refused */

/* Half of the threads have pools of the host, half of the device, at handles that go from one to the other. */
static void *churn_pools(void *number)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = (intptr_t)number % 2
                                                          ? CU_MEM_LOCATION_TYPE_HOST
                                                          : CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemoryPool own;
    CUdeviceptr address, other;
    cuCtxSetCurrent(shared);
    for (int i = 0; i < rounds; i++) {
        if (cuMemPoolCreate(&own, &properties) != 0 ||
            cuMemAllocFromPoolAsync(&address, 4096, own, NULL) != 0 ||
            cuMemAllocFromPoolAsync(&other, 8192, of_host, NULL) != 0 ||
            cuMemPoolDestroy(of_host) == 0 || cuMemFree(other) != 0 || cuMemFree(address) != 0 ||
            cuMemPoolDestroy(own) != 0)
            abort();
    }
    return NULL;
}

static void pools_race(void)
{
    CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST};
    shared = begin();
    LOG(cuMemGetDefaultMemPool(&of_host, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
    in_threads(churn_pools, 4000);
}

/* ---------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {
    {"pools", pools},
    {"green", green},
    {"sparse", sparse},
    {"external_events", external_events},
    {"contexts_race", contexts_race},
    {"graphs_race", graphs_race},
    {"pools_race", pools_race},
};

int main(int count, char **arguments)
{
    for (size_t i = 0; count > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
        if (strcmp(modes[i].name, arguments[1]) == 0) {
            modes[i].run();
            return 0;
        }
    return 2;
}
