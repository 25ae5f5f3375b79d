/*
 * Page-locked host memory: allocated (cuMemAllocHost, cuMemHostAlloc) and registered. Addresses are
 * unified, so the device pointer of host memory is its host address.
 */
#include "memory.h"
#include "stream.h"

#include <sys/mman.h>
#include <unistd.h>

static struct gpusim_arena host_arena;

static uint64_t take_from_arena(uint64_t size)
{
    if (!host_arena.base) {
        uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

        if (!gpusim_arena_open(&host_arena, "gpusim-host", memory))
            return 0;
    }
    if (size > host_arena.size)
        return 0;
    return gpusim_arena_take(&host_arena, gpusim_align_up(size, GPUSIM_ARENA_ALIGNMENT),
                             GPUSIM_ARENA_ALIGNMENT);
}

void gpusim_host_give(uint64_t address, uint64_t size)
{
    gpusim_arena_give(&host_arena, address, gpusim_align_up(size, GPUSIM_ARENA_ALIGNMENT));
}

static CUresult allocate_host(void **pointer, size_t size, unsigned int flags)
{
    const unsigned int known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    struct gpusim_context *context;

    GPUSIM_TRY(gpusim_allocation_begin());
    GPUSIM_TRY(gpusim_current(&context));
    if (!pointer || size == 0 || (flags & ~known))
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_check_unsafe_call());

    uint64_t address = take_from_arena(size);
    if (!address)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct gpusim_allocation *allocation =
        gpusim_allocation_add(GPUSIM_FROM_HOST_ALLOC, address, size, context->device, context);
    if (!allocation) {
        gpusim_host_give(address, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    /* With unified addressing everything is mapped, as the real driver reports too. */
    allocation->flags = flags | CU_MEMHOSTALLOC_DEVICEMAP;
    gpusim_count_host_alloc(GPUSIM_PINNED, size);
    *pointer = (void *)(uintptr_t)address;
    return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **pointer, size_t size, unsigned int flags)
{
    GPUSIM_ENTER_FAILED();
    return gpusim_allocation_end(allocate_host(pointer, size, flags));
}

CUresult cuMemAllocHost_v2(void **pointer, size_t size)
{
    return cuMemHostAlloc(pointer, size, 0);
}

CUresult cuMemAllocHost(void **pointer, unsigned int size)
{
    return cuMemHostAlloc(pointer, size, 0);
}

CUresult cuMemFreeHost(void *pointer)
{
    GPUSIM_ENTER_CONTEXT(context);
    struct gpusim_allocation *allocation = gpusim_allocation_from((uint64_t)(uintptr_t)pointer);

    (void)context;
    if (!pointer)
        return CUDA_SUCCESS;
    if (!allocation || allocation->origin != GPUSIM_FROM_HOST_ALLOC)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_check_unsafe_call());
    GPUSIM_TRY(gpusim_free_begin());
    gpusim_allocation_free(allocation, false);
    return CUDA_SUCCESS;
}

/* Whether every page of the span exists. */
static bool is_mapped(uint64_t address, uint64_t size)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    unsigned char resident[256];

    for (uint64_t at = gpusim_align_down(address, page); at < address + size;) {
        uint64_t span = address + size - at, most = sizeof(resident) * page;

        if (span > most)
            span = most;
        if (mincore((void *)(uintptr_t)at, span, resident) != 0)
            return false;
        at += span;
    }
    return true;
}

static CUresult register_host(void *pointer, size_t size, unsigned int flags)
{
    const unsigned int known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                               CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    struct gpusim_context *context;

    GPUSIM_TRY(gpusim_allocation_begin());
    GPUSIM_TRY(gpusim_current(&context));
    if (!pointer || size == 0 || address + size < address || (flags & ~known))
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_check_unsafe_call());
    if (gpusim_allocation_overlaps(address, size)) {
        struct gpusim_allocation *other = gpusim_allocation_at(address);

        if (!other)
            other = gpusim_allocation_next(address);
        return other->origin == GPUSIM_FROM_HOST_REGISTER || other->origin == GPUSIM_FROM_HOST_ALLOC
                   ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                   : CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_mapped(address, size))
        return CUDA_ERROR_INVALID_VALUE;

    struct gpusim_allocation *allocation =
        gpusim_allocation_add(GPUSIM_FROM_HOST_REGISTER, address, size, context->device, context);
    if (!allocation)
        return CUDA_ERROR_OUT_OF_MEMORY;
    allocation->flags = flags | CU_MEMHOSTREGISTER_DEVICEMAP;
    gpusim_count_host_alloc(GPUSIM_REGISTERED, size);
    return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *pointer, size_t size, unsigned int flags)
{
    GPUSIM_ENTER_FAILED();
    return gpusim_allocation_end(register_host(pointer, size, flags));
}

CUresult cuMemHostRegister(void *pointer, size_t size, unsigned int flags)
{
    return cuMemHostRegister_v2(pointer, size, flags);
}

CUresult cuMemHostUnregister(void *pointer)
{
    GPUSIM_ENTER_CONTEXT(context);
    struct gpusim_allocation *allocation = gpusim_allocation_from((uint64_t)(uintptr_t)pointer);

    (void)context;
    if (!pointer)
        return CUDA_ERROR_INVALID_VALUE;
    if (!allocation || allocation->origin != GPUSIM_FROM_HOST_REGISTER)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    GPUSIM_TRY(gpusim_check_unsafe_call());
    GPUSIM_TRY(gpusim_free_begin());
    gpusim_allocation_free(allocation, false);
    return CUDA_SUCCESS;
}

static struct gpusim_allocation *host_allocation(const void *pointer)
{
    struct gpusim_allocation *allocation = gpusim_allocation_at((uint64_t)(uintptr_t)pointer);

    if (!allocation || (allocation->origin != GPUSIM_FROM_HOST_ALLOC &&
                        allocation->origin != GPUSIM_FROM_HOST_REGISTER))
        return NULL;
    return allocation;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device_pointer, void *pointer,
                                      unsigned int flags)
{
    GPUSIM_ENTER_CONTEXT(context);
    (void)context;
    if (!device_pointer || flags != 0 || !host_allocation(pointer))
        return CUDA_ERROR_INVALID_VALUE;
    *device_pointer = (CUdeviceptr)(uintptr_t)pointer;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *pointer)
{
    GPUSIM_ENTER_CONTEXT(context);
    struct gpusim_allocation *allocation = host_allocation(pointer);

    (void)context;
    if (!flags || !allocation)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = allocation->flags;
    return CUDA_SUCCESS;
}
