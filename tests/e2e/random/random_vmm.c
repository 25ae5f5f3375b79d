/* Random program: virtual memory management, multicast objects and logical endpoints. */
#include "random.h"

#include "newer.h" /* the installed headers may lack these */
#include <unistd.h>

CUresult cuMulticastBindMem_v1(CUmemGenericAllocationHandle, size_t, CUmemGenericAllocationHandle,
                               size_t, size_t, unsigned long long) __asm__("cuMulticastBindMem");
CUresult cuMulticastBindAddr_v1(CUmemGenericAllocationHandle, size_t, CUdeviceptr, size_t,
                                unsigned long long) __asm__("cuMulticastBindAddr");

/* ---- physical memory ------------------------------------------------------------------------- */

static void create_handle(void)
{
    CUmemGenericAllocationHandle handle;
    const int exportable = pick(2) != 0, on_host = pick(6) == 0;
    const CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes =
            exportable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE,
        .location = {.type = on_host ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE,
                     .id = on_host ? 0 : current_device()},
    };
    size_t size = GRANULARITY * (1 + pick(4));
    if (pick(8) == 0)
        size += 1; /* refused: not a multiple of the granularity */
    if (LOG(cuMemCreate(&handle, size, &properties, 0)) == 0)
        keep((struct object){
            .family = HANDLE, .pointer = (void *)handle, .size = size, .references = 1});
}

static void import_handle(void)
{
    CUmemGenericAllocationHandle imported;
    int shared = -1;
    const int index = find(HANDLE);
    LOG(cudaSetDevice(current_device())); /* otherwise the trace does not have the device of the
                                           * import */
    if (index < 0 || LOG(cuMemExportToShareableHandle(
                         &shared, (CUmemGenericAllocationHandle)objects[index].pointer,
                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)) != 0)
        return;
    if (LOG(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)shared,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) == 0)
        keep_on(objects[index].device, (struct object){.family = HANDLE,
                                                       .pointer = (void *)imported,
                                                       .size = objects[index].size,
                                                       .references = 1});
    close(shared);
    if (pick(4) == 0)
        LOG(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)-1,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)); /* refused */
}

CUresult map_array_per_thread(CUarrayMapInfo *, unsigned,
                              CUstream) __asm__("cuMemMapArrayAsync_ptsz");

/* A sparse array that keeps memory by a tile, and is gone at the end, or with its context. */
void map_tiles(int is_left_to_context)
{
    const int is_deferred = pick(2) == 0;
    const CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = 512,
                                           .Height = 512,
                                           .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                                           .NumChannels = 1,
                                           .Flags = is_deferred ? CUDA_ARRAY3D_DEFERRED_MAPPING
                                                                : CUDA_ARRAY3D_SPARSE};
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                      .allocFlags = {.usage = CU_MEM_CREATE_USAGE_TILE_POOL}};
    CUarrayMapInfo tile = {.resourceType = CU_RESOURCE_TYPE_ARRAY,
                           .subresource = {.sparseLevel = {.offsetX = 256 * pick(2),
                                                           .extentWidth = 256,
                                                           .extentHeight = 256,
                                                           .extentDepth = 1}},
                           .memOperationType = CU_MEM_OPERATION_TYPE_MAP,
                           .memHandleType = CU_MEM_HANDLE_TYPE_GENERIC};
    if (LOG(cuCtxGetDevice(&properties.location.id)) != 0 ||
        LOG(cuArray3DCreate(&tile.resource.array, &shape)) != 0)
        return;
    tile.deviceBitMask = 1u << properties.location.id;
    CUmemGenericAllocationHandle handle = 0;
    if (LOG(cuMemCreate(&handle, GRANULARITY, &properties, 0)) == 0) {
        tile.memHandle.memHandle = handle;
        LOG(cuMemMapArrayAsync(&tile, 1, NULL));
        for (int tries = 0; tries < 3 && LOG(cuMemRelease(handle)) != 0; tries++)
            continue; /* a free that fails is taken back */
        tile.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
        tile.memHandle.memHandle = 0;
        if (pick(2))
            LOG_AS("cuMemMapArrayAsync_ptsz", map_array_per_thread(&tile, 1, NULL));
    }
    for (int tries = is_left_to_context ? 3 : 0;
         tries < 3 && LOG(cuArrayDestroy(tile.resource.array)) != 0; tries++)
        continue;
}

void drop_handle(int index)
{
    struct object *handle = &objects[index];
    if (LOG(cuMemRelease((CUmemGenericAllocationHandle)handle->pointer)) == 0 &&
        --handle->references == 0)
        forget(index);
}

/* ---- mappings -------------------------------------------------------------------------------- */

static int map_part(CUdeviceptr at, const struct object *handle, size_t offset, size_t size)
{
    const CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = handle->device},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    if (LOG(cuMemMap(at, size, offset, (CUmemGenericAllocationHandle)handle->pointer, 0)) != 0)
        return 0;
    LOG(cuMemSetAccess(at, size, &access, 1));
    return 1;
}

/* One handle or two, whole or in part, side by side in one range. */
static void map_handles(void)
{
    CUdeviceptr range;
    const int first = find(pick(6) ? HANDLE : TEAM), second = find(HANDLE);
    if (first < 0 || second < 0 || objects[first].endpoint)
        return;
    const struct object a = objects[first], b = objects[second];
    const size_t skipped = a.size > GRANULARITY && pick(3) == 0 ? GRANULARITY : 0;
    const size_t size = a.size - skipped, more = pick(3) == 0 ? b.size : 0;
    if (LOG(cuMemAddressReserve(&range, size + more, 0, 0, 0)) != 0)
        return;
    if (!map_part(range, &a, skipped, size)) {
        LOG(cuMemAddressFree(range, size + more));
        return;
    }
    if (more && !map_part(range + size, &b, 0, more)) {
        LOG(cuMemUnmap(range, size));
        return; /* the range stays reserved */
    }
    keep_on(a.device,
            (struct object){
                .family = MAPPING, .pointer = (void *)range, .size = size + more, .references = 1});
}

void unmap(int index)
{
    CUmemGenericAllocationHandle again;
    const struct object mapping = objects[index];
    const CUdeviceptr range = (CUdeviceptr)mapping.pointer;
    if (pick(4) == 0 && LOG(cuMemRetainAllocationHandle(&again, mapping.pointer)) == 0) {
        const int released_first = pick(2) != 0;
        if (released_first)
            LOG(cuMemRelease(again));
        if (LOG(cuMemUnmap(range, mapping.size)) == 0) {
            LOG(cuMemAddressFree(range, mapping.size));
            forget(index);
        }
        if (!released_first)
            LOG(cuMemRelease(again));
        return;
    }
    if (pick(6) == 0)
        LOG(cuMemUnmap(range, mapping.size + GRANULARITY)); /* refused */
    if (LOG(cuMemUnmap(range, mapping.size)) != 0)
        return;
    LOG(cuMemAddressFree(range, mapping.size));
    forget(index);
}

void vmm_step(void)
{
    CUdeviceptr range;
    switch (pick(8)) {
    case 0 ... 2:
        create_handle();
        break;
    case 3 ... 5:
        map_handles();
        break;
    case 6:
        import_handle();
        if (pick(2))
            map_tiles(pick(4) == 0);
        break;
    default:
        if (LOG(cuMemAddressReserve(&range, GRANULARITY, 0, 0, 0)) == 0)
            LOG(cuMemAddressFree(range, GRANULARITY));
    }
}

/* ---- multicast objects and logical endpoints ------------------------------------------------- */

#define TEAM_PARTS 4 /* places of each device, for memory of one granule each */

/* Sometimes of all devices; then only the device identifies what is bound at a place. */
static void create_team(void)
{
    CUmemGenericAllocationHandle team;
    const int all = device_count > 1 && pick(2);
    const CUmulticastObjectProp properties = {
        .numDevices = all ? (unsigned)device_count : 1,
        .size = TEAM_PARTS * GRANULARITY,
        .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    };
    if (LOG(cuMulticastCreate(&team, &properties)) != 0)
        return;
    for (int device = 0; all && device < device_count; device++)
        LOG(cuMulticastAddDevice(team, device));
    if (!all)
        LOG(cuMulticastAddDevice(team, current_device()));
    keep((struct object){.family = TEAM, .pointer = (void *)team, .size = properties.size});
}

static void create_endpoint(void)
{
    CUlogicalEndpointId id;
    const int all = device_count > 1 && pick(2);
    CUlogicalEndpointProp properties = {.type = CU_LOGICAL_ENDPOINT_TYPE_UNICAST,
                                        .size = TEAM_PARTS * GRANULARITY};
    properties.unicast.device = current_device();
    if (all) {
        properties.type = CU_LOGICAL_ENDPOINT_TYPE_MULTICAST;
        properties.multicast.numDevices = (unsigned)device_count;
    }
    if (LOG(cuLogicalEndpointIdReserve(&id, 1)) != 0)
        return;
    if (pick(8) == 0)
        LOG(cuLogicalEndpointDestroy(id)); /* refused: only reserved */
    if (LOG(cuLogicalEndpointCreate(id, &properties)) != 0)
        return;
    for (int device = 0; all && device < device_count; device++)
        LOG(cuLogicalEndpointAddDevice(id, device));
    if (pick(8) == 0)
        LOG(cuLogicalEndpointCreate(id, &properties)); /* refused: there is one */
    keep((struct object){
        .family = TEAM, .pointer = (void *)(uintptr_t)id, .size = properties.size, .endpoint = 1});
}

/* Binds by the ABI that names the device, or by the one that does not. */
static int bind_memory(const struct object *team, CUdevice device, size_t place,
                       const struct object *memory)
{
    const CUmemGenericAllocationHandle handle = (CUmemGenericAllocationHandle)memory->pointer,
                                       object = (CUmemGenericAllocationHandle)team->pointer;
    if (team->endpoint)
        return LOG(cuLogicalEndpointBindMem((CUlogicalEndpointId)object, device, place, handle, 0,
                                            GRANULARITY, 0));
    if (pick(2))
        return LOG_AS("cuMulticastBindMem_v2",
                      cuMulticastBindMem_v2(object, device, place, handle, 0, GRANULARITY, 0));
    return LOG_AS("cuMulticastBindMem",
                  cuMulticastBindMem_v1(object, place, handle, 0, GRANULARITY, 0));
}

static int bind_address(const struct object *team, CUdevice device, size_t place, void *address)
{
    const CUmemGenericAllocationHandle object = (CUmemGenericAllocationHandle)team->pointer;
    if (team->endpoint)
        return LOG(cuLogicalEndpointBindAddr((CUlogicalEndpointId)object, device, place, address,
                                             GRANULARITY, 0));
    if (pick(2))
        return LOG_AS(
            "cuMulticastBindAddr_v2",
            cuMulticastBindAddr_v2(object, device, place, (CUdeviceptr)address, GRANULARITY, 0));
    return LOG_AS("cuMulticastBindAddr",
                  cuMulticastBindAddr_v1(object, place, (CUdeviceptr)address, GRANULARITY, 0));
}

/* Memory of a pool can be bound by its address. The binding does not keep it, because its pool
 * does. */
static int bind_pool_memory(const struct object *team, CUdevice device, size_t place)
{
    CUdeviceptr memory;
    if (LOG(cuMemAllocAsync(&memory, GRANULARITY, created_stream())) != 0)
        return 1;
    keep((struct object){.family = LINEAR, .pointer = (void *)memory, .size = GRANULARITY});
    return bind_address(team, device, place, (void *)memory);
}

/* Several pieces can be bound, so place and device identify the one that an unbinding ends. Now and
 * then the device is not that of the memory, which the ABIs that name one refuse. Memory of a pool
 * has the last place to itself: a trace has no such binding and guesses the device of imported
 * memory, so with both at one place it could not know which one an unbinding meant. */
static void bind(int index)
{
    const struct object team = objects[index];
    const int mapped = find(MAPPING), created = find(HANDLE);
    const int of_pool = pick(5) == 0;
    const size_t place = of_pool ? TEAM_PARTS - 1 : pick(TEAM_PARTS - 1);
    const int wrong = pick(8) == 0 ? (int)pick((unsigned)device_count) : -1;
    int device = current_device(), result = 1;
    if (of_pool) {
        result = bind_pool_memory(&team, wrong < 0 ? device : wrong, place * GRANULARITY);
    } else if (mapped >= 0 && pick(2)) {
        device = objects[mapped].device;
        result = bind_address(&team, wrong < 0 ? device : wrong, place * GRANULARITY,
                              objects[mapped].pointer);
    } else if (created >= 0) {
        device = objects[created].device;
        result =
            bind_memory(&team, wrong < 0 ? device : wrong, place * GRANULARITY, &objects[created]);
    }
    if (result == 0)
        objects[index].live |= 1 << (device * TEAM_PARTS + (int)place);
}

/* Also unbinds a place where nothing is bound (refused). */
static void unbind(struct object *team)
{
    const unsigned places = DEVICES_MAX * TEAM_PARTS;
    unsigned place = pick((unsigned)device_count * TEAM_PARTS);
    while (team->live && pick(8) && !(team->live & 1 << place))
        place = (place + 1) % places;
    const int device = (int)(place / TEAM_PARTS);
    const size_t offset = place % TEAM_PARTS * GRANULARITY;
    const uint64_t handle = (uint64_t)team->pointer;
    if ((team->endpoint ? LOG(cuLogicalEndpointUnbind((CUlogicalEndpointId)handle, device, offset,
                                                      GRANULARITY))
                        : LOG(cuMulticastUnbind(handle, device, offset, GRANULARITY))) == 0)
        team->live &= ~(1 << place);
}

void multicast_step(void)
{
    int index = find(TEAM);
    if (index < 0 || pick(8) == 0) {
        pick(2) ? create_endpoint() : create_team();
        index = find(TEAM);
    }
    for (unsigned count = 1 + pick(5); index >= 0 && count > 0; count--)
        pick(3) ? bind(index) : unbind(&objects[index]);
}

/* The last handle and the last mapping release the bound memory; for an endpoint this happens at
 * once. Its number can become another endpoint, or be given back. */
void drop_team(int index)
{
    struct object *team = &objects[index];
    const CUlogicalEndpointId id = (CUlogicalEndpointId)(uintptr_t)team->pointer;
    if (!team->endpoint) {
        if (LOG(cuMemRelease((CUmemGenericAllocationHandle)team->pointer)) == 0)
            forget(index);
        return;
    }
    if (pick(4) == 0)
        LOG(cuLogicalEndpointIdRelease(id, 1)); /* refused: in use */
    if (LOG(cuLogicalEndpointDestroy(id)) != 0)
        return;
    LOG(cuLogicalEndpointIdRelease(id, 1));
    forget(index);
}
