/*
 * Hints about managed memory: accepted, remembered for a whole allocation, and without effect,
 * since pages never leave the host here.
 */
#include "memory.h"
#include "stream.h"

#include <string.h>

static bool is_managed(const struct gpusim_allocation *allocation)
{
    return gpusim_allocation_place(allocation) == GPUSIM_PLACE_MANAGED ||
           (allocation->origin == GPUSIM_FROM_MODULE && allocation->flags);
}

/* The managed allocation that holds the whole range. */
static CUresult find_managed(CUdeviceptr pointer, size_t count,
                             struct gpusim_allocation **allocation)
{
    *allocation = gpusim_allocation_at(pointer);
    if (!*allocation || !is_managed(*allocation) || count == 0 ||
        count > (*allocation)->range.start + (*allocation)->range.size - pointer)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult check_location(const CUmemLocation *location)
{
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
        return gpusim_device_of(location->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    return location->type == CU_MEM_LOCATION_TYPE_HOST ||
                   location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
                   location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

static CUmemLocation location_of_device(CUdevice device)
{
    return device == CU_DEVICE_CPU
               ? (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST, .id = 0}
               : (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

/* ---- advice ---------------------------------------------------------------------------------- */

static void set_accessed_by(struct gpusim_advice *advice, const CUmemLocation *location,
                            bool is_set)
{
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        advice->accessed_by_host = is_set;
    else if (is_set)
        advice->accessed_by |= 1u << location->id;
    else
        advice->accessed_by &= ~(1u << location->id);
}

CUresult cuMemAdvise_v2(CUdeviceptr pointer, size_t count, CUmem_advise what,
                        CUmemLocation location)
{
    GPUSIM_ENTER();
    struct gpusim_allocation *allocation;

    GPUSIM_TRY(find_managed(pointer, count, &allocation));
    GPUSIM_TRY(gpusim_take_begin());
    struct gpusim_advice *advice = &allocation->advice;
    switch (what) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        advice->read_mostly = what == CU_MEM_ADVISE_SET_READ_MOSTLY;
        return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        GPUSIM_TRY(check_location(&location));
        advice->preferred = location;
        advice->has_preferred = true;
        return CUDA_SUCCESS;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        advice->has_preferred = false;
        return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        GPUSIM_TRY(check_location(&location));
        set_accessed_by(advice, &location, what == CU_MEM_ADVISE_SET_ACCESSED_BY);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuMemAdvise(CUdeviceptr pointer, size_t count, CUmem_advise advice, CUdevice device)
{
    return cuMemAdvise_v2(pointer, count, advice, location_of_device(device));
}

/* ---- prefetch and discard -------------------------------------------------------------------- */

static CUresult prefetch(CUdeviceptr pointer, size_t count, const CUmemLocation *location)
{
    struct gpusim_allocation *allocation;

    GPUSIM_TRY(find_managed(pointer, count, &allocation));
    GPUSIM_TRY(check_location(location));
    GPUSIM_TRY(gpusim_take_begin());
    allocation->advice.prefetched = *location;
    allocation->advice.has_prefetched = true;
    return CUDA_SUCCESS;
}

/* Work on managed memory that cannot be captured. */
static CUresult check_stream(CUstream handle)
{
    struct gpusim_stream *stream;

    GPUSIM_TRY(gpusim_stream_of(handle, &stream));
    return stream->capture ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t count, CUmemLocation location,
                               unsigned int flags, CUstream stream)
{
    GPUSIM_ENTER();
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(check_stream(stream));
    return prefetch(pointer, count, &location);
}

CUresult cuMemPrefetchAsync(CUdeviceptr pointer, size_t count, CUdevice device, CUstream stream)
{
    return cuMemPrefetchAsync_v2(pointer, count, location_of_device(device), 0, stream);
}

static CUresult batch(CUdeviceptr *pointers, size_t *sizes, size_t count, CUmemLocation *locations,
                      size_t *starts, size_t location_count, unsigned long long flags,
                      CUstream stream)
{
    size_t current = 0;

    GPUSIM_TRY(check_stream(stream));
    if (!pointers || !sizes || count == 0 || flags != 0 || !locations || !starts ||
        location_count == 0 || location_count > count || starts[0] != 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        while (current + 1 < location_count && starts[current + 1] <= i)
            current++;
        GPUSIM_TRY(prefetch(pointers[i], sizes[i], &locations[current]));
    }
    return CUDA_SUCCESS;
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr *pointers, size_t *sizes, size_t count,
                                 CUmemLocation *locations, size_t *starts, size_t location_count,
                                 unsigned long long flags, CUstream stream)
{
    GPUSIM_ENTER();
    return batch(pointers, sizes, count, locations, starts, location_count, flags, stream);
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *pointers, size_t *sizes, size_t count,
                                           CUmemLocation *locations, size_t *starts,
                                           size_t location_count, unsigned long long flags,
                                           CUstream stream)
{
    GPUSIM_ENTER();
    return batch(pointers, sizes, count, locations, starts, location_count, flags, stream);
}

CUresult cuMemDiscardBatchAsync(CUdeviceptr *pointers, size_t *sizes, size_t count,
                                unsigned long long flags, CUstream stream)
{
    GPUSIM_ENTER();
    struct gpusim_allocation *allocation;

    GPUSIM_TRY(check_stream(stream));
    if (!pointers || !sizes || count == 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        GPUSIM_TRY(find_managed(pointers[i], sizes[i], &allocation));
    return CUDA_SUCCESS;
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr pointer, size_t length,
                                unsigned int flags)
{
    GPUSIM_ENTER();
    struct gpusim_allocation *allocation = gpusim_allocation_at(pointer);

    GPUSIM_TRY(check_stream(stream));
    if (!allocation || !is_managed(allocation) ||
        (length && length > allocation->range.start + allocation->range.size - pointer) ||
        (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
         flags != CU_MEM_ATTACH_SINGLE))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* ---- queries --------------------------------------------------------------------------------- */

static int device_id(bool known, const CUmemLocation *location)
{
    if (!known)
        return CU_DEVICE_INVALID;
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id : CU_DEVICE_CPU;
}

/* The devices that access the range, host first, the rest of the array invalid. */
static CUresult list_accessed_by(const struct gpusim_advice *advice, int *list, size_t room)
{
    size_t count = 0;

    for (size_t i = 0; i < room; i++)
        list[i] = CU_DEVICE_INVALID;
    if (advice->accessed_by_host && count < room)
        list[count++] = CU_DEVICE_CPU;
    for (int device = 0; device < GPUSIM_MAX_DEVICES && count < room; device++) {
        if (advice->accessed_by & 1u << device)
            list[count++] = device;
    }
    return CUDA_SUCCESS;
}

static CUresult range_attribute(const struct gpusim_advice *advice, void *data, size_t size,
                                CUmem_range_attribute attribute)
{
    int value;

    if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
        return size && size % sizeof(int) == 0 ? list_accessed_by(advice, data, size / sizeof(int))
                                               : CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
        value = advice->read_mostly;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
        value = device_id(advice->has_preferred, &advice->preferred);
        break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        value = device_id(advice->has_prefetched, &advice->prefetched);
        break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
        value = advice->has_preferred ? (int)advice->preferred.type : CU_MEM_LOCATION_TYPE_INVALID;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
        value = advice->has_preferred ? advice->preferred.id : 0;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
        value =
            advice->has_prefetched ? (int)advice->prefetched.type : CU_MEM_LOCATION_TYPE_INVALID;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
        value = advice->has_prefetched ? advice->prefetched.id : 0;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (size != sizeof(value))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(data, &value, sizeof(value));
    return CUDA_SUCCESS;
}

CUresult cuMemRangeGetAttribute(void *data, size_t size, CUmem_range_attribute attribute,
                                CUdeviceptr pointer, size_t count)
{
    GPUSIM_ENTER();
    struct gpusim_allocation *allocation;

    if (!data)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(find_managed(pointer, count, &allocation));
    return range_attribute(&allocation->advice, data, size, attribute);
}

CUresult cuMemRangeGetAttributes(void **data, size_t *sizes, CUmem_range_attribute *attributes,
                                 size_t attribute_count, CUdeviceptr pointer, size_t count)
{
    GPUSIM_ENTER();
    struct gpusim_allocation *allocation;

    if (!data || !sizes || !attributes || attribute_count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(find_managed(pointer, count, &allocation));
    for (size_t i = 0; i < attribute_count; i++)
        GPUSIM_TRY(range_attribute(&allocation->advice, data[i], sizes[i], attributes[i]));
    return CUDA_SUCCESS;
}
