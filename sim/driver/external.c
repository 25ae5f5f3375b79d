/*
 * External memory: what a file descriptor of another API refers to, mapped as a buffer or as a
 * mipmapped array. Any file that can be mapped will do. An import takes the descriptor over.
 */
#include "array.h"
#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

struct external {
    struct gpusim_object base;
    int fd;
    uint64_t size;
};

uint64_t gpusim_map_external(int fd, uint64_t offset, uint64_t size, uint64_t *pages,
                             uint64_t *pages_size)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t first = gpusim_align_down(offset, page);
    uint64_t span = gpusim_align_up(offset + size - first, page);
    void *mapped = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)first);

    if (mapped == MAP_FAILED)
        return 0;
    *pages = (uint64_t)(uintptr_t)mapped;
    *pages_size = span;
    return *pages + (offset - first);
}

void gpusim_unmap_external(uint64_t address, uint64_t size)
{
    munmap((void *)(uintptr_t)address, size);
}

CUresult cuImportExternalMemory(CUexternalMemory *handle,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *description)
{
    GPUSIM_ENTER_CONTEXT(context);
    if (!handle || !description || description->size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (description->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
        return CUDA_ERROR_NOT_SUPPORTED;
    uint64_t pages, pages_size; /* a first mapping shows whether the descriptor can be mapped */
    if (!gpusim_map_external(description->handle.fd, 0, description->size, &pages, &pages_size))
        return CUDA_ERROR_INVALID_HANDLE;
    gpusim_unmap_external(pages, pages_size);
    (void)context;

    struct external *external = gpusim_object_new(sizeof(*external), GPUSIM_TYPE_EXTERNAL, NULL);
    if (!external)
        return CUDA_ERROR_OUT_OF_MEMORY;
    external->fd = description->handle.fd;
    external->size = description->size;
    *handle = GPUSIM_HANDLE(CUexternalMemory, external);
    return CUDA_SUCCESS;
}

CUresult cuDestroyExternalMemory(CUexternalMemory handle)
{
    GPUSIM_ENTER();
    struct external *external = GPUSIM_FIND(handle, GPUSIM_TYPE_EXTERNAL);

    if (!external)
        return CUDA_ERROR_INVALID_HANDLE;
    close(external->fd);
    gpusim_object_delete(external);
    return CUDA_SUCCESS;
}

static CUresult map_buffer(CUdeviceptr *pointer, const struct external *external,
                           const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *description)
{
    struct gpusim_context *context;
    uint64_t pages, pages_size;

    GPUSIM_TRY(gpusim_allocation_begin());
    GPUSIM_TRY(gpusim_current(&context));
    if (!external)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!pointer || !description || description->size == 0 || description->flags != 0 ||
        description->offset > external->size ||
        description->size > external->size - description->offset)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t address = gpusim_map_external(external->fd, description->offset, description->size,
                                           &pages, &pages_size);
    if (!address)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct gpusim_allocation *allocation = gpusim_allocation_add(
        GPUSIM_FROM_EXTERNAL, address, description->size, context->device, context);
    if (!allocation) {
        gpusim_unmap_external(pages, pages_size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    allocation->mapped_at = pages;
    allocation->mapped_size = pages_size;
    gpusim_count_alloc(context->device, GPUSIM_EXTERNAL, description->size);
    *pointer = address;
    return CUDA_SUCCESS;
}

CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *pointer, CUexternalMemory handle,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *description)
{
    GPUSIM_ENTER_FAILED();
    return gpusim_allocation_end(
        map_buffer(pointer, GPUSIM_FIND(handle, GPUSIM_TYPE_EXTERNAL), description));
}

static CUresult map_mipmap(CUmipmappedArray *handle, const struct external *external,
                           const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *description)
{
    struct gpusim_context *context;
    uint64_t pages, pages_size;

    GPUSIM_TRY(gpusim_allocation_begin());
    GPUSIM_TRY(gpusim_current(&context));
    if (!external)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!handle || !description || description->numLevels == 0 || description->numLevels > 32)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_check_descriptor(&description->arrayDesc));
    uint64_t size = gpusim_mipmap_size(&description->arrayDesc, description->numLevels);
    if (size == 0 || description->offset > external->size ||
        size > external->size - description->offset)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t address =
        gpusim_map_external(external->fd, description->offset, size, &pages, &pages_size);
    if (!address)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct gpusim_mipmap *mipmap =
        gpusim_mipmap_new(context, &description->arrayDesc, description->numLevels, address);
    if (!mipmap) {
        gpusim_unmap_external(pages, pages_size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    mipmap->external = true;
    mipmap->counted = size;
    mipmap->mapped_at = pages;
    mipmap->mapped_size = pages_size;
    gpusim_count_alloc(context->device, GPUSIM_EXTERNAL, size);
    *handle = GPUSIM_HANDLE(CUmipmappedArray, mipmap);
    return CUDA_SUCCESS;
}

CUresult cuExternalMemoryGetMappedMipmappedArray(
    CUmipmappedArray *mipmap, CUexternalMemory handle,
    const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *description)
{
    GPUSIM_ENTER_FAILED();
    return gpusim_allocation_end(
        map_mipmap(mipmap, GPUSIM_FIND(handle, GPUSIM_TYPE_EXTERNAL), description));
}
