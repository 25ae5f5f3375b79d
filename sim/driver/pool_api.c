/*
 * Stream-ordered allocation and the pool functions. Frees take effect when they are called, in
 * stream order of an infinitely fast device. Pools are on devices, of the host, or of managed memory.
 */
#include "memory.h"
#include "stream.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A pool that its handle still names. */
static struct gpusim_pool *pool_of_handle(CUmemoryPool handle)
{
    struct gpusim_pool *pool = GPUSIM_FIND(handle, GPUSIM_TYPE_POOL);

    return pool && !pool->destroyed && pool != pool->device->graph_pool ? pool : NULL;
}

static struct gpusim_pool *current_pool(struct gpusim_device *device)
{
    return device->current_pool ? device->current_pool : gpusim_default_pool(device);
}

/* near: the stream's device, to which memory of a pool that is on none counts. */
static CUresult allocate(CUdeviceptr *pointer, size_t size, struct gpusim_pool *pool,
                         struct gpusim_device *near)
{
    struct gpusim_device *device =
        gpusim_device_of(pool->device->ordinal) ? gpusim_device_of(pool->device->ordinal) : near;
    uint64_t address = gpusim_pool_take_address(pool, size);

    if (!address)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct gpusim_allocation *allocation =
        gpusim_allocation_add(GPUSIM_FROM_POOL, address, size, device, NULL);
    if (!allocation || !gpusim_pool_commit(pool, address, size)) {
        if (allocation)
            gpusim_allocation_drop(allocation);
        gpusim_arena_give(&pool->arena, address, gpusim_align_up(size, GPUSIM_ARENA_ALIGNMENT));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    allocation->pool = pool;
    gpusim_allocation_count(allocation);
    *pointer = address;
    return CUDA_SUCCESS;
}

/* pool NULL: the current pool of the stream's device. */
static CUresult allocate_async(CUdeviceptr *pointer, size_t size, struct gpusim_pool *pool,
                               CUstream handle)
{
    struct gpusim_stream *stream;

    GPUSIM_TRY(gpusim_allocation_begin());
    GPUSIM_TRY(gpusim_stream_of(handle, &stream));
    if (!pointer || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!pool)
        pool = current_pool(stream->base.context->device);
    if (!pool)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (stream->capture)
        return gpusim_capture_alloc(stream, pool->device, size, pointer);
    return allocate(pointer, size, pool, stream->base.context->device);
}

CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t size, CUstream stream)
{
    if (atomic_load_explicit(&gpusim_noop, memory_order_relaxed))
        return gpusim_noop_alloc(pointer);
    GPUSIM_ENTER_FAILED();
    return gpusim_allocation_end(allocate_async(pointer, size, NULL, stream));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t size, CUmemoryPool handle,
                                 CUstream stream)
{
    GPUSIM_ENTER_FAILED();
    struct gpusim_pool *pool = pool_of_handle(handle);

    if (!pool || pool->imported)
        return gpusim_allocation_end(CUDA_ERROR_INVALID_VALUE);
    return gpusim_allocation_end(allocate_async(pointer, size, pool, stream));
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream handle)
{
    struct gpusim_stream *stream;

    if (atomic_load_explicit(&gpusim_noop, memory_order_relaxed))
        return CUDA_SUCCESS;
    GPUSIM_ENTER();
    GPUSIM_TRY(gpusim_stream_of(handle, &stream));
    if (stream->capture) {
        struct gpusim_operation operation = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = pointer};

        return gpusim_capture_operation(stream, &operation);
    }
    if (pointer == 0)
        return CUDA_SUCCESS;
    return gpusim_free_address(pointer, true);
}

/* ---- pools as objects ------------------------------------------------------------------------ */

CUresult cuMemPoolCreate(CUmemoryPool *handle, const CUmemPoolProps *properties)
{
    GPUSIM_ENTER();
    struct gpusim_device *device;

    if (!handle || !properties)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_pool_place(&properties->location, properties->allocType, &device));
    /* "Pools created with the type CU_MEM_LOCATION_TYPE_HOST are not IPC capable and handleTypes must be 0, any other
     * values will result in CUDA_ERROR_INVALID_VALUE." */
    if (properties->handleTypes && properties->location.type == CU_MEM_LOCATION_TYPE_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    if (properties->handleTypes & ~(unsigned int)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        (properties->handleTypes && device->place != GPUSIM_PLACE_DEVICE))
        return CUDA_ERROR_NOT_SUPPORTED;

    struct gpusim_pool *pool = gpusim_pool_new(device, device->capacity);
    if (!pool)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pool->maximum = gpusim_align_up(properties->maxSize, GPUSIM_GRANULARITY);
    pool->handle_types = properties->handleTypes;
    *handle = GPUSIM_HANDLE(CUmemoryPool, pool);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle)
{
    GPUSIM_ENTER();
    struct gpusim_pool *pool = pool_of_handle(handle);

    if (!pool || pool->is_default)
        return CUDA_ERROR_INVALID_VALUE;
    if (pool->device->current_pool == pool)
        pool->device->current_pool = NULL;
    pool->destroyed = true;
    gpusim_pool_drop_if_unused(pool);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep)
{
    GPUSIM_ENTER();
    struct gpusim_pool *pool = pool_of_handle(handle);

    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    gpusim_pool_trim(pool, keep);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
    GPUSIM_ENTER();
    struct gpusim_pool *pool = pool_of_handle(handle);
    cuuint64_t number;

    if (!pool || !value)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES && (int)attribute > 0) {
        memcpy(&pool->reuse[attribute - 1], value, sizeof(int));
        return CUDA_SUCCESS;
    }
    memcpy(&number, value, sizeof(number));
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        pool->threshold = number;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        if (number != 0)
            return CUDA_ERROR_INVALID_VALUE;
        pool->reserved_high = pool->reserved;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (number != 0)
            return CUDA_ERROR_INVALID_VALUE;
        pool->used_high = pool->used;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
    GPUSIM_ENTER();
    struct gpusim_pool *pool = pool_of_handle(handle);
    cuuint64_t number;

    if (!pool || !value)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        memcpy(value, &pool->reuse[attribute - 1], sizeof(int));
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        number = pool->threshold;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        number = pool->reserved;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        number = pool->reserved_high;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        number = pool->used;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        number = pool->used_high;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(value, &number, sizeof(number));
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *accesses, size_t count)
{
    GPUSIM_ENTER();
    struct gpusim_pool *pool = pool_of_handle(handle);

    if (!pool || (count && !accesses))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        struct gpusim_device *device;

        GPUSIM_TRY(
            gpusim_pool_place(&accesses[i].location, CU_MEM_ALLOCATION_TYPE_PINNED, &device));
        if (device->place != GPUSIM_PLACE_DEVICE && device != pool->device)
            return CUDA_ERROR_NOT_SUPPORTED; /* the host sees no other pool than its own */
        if (device == pool->device && accesses[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_DEVICE; /* a pool's own device cannot lose access */
    }
    for (size_t i = 0; i < count; i++) {
        if (accesses[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            continue;
        uint32_t bit = 1u << accesses[i].location.id;

        if (accesses[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
            pool->peers &= ~bit;
        else
            pool->peers |= bit;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool handle, CUmemLocation *location)
{
    GPUSIM_ENTER();
    struct gpusim_pool *pool = pool_of_handle(handle);
    struct gpusim_device *device;

    if (!pool || !flags || !location)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_pool_place(location, CU_MEM_ALLOCATION_TYPE_PINNED, &device));
    *flags = device == pool->device || (device->ordinal >= 0 && pool->peers & 1u << device->ordinal)
                 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

/* ---- pools of a device ----------------------------------------------------------------------- */

static CUresult answer_pool(CUmemoryPool *handle, struct gpusim_pool *pool)
{
    if (!pool)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = GPUSIM_HANDLE(CUmemoryPool, pool);
    return CUDA_SUCCESS;
}

static CUresult set_pool(struct gpusim_device *device, CUmemoryPool handle)
{
    struct gpusim_pool *pool = pool_of_handle(handle);

    if (!pool || pool->device != device || pool->imported)
        return CUDA_ERROR_INVALID_VALUE;
    device->current_pool = pool;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *handle, CUdevice ordinal)
{
    GPUSIM_ENTER();
    struct gpusim_device *device = gpusim_device_of(ordinal);

    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    return device ? answer_pool(handle, gpusim_default_pool(device)) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *handle, CUdevice ordinal)
{
    GPUSIM_ENTER();
    struct gpusim_device *device = gpusim_device_of(ordinal);

    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    return device ? answer_pool(handle, current_pool(device)) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool handle)
{
    GPUSIM_ENTER();
    struct gpusim_device *device = gpusim_device_of(ordinal);

    return device ? set_pool(device, handle) : CUDA_ERROR_INVALID_DEVICE;
}

/* The 13.0 forms name a location and a type of memory. */
static CUresult device_of_location(const CUmemLocation *location, CUmemAllocationType type,
                                   struct gpusim_device **device)
{
    return location ? gpusim_pool_place(location, type, device) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *handle, CUmemLocation *location,
                                CUmemAllocationType type)
{
    GPUSIM_ENTER();
    struct gpusim_device *device;

    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(device_of_location(location, type, &device));
    return answer_pool(handle, gpusim_default_pool(device));
}

CUresult cuMemGetMemPool(CUmemoryPool *handle, CUmemLocation *location, CUmemAllocationType type)
{
    GPUSIM_ENTER();
    struct gpusim_device *device;

    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(device_of_location(location, type, &device));
    return answer_pool(handle, current_pool(device));
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool handle)
{
    GPUSIM_ENTER();
    struct gpusim_device *device;

    GPUSIM_TRY(device_of_location(location, type, &device));
    return set_pool(device, handle);
}

/* ---- sharing: the descriptor is the pool's memory file, a pointer an offset in it ------------ */

struct export_data {
    char magic[8];
    uint64_t offset, size;
};

static const char export_magic[] = "gpusimPP";

CUresult cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool handle,
                                          CUmemAllocationHandleType type, unsigned long long flags)
{
    GPUSIM_ENTER();
    struct gpusim_pool *pool = pool_of_handle(handle);

    if (!pool || !handle_out || flags != 0 || pool->imported ||
        type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !(pool->handle_types & type))
        return CUDA_ERROR_INVALID_VALUE;
    /* The file exists from the first allocation on; an export makes sure it does. */
    if (!pool->arena.base) {
        uint64_t address = gpusim_pool_take_address(pool, 1);

        if (!address)
            return CUDA_ERROR_OUT_OF_MEMORY;
        gpusim_arena_give(&pool->arena, address, GPUSIM_ARENA_ALIGNMENT);
    }
    int fd = fcntl(pool->arena.fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    memcpy(handle_out, &fd, sizeof(fd));
    return CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *handle_out, void *handle,
                                            CUmemAllocationHandleType type,
                                            unsigned long long flags)
{
    GPUSIM_ENTER();
    int fd = (int)(intptr_t)handle; /* the descriptor itself, cast to a pointer */
    struct gpusim_device *device;
    struct stat status;
    int ordinal;

    if (!handle_out || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpusim_memory_file_number(fd, "gpusim-pool-", &ordinal) || fstat(fd, &status) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    device = gpusim_device_of(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;

    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    struct gpusim_pool *pool = own < 0 ? NULL : gpusim_pool_new(device, (uint64_t)status.st_size);
    if (!pool) {
        if (own >= 0)
            close(own);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    pool->imported = true;
    if (!gpusim_arena_open_fd(&pool->arena, own, (uint64_t)status.st_size)) {
        pool->destroyed = true;
        gpusim_pool_drop_if_unused(pool);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    *handle_out = GPUSIM_HANDLE(CUmemoryPool, pool);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr pointer)
{
    GPUSIM_ENTER();
    struct gpusim_allocation *allocation = gpusim_allocation_from(pointer);

    if (!data || !allocation || allocation->origin != GPUSIM_FROM_POOL ||
        !(allocation->pool->handle_types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        return CUDA_ERROR_INVALID_VALUE;
    struct export_data exported = {.offset = pointer - allocation->pool->arena.base,
                                   .size = allocation->range.size};
    memcpy(exported.magic, export_magic, sizeof(exported.magic));
    memset(data, 0, sizeof(*data));
    memcpy(data->reserved, &exported, sizeof(exported));
    return CUDA_SUCCESS;
}

static CUresult import_pointer(CUdeviceptr *pointer, struct gpusim_pool *pool,
                               const CUmemPoolPtrExportData *data)
{
    struct export_data exported;

    GPUSIM_TRY(gpusim_allocation_begin());
    if (!pointer || !pool || !pool->imported || !data)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&exported, data->reserved, sizeof(exported));
    if (memcmp(exported.magic, export_magic, sizeof(exported.magic)) != 0 ||
        exported.offset >= pool->arena.size || exported.size > pool->arena.size - exported.offset)
        return CUDA_ERROR_INVALID_VALUE;

    uint64_t address = pool->arena.base + exported.offset;
    if (gpusim_allocation_overlaps(address, exported.size))
        return CUDA_ERROR_ALREADY_MAPPED;
    struct gpusim_context *context;
    struct gpusim_device *device =
        gpusim_current(&context) == CUDA_SUCCESS ? context->device : pool->device;
    struct gpusim_allocation *allocation =
        gpusim_allocation_add(GPUSIM_FROM_POOL_IMPORT, address, exported.size, device, NULL);
    if (!allocation)
        return CUDA_ERROR_OUT_OF_MEMORY;
    allocation->counted = 0; /* the call does not have the size */
    allocation->pool = pool;
    pool->live++;
    gpusim_count_alloc(device, GPUSIM_EXTERNAL, 0);
    *pointer = address;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool handle,
                                CUmemPoolPtrExportData *data)
{
    GPUSIM_ENTER_FAILED();
    return gpusim_allocation_end(import_pointer(pointer, pool_of_handle(handle), data));
}
