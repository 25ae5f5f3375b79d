/*
 * Objects of the driver whose memory, references or handles are easily taken for another's: objects MODE.
 * Each mode holds its own numbers against the oracle; what it leaves behind is planted.
 */
#include "plant.h"
#include <cuda.h>
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

/* ---------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {
    {"pools", pools},
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
