/* Random program: memory pools: created, tuned, trimmed, made a device's own, shared. */
#include "random.h"

#include <unistd.h>

/* Pools of the host and of managed memory; of managed memory also where nowhere is preferred. */
static CUmemLocation random_location(CUmemAllocationType type)
{
    static const CUmemLocationType places[] = {
        CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_LOCATION_TYPE_DEVICE,
        CU_MEM_LOCATION_TYPE_NONE};
    const CUmemLocationType place = places[pick(type == CU_MEM_ALLOCATION_TYPE_MANAGED ? 4 : 2)];
    return (CUmemLocation){.type = place,
                           .id = place == CU_MEM_LOCATION_TYPE_DEVICE ? current_device() : 0};
}

static CUmemAllocationType random_type(void)
{
    return pick(2) ? CU_MEM_ALLOCATION_TYPE_MANAGED : CU_MEM_ALLOCATION_TYPE_PINNED;
}

static void create_elsewhere(void)
{
    CUmemoryPool pool;
    CUmemPoolProps properties = {.allocType = random_type()};
    properties.location = random_location(properties.allocType);
    if (LOG(cuMemPoolCreate(&pool, &properties)) == 0)
        keep((struct object){.family = POOL, .pointer = pool, .elsewhere = 1});
}

/* The default pools of such places are taken from and set, too; no thread destroys them. */
static void use_elsewhere(void)
{
    CUmemoryPool pool;
    CUdeviceptr address;
    const CUmemAllocationType type = random_type();
    CUmemLocation location = random_location(type);
    const size_t size = random_size();
    if (pick(2) ? LOG(cuMemGetDefaultMemPool(&pool, &location, type)) != 0
                : LOG(cudaMemGetDefaultMemPool(&pool, (struct cudaMemLocation *)&location,
                                               (enum cudaMemAllocationType)type)) != 0)
        return;
    LOG(cuMemSetMemPool(&location, type, pool));
    LOG(cuMemGetMemPool(&pool, &location, type));
    if (pick(4) == 0)
        LOG(cuMemPoolDestroy(pool)); /* of a default pool: refused */
    if (LOG(cuMemAllocFromPoolAsync(&address, size, pool, random_stream())) == 0)
        keep((struct object){.family = LINEAR, .pointer = (void *)address, .size = size});
}

static void create(void)
{
    CUmemoryPool pool;
    cudaMemPool_t runtime_pool;
    const int exportable = pick(4) != 0;
    const CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .handleTypes =
            exportable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = current_device()},
    };
    const struct cudaMemPoolProps runtime_properties = {
        .allocType = cudaMemAllocationTypePinned,
        .handleTypes = exportable ? cudaMemHandleTypePosixFileDescriptor : cudaMemHandleTypeNone,
        .location = {.type = cudaMemLocationTypeDevice, .id = current_device()},
    };
    struct object kept = {.family = POOL, .exportable = exportable};
    if (pick(2)) {
        if (LOG(cuMemPoolCreate(&pool, &properties)) == 0) {
            kept.pointer = pool;
            keep(kept);
        }
    } else if (LOG(cudaMemPoolCreate(&runtime_pool, &runtime_properties)) == 0) {
        kept.pointer = runtime_pool;
        keep(kept);
    }
}

static void tune(const struct object *pool)
{
    uint64_t threshold = pick(2) ? UINT64_MAX : 0, number = 0;
    int rule = (int)pick(2);
    switch (pick(7)) {
    case 0:
        LOG(cuMemPoolSetAttribute(pool->pointer, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
        break;
    case 1:
        LOG(cudaMemPoolSetAttribute(pool->pointer, cudaMemPoolAttrReleaseThreshold, &threshold));
        break;
    case 2:
        LOG(cudaMemPoolSetAttribute(pool->pointer, cudaMemPoolReuseFollowEventDependencies, &rule));
        LOG(cudaMemPoolSetAttribute(pool->pointer, cudaMemPoolAttrUsedMemHigh, &number));
        break;
    case 3:
        LOG(cudaMemPoolGetAttribute(pool->pointer, cudaMemPoolAttrReservedMemCurrent, &number));
        LOG(cuMemPoolGetAttribute(pool->pointer, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &number));
        break;
    case 4:
        LOG(cuMemPoolTrimTo(pool->pointer, random_size()));
        break;
    case 5:
        LOG(cudaMemPoolTrimTo(pool->pointer, 0));
        break;
    default:
        LOG(cudaMemPoolSetAttribute(pool->pointer, (enum cudaMemPoolAttr)99, &number));
    }
}

/* Sets the pool that cuMemAllocAsync takes from. An imported pool and another device's are
 * refused. */
static void choose_device_pool(const struct object *pool)
{
    CUmemoryPool found;
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = current_device()};
    switch (pick(6)) {
    case 0:
        LOG(cuDeviceSetMemPool(current_device(), pool->pointer));
        break;
    case 1:
        LOG(cudaDeviceSetMemPool(current_device(), pool->pointer));
        break;
    case 2:
        LOG(cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_PINNED, pool->pointer));
        break;
    case 3:
        if (LOG(cuDeviceGetDefaultMemPool(&found, current_device())) == 0)
            LOG(cuDeviceSetMemPool(current_device(), found));
        break;
    case 4:
        if (LOG(cuMemGetDefaultMemPool(&found, &location, CU_MEM_ALLOCATION_TYPE_PINNED)) == 0)
            LOG(cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_PINNED, found));
        break;
    default:
        LOG(cuDeviceGetMemPool(&found, current_device()));
        LOG(cuMemGetMemPool(&found, &location, CU_MEM_ALLOCATION_TYPE_PINNED));
    }
}

/* Imports the pool again, as another process would. */
static void import_pool(const struct object *pool)
{
    CUmemoryPool imported;
    cudaMemPool_t runtime_imported;
    int shared = -1;
    struct object kept = {.family = POOL, .imported = 1};
    if ((pick(2) ? LOG(cuMemPoolExportToShareableHandle(
                       &shared, pool->pointer, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0))
                 : LOG(cudaMemPoolExportToShareableHandle(
                       &shared, pool->pointer, cudaMemHandleTypePosixFileDescriptor, 0))) != 0)
        return;
    if (pick(2)) {
        if (LOG(cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)shared,
                                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)) ==
            0) {
            kept.pointer = imported;
            keep(kept);
        }
    } else if (LOG(cudaMemPoolImportFromShareableHandle(&runtime_imported, (void *)(intptr_t)shared,
                                                        cudaMemHandleTypePosixFileDescriptor, 0)) ==
               0) {
        kept.pointer = runtime_imported;
        keep(kept);
    }
    close(shared);
}

static int find_pool(int imported)
{
    for (int i = object_count; i-- > 0;)
        if (objects[i].family == POOL && (imported ? objects[i].imported : objects[i].exportable))
            return i;
    return -1;
}

/* Memory of an exported pool at its address in an imported one. The simulator does not care which
 * of the pools it is; only offsets count. */
static void import_pointer(void)
{
    CUdeviceptr memory, address;
    void *runtime_address;
    CUmemPoolPtrExportData data;
    struct cudaMemPoolPtrExportData runtime_data;
    const int from = find_pool(0), to = find_pool(1);
    if (from < 0 || to < 0)
        return;
    const size_t size = random_size();
    const cudaMemPool_t pool = objects[to].pointer;
    const int device = objects[from].device;
    if (LOG(cuMemAllocFromPoolAsync(&memory, size, objects[from].pointer, random_stream())) != 0)
        return;
    if (pick(2)) {
        if (LOG(cuMemPoolExportPointer(&data, memory)) == 0 &&
            LOG(cuMemPoolImportPointer(&address, pool, &data)) == 0)
            keep((struct object){.family = LINEAR, .pointer = (void *)address});
    } else if (LOG(cudaMemPoolExportPointer(&runtime_data, (void *)memory)) == 0 &&
               LOG(cudaMemPoolImportPointer(&runtime_address, pool, &runtime_data)) == 0) {
        keep((struct object){.family = LINEAR, .pointer = runtime_address});
    }
    keep_on(device, (struct object){.family = LINEAR, .pointer = (void *)memory, .size = size});
}

void pool_step(void)
{
    const int pool = find(POOL);
    switch (pool < 0 ? 0 : pick(12)) {
    case 0:
        create();
        break;
    case 9:
        create_elsewhere();
        break;
    case 10:
    case 11:
        use_elsewhere();
        break;
    case 1:
    case 2:
        tune(&objects[pool]);
        break;
    case 3:
    case 4:
        choose_device_pool(&objects[pool]);
        break;
    case 5:
    case 6:
        import_pool(&objects[pool]);
        break;
    default:
        import_pointer();
    }
}
