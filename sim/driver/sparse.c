/*
 * Memory of sparse arrays: cuMemMapArrayAsync maps tiles onto physical memory, which lives as long
 * as a tile shows it. Tiles are of 64 KiB; levels that are smaller than one are the tail. Contents
 * are not followed: copies of sparse arrays move nothing.
 *
 * Of an array with deferred mapping "the CUarrayMapInfo::subresourceType and the contents of
 * CUarrayMapInfo::subresource will be ignored": it has one tile.
 */
#include "array.h"
#include "stream.h"
#include "vmm.h"

#include <stdlib.h>
#include <string.h>

#define TILE_BYTES 65536u

struct gpusim_tile {
    struct gpusim_tile *next;
    struct gpusim_physical *physical;
    uint64_t where[5]; /* is in the tail, level, layer, then a tile's place: in x, and y with z */
};

static void tile_extent(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned int extent[3])
{
    static const unsigned char flat[5][2] = {{8, 8}, {8, 7}, {7, 7}, {7, 6}, {6, 6}};
    static const unsigned char deep[5][3] = {{6, 5, 5}, {5, 5, 5}, {5, 5, 4}, {5, 4, 4}, {4, 4, 4}};
    const bool is_deep = descriptor->Depth && !(descriptor->Flags & CUDA_ARRAY3D_LAYERED);
    unsigned int power = 0;

    while (power < 4 && 1u << power < gpusim_element_size(descriptor))
        power++;
    extent[0] = 1u << (is_deep ? deep[power][0] : flat[power][0]);
    extent[1] = 1u << (is_deep ? deep[power][1] : flat[power][1]);
    extent[2] = is_deep ? 1u << deep[power][2] : 1;
}

static bool is_aligned(unsigned int offset, unsigned int extent, uint64_t whole, unsigned int tile)
{
    whole = whole ? whole : 1;
    return extent && offset % tile == 0 && offset < whole && extent <= whole - offset &&
           (extent % tile == 0 || offset + extent == whole);
}

static void drop_tile(struct gpusim_tile **link)
{
    struct gpusim_tile *tile = *link;

    *link = tile->next;
    tile->physical->uses--;
    gpusim_physical_drop_if_unused(tile->physical);
    free(tile);
}

void gpusim_tiles_drop(struct gpusim_tile **tiles)
{
    while (*tiles)
        drop_tile(tiles);
}

static CUresult put_tile(struct gpusim_tile **tiles, const uint64_t where[5],
                         struct gpusim_physical *physical)
{
    struct gpusim_tile *tile = physical ? malloc(sizeof(*tile)) : NULL;

    if (physical && !tile)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (physical)
        physical->uses++;
    for (struct gpusim_tile **link = tiles; *link;)
        if (memcmp((*link)->where, where, sizeof((*link)->where)) == 0)
            drop_tile(link);
        else
            link = &(*link)->next;
    if (tile) {
        *tile = (struct gpusim_tile){.next = *tiles, .physical = physical};
        memcpy(tile->where, where, sizeof(tile->where));
        *tiles = tile;
    }
    return CUDA_SUCCESS;
}

static CUresult put_region(struct gpusim_tile **tiles, const CUarrayMapInfo *info,
                           const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                           struct gpusim_physical *physical)
{
    const unsigned int *offset = &info->subresource.sparseLevel.offsetX;
    const unsigned int *size = &info->subresource.sparseLevel.extentWidth;
    const bool is_layered = descriptor->Flags & CUDA_ARRAY3D_LAYERED;
    const uint64_t layers = is_layered ? descriptor->Depth : 1;
    const uint64_t depth = is_layered ? 1 : descriptor->Depth;
    unsigned int extent[3];

    tile_extent(descriptor, extent);
    if (info->subresource.sparseLevel.layer >= layers ||
        !is_aligned(offset[0], size[0], descriptor->Width, extent[0]) ||
        !is_aligned(offset[1], size[1], descriptor->Height, extent[1]) ||
        !is_aligned(offset[2], size[2], depth, extent[2]))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int z = offset[2]; z < offset[2] + size[2]; z += extent[2])
        for (unsigned int y = offset[1]; y < offset[1] + size[1]; y += extent[1])
            for (unsigned int x = offset[0]; x < offset[0] + size[0]; x += extent[0]) {
                const uint64_t where[5] = {0, info->subresource.sparseLevel.level,
                                           info->subresource.sparseLevel.layer, x,
                                           (uint64_t)z << 32 | y};
                GPUSIM_TRY(put_tile(tiles, where, physical));
            }
    return CUDA_SUCCESS;
}

/* The tiles of the array that is meant, and the shape of the level. */
static CUresult find_tiles(const CUarrayMapInfo *info, struct gpusim_tile ***tiles,
                           CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    if (info->resourceType == CU_RESOURCE_TYPE_ARRAY) {
        struct gpusim_array *array = GPUSIM_FIND(info->resource.array, GPUSIM_TYPE_ARRAY);

        if (!array)
            return CUDA_ERROR_INVALID_HANDLE;
        *descriptor = array->descriptor;
        *tiles = &array->tiles;
        return array->is_part ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    }
    struct gpusim_mipmap *mipmap = GPUSIM_FIND(info->resource.mipmap, GPUSIM_TYPE_MIPMAP);
    const unsigned int level =
        info->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL
            ? info->subresource.sparseLevel.level
            : 0;

    if (!mipmap)
        return CUDA_ERROR_INVALID_HANDLE;
    *tiles = &mipmap->tiles;
    *descriptor = mipmap->descriptor;
    if (descriptor->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING)
        return CUDA_SUCCESS;
    if (level >= mipmap->level_count)
        return CUDA_ERROR_INVALID_VALUE;
    *descriptor = mipmap->levels[level]->descriptor;
    return CUDA_SUCCESS;
}

static CUresult operate(const CUarrayMapInfo *info, const struct gpusim_stream *stream)
{
    const bool is_map = info->memOperationType == CU_MEM_OPERATION_TYPE_MAP;
    struct gpusim_physical *physical = gpusim_physical_of(info->memHandle.memHandle);
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    struct gpusim_tile **tiles;

    if ((!is_map && info->memOperationType != CU_MEM_OPERATION_TYPE_UNMAP) || info->flags ||
        info->deviceBitMask != 1u << stream->base.context->device->ordinal ||
        (is_map ? !physical : info->memHandle.memHandle != 0))
        return CUDA_ERROR_INVALID_VALUE;
    if (is_map && (info->memHandleType != CU_MEM_HANDLE_TYPE_GENERIC ||
                   !(physical->properties.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) ||
                   physical->device != stream->base.context->device || info->offset % TILE_BYTES ||
                   info->offset >= physical->size))
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(find_tiles(info, &tiles, &descriptor));
    if (!is_map)
        physical = NULL;
    if (descriptor.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING)
        return put_tile(tiles, (const uint64_t[5]){0}, physical);
    if (!(descriptor.Flags & CUDA_ARRAY3D_SPARSE))
        return CUDA_ERROR_INVALID_VALUE;
    if (info->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL)
        return put_region(tiles, info, &descriptor, physical);
    const uint64_t offset = info->subresource.miptail.offset, size = info->subresource.miptail.size;
    if (!size || offset % TILE_BYTES || size % TILE_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t at = offset; at < offset + size; at += TILE_BYTES)
        GPUSIM_TRY(put_tile(
            tiles, (const uint64_t[5]){1, 0, info->subresource.miptail.layer, at, 0}, physical));
    return CUDA_SUCCESS;
}

CUresult cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned int count, CUstream handle)
{
    GPUSIM_ENTER();
    struct gpusim_stream *stream;

    GPUSIM_TRY(gpusim_stream_of(handle, &stream));
    if (stream->capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (!list || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_take_begin());
    for (unsigned int i = 0; i < count; i++)
        GPUSIM_TRY(operate(&list[i], stream));
    return CUDA_SUCCESS;
}

CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *properties, CUarray handle)
{
    GPUSIM_ENTER();
    struct gpusim_array *array = GPUSIM_FIND(handle, GPUSIM_TYPE_ARRAY);

    if (!properties || !array || array->is_part || !(array->descriptor.Flags & CUDA_ARRAY3D_SPARSE))
        return CUDA_ERROR_INVALID_VALUE;
    unsigned int extent[3];
    tile_extent(&array->descriptor, extent);
    *properties = (CUDA_ARRAY_SPARSE_PROPERTIES){
        .tileExtent = {.width = extent[0], .height = extent[1], .depth = extent[2]}};
    return CUDA_SUCCESS;
}
