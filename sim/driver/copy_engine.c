/*
 * The one copy routine: every copy of the API is a box of bytes between two places, each of them
 * memory with a pitch or an array. Checks that both places hold the whole box, then really copies.
 */
#include "array.h"
#include "contents.h"
#include "memory.h"
#include "stream.h"

#include <string.h>

/* Where the box starts on one side, and its strides. */
struct side {
    uint64_t address, pitch, slice;
    bool on_device; /* linear memory of a device */
};

struct place {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    size_t x, y, z, pitch, height;
};

static CUresult resolve_array(const struct place *place, const CUDA_MEMCPY3D_PEER *box,
                              struct side *side)
{
    struct gpusim_array *array = GPUSIM_FIND(place->array, GPUSIM_TYPE_ARRAY);

    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    size_t width = array->descriptor.Width * gpusim_element_size(&array->descriptor);
    size_t height = array->descriptor.Height ? array->descriptor.Height : 1;
    size_t depth = array->descriptor.Depth ? array->descriptor.Depth : 1;
    if (!array->storage || place->x > width || box->WidthInBytes > width - place->x ||
        place->y > height || box->Height > height - place->y || place->z > depth ||
        box->Depth > depth - place->z)
        return CUDA_ERROR_INVALID_VALUE;
    *side = (struct side){
        .address = array->storage + place->z * array->slice + place->y * array->pitch + place->x,
        .pitch = array->pitch,
        .slice = array->slice,
    };
    return CUDA_SUCCESS;
}

static CUresult resolve_memory(const struct place *place, const CUDA_MEMCPY3D_PEER *box,
                               struct side *side)
{
    uint64_t base =
        place->type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)place->host : place->device;
    uint64_t pitch = place->pitch ? place->pitch : place->x + box->WidthInBytes;
    uint64_t height = place->height ? place->height : place->y + box->Height;
    uint64_t rows, span;

    if (box->Height > 1 && pitch < place->x + box->WidthInBytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (box->Depth > 1 && height < place->y + box->Height)
        return CUDA_ERROR_INVALID_VALUE;
    if (__builtin_mul_overflow(pitch, height, &side->slice) ||
        __builtin_mul_overflow(side->slice, box->Depth - 1, &span) ||
        __builtin_mul_overflow(pitch, box->Height - 1, &rows) ||
        __builtin_add_overflow(span, rows, &span) ||
        __builtin_add_overflow(span, box->WidthInBytes, &span))
        return CUDA_ERROR_INVALID_VALUE;
    side->pitch = pitch;
    side->address = base + place->z * side->slice + place->y * pitch + place->x;
    side->on_device = place->type != CU_MEMORYTYPE_HOST && gpusim_is_on_device(side->address);
    return gpusim_check_access(side->address, span, place->type != CU_MEMORYTYPE_DEVICE);
}

static CUresult resolve(const struct place *place, const CUDA_MEMCPY3D_PEER *box, struct side *side)
{
    switch (place->type) {
    case CU_MEMORYTYPE_ARRAY:
        return resolve_array(place, box, side);
    case CU_MEMORYTYPE_HOST:
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
        return resolve_memory(place, box, side);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* memmove: a copy inside one allocation may overlap itself. */
static void move_bytes(const struct side *to, uint64_t target, const struct side *from,
                       uint64_t source, uint64_t bytes)
{
    if (gpusim_contents_copy(target, to->on_device, source, from->on_device, bytes))
        memmove((void *)(uintptr_t)target, (const void *)(uintptr_t)source, bytes);
}

CUresult gpusim_copy(const CUDA_MEMCPY3D_PEER *box)
{
    const struct place from = {box->srcMemoryType, box->srcHost,     box->srcDevice,
                               box->srcArray,      box->srcXInBytes, box->srcY,
                               box->srcZ,          box->srcPitch,    box->srcHeight};
    const struct place to = {box->dstMemoryType, box->dstHost,     box->dstDevice,
                             box->dstArray,      box->dstXInBytes, box->dstY,
                             box->dstZ,          box->dstPitch,    box->dstHeight};
    struct side source, target;

    if (box->WidthInBytes == 0 || box->Height == 0 || box->Depth == 0)
        return CUDA_SUCCESS;
    GPUSIM_TRY(resolve(&from, box, &source));
    GPUSIM_TRY(resolve(&to, box, &target));
    gpusim_device_time += gpusim_settings.kernel_ns;
    for (size_t z = 0; z < box->Depth; z++) {
        uint64_t source_row = source.address + z * source.slice;
        uint64_t target_row = target.address + z * target.slice;

        if (source.pitch == box->WidthInBytes && target.pitch == box->WidthInBytes) {
            move_bytes(&target, target_row, &source, source_row, box->WidthInBytes * box->Height);
            continue;
        }
        for (size_t y = 0; y < box->Height; y++)
            move_bytes(&target, target_row + y * target.pitch, &source,
                       source_row + y * source.pitch, box->WidthInBytes);
    }
    return CUDA_SUCCESS;
}
