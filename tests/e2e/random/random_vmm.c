/* Random program: virtual memory management and multicast objects. */
#include "random.h"

#include <unistd.h>

/* ---- physical memory ---------------------------------------------------------------------------
 */

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
    LOG(cudaSetDevice(current_device())); /* else nobody says whose device the import is */
    if (index < 0 || LOG(cuMemExportToShareableHandle(
                         &shared, (CUmemGenericAllocationHandle)objects[index].pointer,
                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)) != 0)
        return;
    if (LOG(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)shared,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) == 0)
        keep((struct object){.family = HANDLE,
                             .pointer = (void *)imported,
                             .size = objects[index].size,
                             .references = 1});
    close(shared);
    if (pick(4) == 0)
        LOG(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)-1,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)); /* refused */
}

void drop_handle(int index)
{
    struct object *handle = &objects[index];
    if (LOG(cuMemRelease((CUmemGenericAllocationHandle)handle->pointer)) == 0 &&
        --handle->references == 0)
        forget(index);
}

/* ---- mappings ----------------------------------------------------------------------------------
 */

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
    if (first < 0 || second < 0)
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
    keep((struct object){
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
        break;
    default:
        if (LOG(cuMemAddressReserve(&range, GRANULARITY, 0, 0, 0)) == 0)
            LOG(cuMemAddressFree(range, GRANULARITY));
    }
}

/* ---- multicast ---------------------------------------------------------------------------------
 */

#define TEAM_PARTS 4 /* places for memory of one granule each */

static void create_team(void)
{
    CUmemGenericAllocationHandle team;
    const CUmulticastObjectProp properties = {
        .numDevices = 1,
        .size = TEAM_PARTS * GRANULARITY,
        .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    };
    if (LOG(cuMulticastCreate(&team, &properties)) != 0)
        return;
    LOG(cuMulticastAddDevice(team, current_device()));
    keep((struct object){.family = TEAM, .pointer = (void *)team, .size = properties.size});
}

/* Several pieces can be bound, so which one an unbinding ends is told by its place alone. */
static void bind(struct object *team)
{
    const CUmemGenericAllocationHandle handle = (CUmemGenericAllocationHandle)team->pointer;
    const int mapping = find(MAPPING), memory = find(HANDLE);
    const unsigned place = pick(TEAM_PARTS);
    int result = 1;
    if (mapping >= 0 && pick(2))
        result = LOG(cuMulticastBindAddr(handle, place * GRANULARITY,
                                         (CUdeviceptr)objects[mapping].pointer, GRANULARITY, 0));
    else if (memory >= 0)
        result = LOG(cuMulticastBindMem(handle, place * GRANULARITY,
                                        (CUmemGenericAllocationHandle)objects[memory].pointer, 0,
                                        GRANULARITY, 0));
    if (result == 0)
        team->live |= 1 << place;
}

/* Of a place where nothing is, too: refused. */
static void unbind(struct object *team)
{
    unsigned place = pick(TEAM_PARTS);
    while (team->live && pick(8) && !(team->live & 1 << place))
        place = (place + 1) % TEAM_PARTS;
    if (LOG(cuMulticastUnbind((CUmemGenericAllocationHandle)team->pointer, team->device,
                              place * GRANULARITY, GRANULARITY)) == 0)
        team->live &= ~(1 << place);
}

void multicast_step(void)
{
    const int index = find(TEAM);
    if (index < 0 || pick(8) == 0)
        create_team();
    else if (pick(3))
        bind(&objects[index]);
    else
        unbind(&objects[index]);
}

/* What is bound is let go with the last handle and the last mapping. */
void drop_team(int index)
{
    if (LOG(cuMemRelease((CUmemGenericAllocationHandle)objects[index].pointer)) == 0)
        forget(index);
}
