/* See effects.h: physical memory and its mappings. */
#include "base/handles.h"
#include "hooks/effects.h"

void gm_driver_vmm_create(struct gm_call *call, int result, uint64_t handle, uint64_t size,
                          const CUmemAllocationProp *properties)
{
    if (result == 0)
        gm_shareable_handle_new(handle);
    int device = properties ? gm_location_device(&properties->location) : -1;
    bool host = !properties || gm_location_is_host(&properties->location);
    struct gm_record record = {
        .type = result == 0 ? GM_EVENT_VMM_CREATE : GM_EVENT_ALLOC_FAILED,
        .kind = host ? GM_KIND_HOST_VMM : GM_KIND_VMM,
        .address = handle,
        .size = size,
        .extra = result == 0 ? gm_call_slow_ns(call) : (uint32_t)result,
        .device = (int8_t)device,
    };
    gm_call_record(call, &record, NULL);
}

void gm_driver_vmm_import(struct gm_call *call, int result, uint64_t handle, const void *shareable,
                          CUmemAllocationHandleType type)
{
    if (result != 0) {
        gm_effect_alloc(call, result, GM_KIND_EXTERNAL, 0, 0, 0);
        return;
    }
    const uint64_t own = gm_shareable_handle(shareable, type);
    if (own != handle)
        gm_shareable_handle_new(handle);
    gm_effect_life(call, 0, GM_EVENT_VMM_IMPORT, handle, 0, own);
}

void gm_driver_vmm_map(struct gm_call *call, int result, uint64_t address, uint64_t size,
                       uint64_t offset, uint64_t handle)
{
    struct gm_record record = {.type = GM_EVENT_VMM_MAP,
                               .address = address,
                               .size = size,
                               .aux = handle,
                               .extra = gm_call_slow_ns(call),
                               .device = -1};
    struct gm_record detail = {.address = offset};
    if (result == 0)
        gm_call_record(call, &record, &detail);
}

/* ---- sparse arrays: a tile that is mapped keeps its memory ----------------------------------- */

/* Arrays whose mapping was deferred: they have one tile, whatever part of them a call names. */
GM_HANDLES(deferred_arrays, 64);

void gm_array_created(int result, uint64_t array, unsigned flags)
{
    if (result != 0)
        return;
    if (flags & CUDA_ARRAY3D_DEFERRED_MAPPING)
        gm_handles_set(&deferred_arrays, array, 1);
    else if (gm_handles_get(&deferred_arrays, array))
        gm_handles_take(&deferred_arrays, array); /* one that is gone */
}

/* What a map and an unmapping of the same part of the same array have in common. */
static uint64_t tile_of(const CUarrayMapInfo *tile)
{
    const bool is_tail = tile->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
    const unsigned *level = &tile->subresource.sparseLevel.level;
    const uint64_t array = GM_WORD(tile->resource.array);
    uint64_t hash = is_tail;
    if (gm_handles_get(&deferred_arrays, array))
        return GM_TILES_OF(array);
    if (is_tail) {
        hash = hash * 0x100000001b3u ^ tile->subresource.miptail.layer;
        hash = hash * 0x100000001b3u ^ tile->subresource.miptail.offset;
        hash = hash * 0x100000001b3u ^ tile->subresource.miptail.size;
    }
    for (unsigned word = 0; !is_tail && word < 8; word++)
        hash = hash * 0x100000001b3u ^ level[word];
    return GM_TILES_OF(array) | hash * 0x9e3779b97f4a7c15u >> 32;
}

void gm_driver_map_tiles(struct gm_call *call, int result, const CUarrayMapInfo *tiles,
                         unsigned count)
{
    for (unsigned i = 0; result == 0 && tiles && i < count; i++) {
        const uint64_t tile = tile_of(&tiles[i]);
        gm_effect_life(call, 0, GM_EVENT_VMM_UNMAP, tile, 1, 0); /* one may be mapped anew */
        if (tiles[i].memOperationType != CU_MEM_OPERATION_TYPE_MAP)
            continue;
        gm_driver_vmm_map(call, 0, tile, 1, tiles[i].offset, tiles[i].memHandle.memHandle);
    }
}

void gm_deferred_arrays_forget(void)
{
    gm_handles_clear(&deferred_arrays);
}

/* ---- multicast ------------------------------------------------------------------------------- */

/* The place is told too: it alone tells apart what is bound when one of several is unbound. */
void gm_driver_multicast_bind(struct gm_call *call, int result, uint64_t handle, int device,
                              uint64_t offset, uint64_t size, uint64_t memory)
{
    struct gm_record record = {.type = GM_EVENT_MULTICAST_BIND,
                               .address = handle,
                               .size = size,
                               .aux = memory,
                               .device = (int8_t)device};
    struct gm_record detail = {.address = offset};
    if (result == 0)
        gm_call_record(call, &record, &detail);
}
