/*
 * Linear device memory: cuMemAlloc, pitched and managed memory, cuMemFree and the queries.
 *
 * Linear memory is first fit in the device's address arena and charged to its capacity. Managed
 * memory has an arena of its own and charges no device: kernels do not run, so its pages never
 * leave the host.
 */
#include "memory.h"
#include "stream.h"

#include <stdio.h>
#include <unistd.h>

static struct gpusim_arena managed_arena;

/* Bytes that a request occupies; 0 when it cannot be rounded up. */
static uint64_t occupied(uint64_t size)
{
    return gpusim_align_up(size, GPUSIM_ARENA_ALIGNMENT);
}

/* GPUMEM_SIM_SHARE: as on a card, small allocations share pieces of the granularity; they are cut as
 * tightly as it goes. */
static bool is_small(uint64_t taken)
{
    return gpusim_settings.shares_pieces && taken < GPUSIM_GRANULARITY;
}

/* What so many bytes more take of the device. */
static uint64_t more_room(const struct gpusim_device *device, uint64_t taken)
{
    return is_small(taken) ? gpusim_align_up(device->small + taken, GPUSIM_GRANULARITY) -
                                 gpusim_align_up(device->small, GPUSIM_GRANULARITY)
                           : taken;
}

static bool open_linear(struct gpusim_device *device)
{
    char name[32]; /* the number gives an importer the device */

    /* With virtual contents, addresses cost nothing, and a real device maps its memory wherever it
     * lies: then only the bytes are a limit, as they are there. */
    uint64_t span = gpusim_settings.virtual_above ? 4 * device->capacity : device->capacity;

    snprintf(name, sizeof(name), "gpusim-linear-%d", device->ordinal);
    if (!gpusim_arena_open(&device->linear, name, span))
        return false;
    device->linear.from_top = gpusim_settings.from_top;
    return true;
}

uint64_t gpusim_linear_take(struct gpusim_device *device, uint64_t size)
{
    uint64_t taken = occupied(size), address = 0;
    uint64_t room = more_room(device, taken);

    if (size > device->capacity || !gpusim_device_charge(device, room))
        return 0;
    if (device->linear.base || open_linear(device))
        address = gpusim_arena_take(&device->linear, taken, GPUSIM_ARENA_ALIGNMENT);
    if (!address)
        gpusim_device_refund(device, room);
    else if (is_small(taken))
        device->small += taken;
    return address;
}

void gpusim_linear_give(struct gpusim_device *device, uint64_t address, uint64_t size)
{
    const uint64_t taken = occupied(size);

    gpusim_arena_give(&device->linear, address, taken);
    if (is_small(taken))
        device->small -= taken;
    gpusim_device_refund(device, more_room(device, taken));
}

uint64_t gpusim_managed_take(uint64_t size)
{
    /* Managed memory can be larger than a device: all devices together and the host's memory. */
    if (!managed_arena.base) {
        uint64_t host = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
        uint64_t devices = (uint64_t)gpusim_settings.device_count * gpusim_settings.capacity;

        if (!gpusim_arena_open(&managed_arena, "gpusim-managed", host + devices))
            return 0;
    }
    if (size > managed_arena.size)
        return 0;
    return gpusim_arena_take(&managed_arena, occupied(size), GPUSIM_ARENA_ALIGNMENT);
}

void gpusim_managed_give(uint64_t address, uint64_t size)
{
    gpusim_arena_give(&managed_arena, address, occupied(size));
}

static CUresult allocate_linear(CUdeviceptr *pointer, uint64_t size)
{
    struct gpusim_context *context;

    GPUSIM_TRY(gpusim_allocation_begin());
    GPUSIM_TRY(gpusim_current(&context));
    if (!pointer || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_check_unsafe_call());

    uint64_t address = gpusim_linear_take(context->device, size);
    if (!address)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!gpusim_allocation_add(GPUSIM_FROM_LINEAR, address, size, context->device, context)) {
        gpusim_linear_give(context->device, address, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    gpusim_count_alloc(context->device, GPUSIM_DEVICE, size);
    *pointer = address;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t size)
{
    if (atomic_load_explicit(&gpusim_noop, memory_order_relaxed))
        return gpusim_noop_alloc(pointer);
    GPUSIM_ENTER_FAILED();
    return gpusim_allocation_end(allocate_linear(pointer, size));
}

static CUresult allocate_pitched(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                                 unsigned int element)
{
    size_t aligned = gpusim_align_up(width, GPUSIM_PITCH_ALIGNMENT), size;

    if (!pitch || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    if (aligned < width || __builtin_mul_overflow(aligned, height, &size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    GPUSIM_TRY(allocate_linear(pointer, size));
    *pitch = aligned;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                            unsigned int element)
{
    GPUSIM_ENTER_FAILED();
    return gpusim_allocation_end(allocate_pitched(pointer, pitch, width, height, element));
}

static CUresult allocate_managed(CUdeviceptr *pointer, size_t size, unsigned int flags)
{
    struct gpusim_context *context;

    GPUSIM_TRY(gpusim_allocation_begin());
    GPUSIM_TRY(gpusim_current(&context));
    if (!pointer || size == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_check_unsafe_call());

    uint64_t address = gpusim_managed_take(size);
    if (!address)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct gpusim_allocation *allocation =
        gpusim_allocation_add(GPUSIM_FROM_MANAGED, address, size, context->device, context);
    if (!allocation) {
        gpusim_managed_give(address, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    allocation->flags = flags;
    gpusim_count_alloc(context->device, GPUSIM_MANAGED, size);
    *pointer = address;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t size, unsigned int flags)
{
    GPUSIM_ENTER_FAILED();
    return gpusim_allocation_end(allocate_managed(pointer, size, flags));
}

bool gpusim_is_freeable(const struct gpusim_allocation *allocation)
{
    switch (allocation->origin) {
    case GPUSIM_FROM_LINEAR:
    case GPUSIM_FROM_MANAGED:
    case GPUSIM_FROM_POOL:
    case GPUSIM_FROM_POOL_IMPORT:
    case GPUSIM_FROM_GRAPH:
    case GPUSIM_FROM_EXTERNAL:
        return true;
    default:
        return false;
    }
}

CUresult gpusim_free_address(CUdeviceptr pointer, bool by_call)
{
    struct gpusim_allocation *allocation = gpusim_allocation_from(pointer);

    if (!allocation || !gpusim_is_freeable(allocation))
        return CUDA_ERROR_INVALID_VALUE;
    if (by_call)
        GPUSIM_TRY(gpusim_free_begin());
    gpusim_allocation_free(allocation, false);
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    if (atomic_load_explicit(&gpusim_noop, memory_order_relaxed))
        return CUDA_SUCCESS;
    GPUSIM_ENTER_CONTEXT(context);
    if (pointer == 0)
        return CUDA_SUCCESS;
    GPUSIM_TRY(gpusim_check_unsafe_call());
    GPUSIM_TRY(gpusim_free_address(pointer, true));
    gpusim_pools_release(context->device);
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    GPUSIM_ENTER_CONTEXT(context);
    if (!free_bytes || !total)
        return CUDA_ERROR_INVALID_VALUE;
    gpusim_exports_reap();
    *free_bytes = context->device->capacity - context->device->used + context->device->code;
    *total = context->device->capacity;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer)
{
    GPUSIM_ENTER();
    struct gpusim_allocation *allocation = gpusim_allocation_at(pointer);

    if (!allocation)
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = allocation->range.start;
    if (size)
        *size = allocation->range.size;
    return CUDA_SUCCESS;
}

/* GPUMEM_SIM_NOOP: an address from the thread's own cycle, so that a benchmark does not measure the
 * simulator. Addresses of two threads never meet. */
CUresult gpusim_noop_alloc(CUdeviceptr *pointer)
{
    enum { CYCLE = 1 << 20 };
    static atomic_uint threads;
    static _Thread_local uint64_t base;
    static _Thread_local uint32_t next;

    if (!base)
        base = 0x500000000000ull + ((uint64_t)atomic_fetch_add(&threads, 1) << 32);
    *pointer = base + (uint64_t)(next++ % CYCLE) * GPUSIM_ARENA_ALIGNMENT;
    return CUDA_SUCCESS;
}
