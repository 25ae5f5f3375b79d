/*
 * CUDA arrays and mipmapped arrays: shapes, storage, levels, planes.
 */
#include "array.h"
#include "memory.h"
#include "stream.h"

#include <stdlib.h>

/* Bytes per channel; 0 for an unknown format. Packed, planar and compressed formats of 8 to 10 bits
 * count one byte per channel (an estimate, like the whole size). */
static unsigned int channel_size(CUarray_format format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
    case CU_AD_FORMAT_UNORM_INT8X1:
    case CU_AD_FORMAT_UNORM_INT8X2:
    case CU_AD_FORMAT_UNORM_INT8X4:
    case CU_AD_FORMAT_SNORM_INT8X1:
    case CU_AD_FORMAT_SNORM_INT8X2:
    case CU_AD_FORMAT_SNORM_INT8X4:
    case CU_AD_FORMAT_NV12:
    case CU_AD_FORMAT_NV16:
    case CU_AD_FORMAT_YUY2:
    case CU_AD_FORMAT_AYUV:
    case CU_AD_FORMAT_Y410:
    case CU_AD_FORMAT_Y444_PLANAR8:
    case CU_AD_FORMAT_YUV444_8bit_SemiPlanar:
    case CU_AD_FORMAT_UNORM_INT_101010_2:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
    case CU_AD_FORMAT_UNORM_INT16X1:
    case CU_AD_FORMAT_UNORM_INT16X2:
    case CU_AD_FORMAT_UNORM_INT16X4:
    case CU_AD_FORMAT_SNORM_INT16X1:
    case CU_AD_FORMAT_SNORM_INT16X2:
    case CU_AD_FORMAT_SNORM_INT16X4:
    case CU_AD_FORMAT_P010:
    case CU_AD_FORMAT_P016:
    case CU_AD_FORMAT_P210:
    case CU_AD_FORMAT_P216:
    case CU_AD_FORMAT_Y210:
    case CU_AD_FORMAT_Y216:
    case CU_AD_FORMAT_Y416:
    case CU_AD_FORMAT_Y444_PLANAR10:
    case CU_AD_FORMAT_YUV444_16bit_SemiPlanar:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_BC7_UNORM_SRGB ? 1 : 0;
    }
}

/* Planes of a multi-planar format; 1 for all others. */
static unsigned int plane_count(CUarray_format format)
{
    switch (format) {
    case CU_AD_FORMAT_NV12:
    case CU_AD_FORMAT_NV16:
    case CU_AD_FORMAT_P010:
    case CU_AD_FORMAT_P016:
    case CU_AD_FORMAT_P210:
    case CU_AD_FORMAT_P216:
    case CU_AD_FORMAT_YUV444_8bit_SemiPlanar:
    case CU_AD_FORMAT_YUV444_16bit_SemiPlanar:
        return 2;
    case CU_AD_FORMAT_Y444_PLANAR8:
    case CU_AD_FORMAT_Y444_PLANAR10:
        return 3;
    default:
        return 1;
    }
}

static bool has_no_storage(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    return descriptor->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING);
}

static uint64_t at_least_one(uint64_t value)
{
    return value ? value : 1;
}

unsigned int gpusim_element_size(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    return descriptor->NumChannels * channel_size(descriptor->Format);
}

static uint64_t full_size(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    uint64_t size = gpusim_element_size(descriptor);

    if (__builtin_mul_overflow(size, at_least_one(descriptor->Width), &size) ||
        __builtin_mul_overflow(size, at_least_one(descriptor->Height), &size) ||
        __builtin_mul_overflow(size, at_least_one(descriptor->Depth), &size))
        return UINT64_MAX;
    return size;
}

uint64_t gpusim_array_size(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    return has_no_storage(descriptor) ? 0 : full_size(descriptor);
}

/* The descriptor of a level: each extent halved, except the number of layers. */
static CUDA_ARRAY3D_DESCRIPTOR level_descriptor(const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                                                unsigned int level)
{
    CUDA_ARRAY3D_DESCRIPTOR result = *descriptor;
    bool depth_is_layers = descriptor->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);

    for (unsigned int i = 0; i < level; i++) {
        if (result.Width > 1)
            result.Width /= 2;
        if (result.Height > 1)
            result.Height /= 2;
        if (result.Depth > 1 && !depth_is_layers)
            result.Depth /= 2;
    }
    return result;
}

static uint64_t full_mipmap_size(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned int levels)
{
    uint64_t size = 0;

    for (unsigned int level = 0; level < levels; level++) {
        CUDA_ARRAY3D_DESCRIPTOR of_level = level_descriptor(descriptor, level);

        if (__builtin_add_overflow(size, full_size(&of_level), &size))
            return UINT64_MAX;
    }
    return size;
}

uint64_t gpusim_mipmap_size(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned int levels)
{
    return has_no_storage(descriptor) ? 0 : full_mipmap_size(descriptor, levels);
}

CUresult gpusim_check_descriptor(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    const unsigned int known =
        CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |
        CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_DEPTH_TEXTURE | CUDA_ARRAY3D_COLOR_ATTACHMENT |
        CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_VIDEO_ENCODE_DECODE;
    bool layered = descriptor->Flags & CUDA_ARRAY3D_LAYERED;
    bool cubemap = descriptor->Flags & CUDA_ARRAY3D_CUBEMAP;
    unsigned int channels = descriptor->NumChannels;

    if (!channel_size(descriptor->Format) || (descriptor->Flags & ~known) || descriptor->Width == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (channels != 1 && channels != 2 && channels != 4 &&
        !(channels == 3 && descriptor->Format >= CU_AD_FORMAT_BC1_UNORM))
        return CUDA_ERROR_INVALID_VALUE;
    if (layered && descriptor->Depth == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!layered && descriptor->Depth != 0 && descriptor->Height == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (cubemap && (descriptor->Width != descriptor->Height || descriptor->Depth % 6 != 0 ||
                    (!layered && descriptor->Depth != 6)))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static struct gpusim_array *new_array(struct gpusim_context *context,
                                      const CUDA_ARRAY3D_DESCRIPTOR *descriptor, uint64_t storage)
{
    struct gpusim_array *array = gpusim_object_new(sizeof(*array), GPUSIM_TYPE_ARRAY, context);

    if (!array)
        return NULL;
    array->descriptor = *descriptor;
    array->device = context->device;
    array->storage = storage;
    array->pitch = descriptor->Width * gpusim_element_size(descriptor);
    array->slice = array->pitch * at_least_one(descriptor->Height);
    return array;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static CUresult create_array(CUarray *handle, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    struct gpusim_context *context;
    uint64_t storage = 0;

    GPUSIM_TRY(gpusim_allocation_begin());
    GPUSIM_TRY(gpusim_current(&context));
    if (!handle || !descriptor)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_check_descriptor(descriptor));
    GPUSIM_TRY(gpusim_check_unsafe_call());

    uint64_t size = gpusim_array_size(descriptor);
    if (size) {
        storage = gpusim_linear_take(context->device, size);
        if (!storage)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct gpusim_array *array = new_array(context, descriptor, storage);
    if (!array) {
        if (storage)
            gpusim_linear_give(context->device, storage, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    array->storage_size = size;
    gpusim_count_alloc(context->device, GPUSIM_ARRAY, size);
    *handle = GPUSIM_HANDLE(CUarray, array);
    return CUDA_SUCCESS;
}

CUresult cuArray3DCreate_v2(CUarray *handle, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    GPUSIM_ENTER_FAILED();
    return gpusim_allocation_end(create_array(handle, descriptor));
}

CUresult cuArrayCreate_v2(CUarray *handle, const CUDA_ARRAY_DESCRIPTOR *descriptor)
{
    GPUSIM_ENTER_FAILED();
    if (!descriptor)
        return gpusim_allocation_end(CUDA_ERROR_INVALID_VALUE);
    const CUDA_ARRAY3D_DESCRIPTOR full = {
        .Width = descriptor->Width,
        .Height = descriptor->Height,
        .Format = descriptor->Format,
        .NumChannels = descriptor->NumChannels,
    };
    return gpusim_allocation_end(create_array(handle, &full));
}

CUresult cuArray3DCreate(CUarray *handle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor)
{
    GPUSIM_ENTER_FAILED();
    if (!descriptor)
        return gpusim_allocation_end(CUDA_ERROR_INVALID_VALUE);
    const CUDA_ARRAY3D_DESCRIPTOR full = {
        .Width = descriptor->Width,
        .Height = descriptor->Height,
        .Depth = descriptor->Depth,
        .Format = descriptor->Format,
        .NumChannels = descriptor->NumChannels,
        .Flags = descriptor->Flags,
    };
    return gpusim_allocation_end(create_array(handle, &full));
}

CUresult cuArrayCreate(CUarray *handle, const CUDA_ARRAY_DESCRIPTOR_v1 *descriptor)
{
    if (!descriptor)
        return cuArray3DCreate(handle, NULL);
    const CUDA_ARRAY3D_DESCRIPTOR_v1 full = {
        .Width = descriptor->Width,
        .Height = descriptor->Height,
        .Format = descriptor->Format,
        .NumChannels = descriptor->NumChannels,
    };
    return cuArray3DCreate(handle, &full);
}

static void delete_array(struct gpusim_array *array)
{
    gpusim_tiles_drop(&array->tiles);
    for (size_t i = 0; i < sizeof(array->planes) / sizeof(array->planes[0]); i++) {
        if (array->planes[i])
            gpusim_object_delete(array->planes[i]);
    }
    gpusim_object_delete(array);
}

static void free_array(struct gpusim_array *array, bool implicit)
{
    gpusim_count_free(array->device, GPUSIM_ARRAY, array->storage_size, implicit);
    if (array->storage)
        gpusim_linear_give(array->device, array->storage, array->storage_size);
    delete_array(array);
}

CUresult cuArrayDestroy(CUarray handle)
{
    GPUSIM_ENTER();
    struct gpusim_array *array = GPUSIM_FIND(handle, GPUSIM_TYPE_ARRAY);

    if (!array || array->is_part)
        return CUDA_ERROR_INVALID_HANDLE;
    GPUSIM_TRY(gpusim_check_unsafe_call());
    GPUSIM_TRY(gpusim_free_begin());
    free_array(array, false);
    return CUDA_SUCCESS;
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *descriptor, CUarray handle)
{
    GPUSIM_ENTER();
    struct gpusim_array *array = GPUSIM_FIND(handle, GPUSIM_TYPE_ARRAY);

    if (!descriptor)
        return CUDA_ERROR_INVALID_VALUE;
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    *descriptor = array->descriptor;
    return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *descriptor, CUarray handle)
{
    CUDA_ARRAY3D_DESCRIPTOR full;

    if (!descriptor)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(cuArray3DGetDescriptor_v2(&full, handle));
    *descriptor = (CUDA_ARRAY_DESCRIPTOR){full.Width, full.Height, full.Format, full.NumChannels};
    return CUDA_SUCCESS;
}

CUresult cuArrayGetPlane(CUarray *plane_handle, CUarray handle, unsigned int index)
{
    GPUSIM_ENTER();
    struct gpusim_array *array = GPUSIM_FIND(handle, GPUSIM_TYPE_ARRAY);

    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!plane_handle || index >= plane_count(array->descriptor.Format) ||
        plane_count(array->descriptor.Format) == 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (!array->planes[index]) {
        CUDA_ARRAY3D_DESCRIPTOR descriptor = array->descriptor;
        uint64_t before = index ? array->slice / plane_count(array->descriptor.Format) * index : 0;

        descriptor.Format = channel_size(descriptor.Format) == 1 ? CU_AD_FORMAT_UNSIGNED_INT8
                                                                 : CU_AD_FORMAT_UNSIGNED_INT16;
        descriptor.NumChannels = 1;
        if (index &&
            plane_count(array->descriptor.Format) == 2) { /* chroma: half width and height */
            descriptor.NumChannels = 2;
            descriptor.Width = at_least_one(descriptor.Width / 2);
            descriptor.Height = at_least_one(descriptor.Height / 2);
        }
        array->planes[index] = new_array(array->base.context, &descriptor,
                                         array->storage ? array->storage + before : 0);
        if (!array->planes[index])
            return CUDA_ERROR_OUT_OF_MEMORY;
        array->planes[index]->is_part = true;
    }
    *plane_handle = GPUSIM_HANDLE(CUarray, array->planes[index]);
    return CUDA_SUCCESS;
}

/* ---- mipmapped arrays ------------------------------------------------------------------------ */

static void delete_mipmap(struct gpusim_mipmap *mipmap)
{
    gpusim_tiles_drop(&mipmap->tiles);
    for (unsigned int i = 0; i < mipmap->level_count; i++) {
        if (mipmap->levels[i])
            delete_array(mipmap->levels[i]);
    }
    free(mipmap->levels);
    gpusim_object_delete(mipmap);
}

struct gpusim_mipmap *gpusim_mipmap_new(struct gpusim_context *context,
                                        const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                                        unsigned int levels, uint64_t storage)
{
    struct gpusim_mipmap *mipmap = gpusim_object_new(sizeof(*mipmap), GPUSIM_TYPE_MIPMAP, context);

    if (!mipmap)
        return NULL;
    mipmap->descriptor = *descriptor;
    mipmap->device = context->device;
    mipmap->storage = storage;
    mipmap->levels = calloc(levels, sizeof(struct gpusim_array *));
    mipmap->level_count = mipmap->levels ? levels : 0;
    for (unsigned int i = 0; i < mipmap->level_count; i++) {
        CUDA_ARRAY3D_DESCRIPTOR of_level = level_descriptor(descriptor, i);

        mipmap->levels[i] = new_array(context, &of_level, storage);
        if (!mipmap->levels[i])
            break;
        mipmap->levels[i]->is_part = true;
        if (storage)
            storage += full_size(&of_level);
    }
    if (!mipmap->level_count || !mipmap->levels[mipmap->level_count - 1]) {
        delete_mipmap(mipmap);
        return NULL;
    }
    return mipmap;
}

static CUresult create_mipmap(CUmipmappedArray *handle, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                              unsigned int levels)
{
    struct gpusim_context *context;
    uint64_t storage = 0;

    GPUSIM_TRY(gpusim_allocation_begin());
    GPUSIM_TRY(gpusim_current(&context));
    if (!handle || !descriptor || levels == 0 || levels > 32)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_check_descriptor(descriptor));
    GPUSIM_TRY(gpusim_check_unsafe_call());

    uint64_t size = gpusim_mipmap_size(descriptor, levels);
    if (size) {
        storage = gpusim_linear_take(context->device, size);
        if (!storage)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct gpusim_mipmap *mipmap = gpusim_mipmap_new(context, descriptor, levels, storage);
    if (!mipmap) {
        if (storage)
            gpusim_linear_give(context->device, storage, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    mipmap->storage_size = mipmap->counted = size;
    gpusim_count_alloc(context->device, GPUSIM_ARRAY, size);
    *handle = GPUSIM_HANDLE(CUmipmappedArray, mipmap);
    return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *handle, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                                unsigned int levels)
{
    GPUSIM_ENTER_FAILED();
    return gpusim_allocation_end(create_mipmap(handle, descriptor, levels));
}

static void free_mipmap(struct gpusim_mipmap *mipmap, bool implicit)
{
    gpusim_count_free(mipmap->device, mipmap->external ? GPUSIM_EXTERNAL : GPUSIM_ARRAY,
                      mipmap->counted, implicit);
    if (mipmap->external)
        gpusim_unmap_external(mipmap->mapped_at, mipmap->mapped_size);
    else if (mipmap->storage)
        gpusim_linear_give(mipmap->device, mipmap->storage, mipmap->storage_size);
    delete_mipmap(mipmap);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray handle)
{
    GPUSIM_ENTER();
    struct gpusim_mipmap *mipmap = GPUSIM_FIND(handle, GPUSIM_TYPE_MIPMAP);

    if (!mipmap)
        return CUDA_ERROR_INVALID_HANDLE;
    GPUSIM_TRY(gpusim_check_unsafe_call());
    GPUSIM_TRY(gpusim_free_begin());
    free_mipmap(mipmap, false);
    return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetLevel(CUarray *level_handle, CUmipmappedArray handle,
                                  unsigned int level)
{
    GPUSIM_ENTER();
    struct gpusim_mipmap *mipmap = GPUSIM_FIND(handle, GPUSIM_TYPE_MIPMAP);

    if (!mipmap)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!level_handle || level >= mipmap->level_count)
        return CUDA_ERROR_INVALID_VALUE;
    *level_handle = GPUSIM_HANDLE(CUarray, mipmap->levels[level]);
    return CUDA_SUCCESS;
}

static void end_mipmap(void *mipmap)
{
    free_mipmap(mipmap, true);
}

/* A part ends with its array; the parts of mipmapped arrays have ended already. */
static void end_array(void *object)
{
    struct gpusim_array *array = object;

    if (array->is_part)
        array->base.context = NULL;
    else
        free_array(array, true);
}

void gpusim_arrays_of_context_free(struct gpusim_context *context)
{
    gpusim_objects_end(context, GPUSIM_TYPE_MIPMAP, end_mipmap);
    gpusim_objects_end(context, GPUSIM_TYPE_ARRAY, end_array);
}

/* ---- requirements ---------------------------------------------------------------------------- */

static CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *answer, bool deferred, uint64_t size,
                             CUdevice device)
{
    if (!answer || !deferred)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpusim_device_of(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *answer = (CUDA_ARRAY_MEMORY_REQUIREMENTS){
        .size = gpusim_align_up(size, GPUSIM_GRANULARITY),
        .alignment = GPUSIM_GRANULARITY,
    };
    return CUDA_SUCCESS;
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *answer, CUarray handle,
                                      CUdevice device)
{
    GPUSIM_ENTER();
    struct gpusim_array *array = GPUSIM_FIND(handle, GPUSIM_TYPE_ARRAY);

    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    return requirements(answer, array->descriptor.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING,
                        full_size(&array->descriptor), device);
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *answer,
                                               CUmipmappedArray handle, CUdevice device)
{
    GPUSIM_ENTER();
    struct gpusim_mipmap *mipmap = GPUSIM_FIND(handle, GPUSIM_TYPE_MIPMAP);

    if (!mipmap)
        return CUDA_ERROR_INVALID_HANDLE;
    return requirements(answer, mipmap->descriptor.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING,
                        full_mipmap_size(&mipmap->descriptor, mipmap->level_count), device);
}
