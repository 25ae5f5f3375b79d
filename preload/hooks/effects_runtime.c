/*
 * See effects.h: what is recorded at the runtime layer when no driver hook below saw the call. On
 * the roads we know of the driver hooks see all; this is for a runtime that reaches its driver in
 * another way.
 */
#include "hooks/effects.h"

void gm_runtime_life(struct gm_call *call, int result, enum gm_kind kind, uint64_t address,
                     uint64_t size, uint8_t flags)
{
    /* Another failure without a driver call is the runtime's own refusal: docs/accounting.md does
     * not count it. */
    if ((result == 0 || result == CUDA_ERROR_OUT_OF_MEMORY) && !gm_call_seen_below(call))
        gm_effect_alloc(call, result, kind, address, size, flags | GM_FLAG_RUNTIME);
}

/* After the call, not before it: only then is it known that nobody else recorded it. */
void gm_runtime_end(struct gm_call *call, int result, enum gm_kind kind, uint64_t address)
{
    struct gm_record record = {.type = GM_EVENT_FREE,
                               .kind = (uint8_t)kind,
                               .address = address,
                               .flags = GM_FLAG_RUNTIME,
                               .device = -1};
    if (result == 0 && address && !gm_call_seen_below(call))
        gm_call_record(call, &record, NULL);
}

void gm_runtime_move(struct gm_call *call, int result, enum gm_copy direction, uint64_t to,
                     uint64_t from, uint64_t size, uint8_t flags)
{
    if (!gm_call_seen_below(call))
        gm_effect_copy(call, result, direction, to, from, size, flags | GM_FLAG_RUNTIME);
}

void gm_runtime_fill(struct gm_call *call, int result, uint64_t address, uint64_t size,
                     uint8_t flags)
{
    if (!gm_call_seen_below(call))
        gm_effect_set(call, result, address, size, flags | GM_FLAG_RUNTIME);
}

void gm_runtime_pitched_3d(struct gm_call *call, int result, const struct cudaPitchedPtr *pitched,
                           struct cudaExtent extent)
{
    const uint64_t pitch = result == 0 && pitched ? pitched->pitch : extent.width;
    gm_runtime_life(call, result, GM_KIND_DEVICE,
                    result == 0 && pitched ? GM_WORD(pitched->ptr) : 0,
                    pitch * extent.height * extent.depth, 0);
}

void gm_runtime_array(struct gm_call *call, int result, uint64_t handle,
                      const struct cudaChannelFormatDesc *format, struct cudaExtent extent,
                      unsigned flags, unsigned levels)
{
    const bool is_told = result == 0 || result == CUDA_ERROR_OUT_OF_MEMORY;
    if (!is_told || !format || gm_call_seen_below(call))
        return;
    const int bits = format->x + format->y + format->z + format->w;
    const struct gm_array_shape shape = {.extent = {extent.width, extent.height, extent.depth},
                                         .element = (uint64_t)(bits > 0 ? bits : 0) / 8,
                                         .flags = flags,
                                         .levels = levels ? levels : 1};
    gm_effect_array(call, result, handle, &shape,
                    GM_FLAG_RUNTIME | (levels ? GM_FLAG_MIPMAPPED : 0));
}

/* Extents count elements where an array takes part, so the size is a lower bound there. */
static void copy_volume(struct gm_call *call, int result, enum gm_copy direction,
                        const void *const to[2], const void *const from[2],
                        struct cudaExtent extent, uint8_t flags)
{
    gm_runtime_move(call, result, direction, GM_WORD(to[0] ? to[0] : to[1]),
                    GM_WORD(from[0] ? from[0] : from[1]),
                    (uint64_t)extent.width * extent.height * extent.depth, flags);
}

void gm_runtime_copy_3d(struct gm_call *call, int result, const struct cudaMemcpy3DParms *copy,
                        uint8_t flags)
{
    if (result == 0 && copy)
        copy_volume(call, result, gm_runtime_direction((int)copy->kind),
                    (const void *[]){copy->dstArray, copy->dstPtr.ptr},
                    (const void *[]){copy->srcArray, copy->srcPtr.ptr}, copy->extent, flags);
}

void gm_runtime_copy_3d_peer(struct gm_call *call, int result,
                             const struct cudaMemcpy3DPeerParms *copy, uint8_t flags)
{
    if (result == 0 && copy)
        copy_volume(call, result, GM_COPY_PEER, (const void *[]){copy->dstArray, copy->dstPtr.ptr},
                    (const void *[]){copy->srcArray, copy->srcPtr.ptr}, copy->extent, flags);
}

void gm_runtime_device_reset(struct gm_call *call, int result)
{
    if (result != 0 || gm_call_seen_below(call))
        return;
    struct gm_record record = {
        .type = GM_EVENT_CONTEXT_END, .device = -1, .flags = GM_FLAG_PRIMARY | GM_FLAG_RUNTIME};
    gm_call_record(call, &record, NULL);
}

/* cudaMemcpyKind: host to host 0, host to device 1, device to host 2, device to device 3,
 * default 4. */
enum gm_copy gm_runtime_direction(int kind)
{
    static const uint8_t directions[] = {GM_COPY_HOST_TO_HOST, GM_COPY_HOST_TO_DEVICE,
                                         GM_COPY_DEVICE_TO_HOST, GM_COPY_DEVICE_TO_DEVICE,
                                         GM_COPY_UNKNOWN};
    return kind >= 0 && kind < 5 ? (enum gm_copy)directions[kind] : GM_COPY_UNKNOWN;
}
