/* See effects.h: allocations, frees, arrays, copies and sets. */
#include "hooks/effects.h"
#include "hooks/driver_kind.h"
#include "sources/nvml.h"
#include <errno.h>
#include <stdatomic.h>

/* The error that was told: whoever polls a failed device gets it at each call. */
static _Atomic uint32_t told_fatal;

static bool is_refusal_told(int result)
{
    const uint32_t status = (uint32_t)result;
    return result == CUDA_ERROR_OUT_OF_MEMORY ||
           (gm_status_is_fatal(status) &&
            atomic_exchange_explicit(&told_fatal, status, memory_order_relaxed) != status);
}

void gm_effect_refused(struct gm_call *call, int result, enum gm_purpose purpose, int device,
                       uint8_t flags)
{
    if (!gm_call_active(call) || !is_refusal_told(result))
        return;
    gm_call_commit(
        call->thread, call->frame,
        gm_what(GM_EVENT_ALLOC_FAILED, GM_KIND_NONE, (int8_t)device, flags, (uint32_t)result), 0, 0,
        purpose);
    const int error = errno;
    gm_driver_kind_note(); /* where there is no context, none has noted it */
    errno = error;
    if (purpose == GM_PURPOSE_CONTEXT)
        gm_nvml_context(device); /* who else holds the device */
}

__attribute__((cold, noinline)) void
gm_refused_alone(uint16_t api, int result, enum gm_purpose purpose, void *frame, uint8_t flags)
{
    struct gm_call call;
    if (result != CUDA_ERROR_OUT_OF_MEMORY && !gm_status_is_fatal((uint32_t)result))
        return;
    gm_call_begin(&call, api, frame);
    gm_effect_refused(&call, result, purpose, -1, flags);
    gm_call_end(&call);
}

void gm_effect_end(struct gm_call *call, struct gm_record *begun, enum gm_event type,
                   uint64_t address, uint64_t size, uint64_t aux, int device)
{
    if (!gm_call_active(call))
        return;
    *begun = (struct gm_record){.type = (uint8_t)type,
                                .address = address,
                                .size = size,
                                .aux = aux,
                                .device = (int8_t)device};
    gm_call_record(call, begun, NULL);
}

void gm_effect_life(struct gm_call *call, int result, enum gm_event type, uint64_t address,
                    uint64_t size, uint64_t aux)
{
    struct gm_record record = {
        .type = (uint8_t)type, .address = address, .size = size, .aux = aux, .device = -1};
    if (result != 0)
        return;
    gm_call_record(call, &record, NULL);
    if (type == GM_EVENT_MODULE_LOAD)
        gm_nvml_request();
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* Bytes per channel of a CUarray_format. Packed, planar and compressed formats of about 8 bits
 * count one byte: the whole size is an estimate. */
static unsigned channel_bytes(int format)
{
    static const uint8_t two[] = {
        0x02, 0x09, 0x10,                               /* 16 bits: unsigned, signed, half */
        0xc3, 0xc4, 0xc5, 0xc9, 0xca, 0xcb,             /* normalized 16 bits */
        0x9f, 0xa1, 0xa3, 0xa4, 0xa6, 0xa7, 0xb1, 0xb3, /* video of more than 8 bits */
        0xb5,
    };
    if (format == 0x03 || format == 0x0a || format == 0x20) /* 32 bits: unsigned, signed, float */
        return 4;
    for (size_t i = 0; i < sizeof(two); i++)
        if (two[i] == format)
            return 2;
    return 1;
}

uint64_t gm_array_element(int format, unsigned channels)
{
    return (uint64_t)channel_bytes(format) * channels;
}

static uint64_t at_least_one(uint64_t value)
{
    return value ? value : 1;
}

static uint64_t array_size(const struct gm_array_shape *shape)
{
    uint64_t size = 0;
    if (shape->flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return 0; /* backed by VMM memory, counted there */
    const bool layered = shape->flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    for (unsigned level = 0; level < shape->levels && level < 32; level++)
        size += at_least_one(shape->extent[0] >> level) * at_least_one(shape->extent[1] >> level) *
                at_least_one(layered ? shape->extent[2] : shape->extent[2] >> level) *
                shape->element;
    return size;
}

void gm_effect_array(struct gm_call *call, int result, uint64_t handle,
                     const struct gm_array_shape *shape, uint8_t record_flags)
{
    gm_effect_alloc(call, result, GM_KIND_ARRAY, handle, array_size(shape),
                    (uint8_t)(record_flags | GM_FLAG_ESTIMATED));
}

/* Memory of another owner, whose size the call tells by the shape. */
void gm_driver_external_mipmap(struct gm_call *call, int result, uint64_t handle,
                               const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *description)
{
    struct gm_array_shape shape = {.levels = 0};
    if (description) {
        const CUDA_ARRAY3D_DESCRIPTOR *array = &description->arrayDesc;
        shape = (struct gm_array_shape){
            .extent = {array->Width, array->Height, array->Depth},
            .element = gm_array_element(array->Format, array->NumChannels),
            .flags = array->Flags,
            .levels = description->numLevels,
        };
    }
    gm_effect_alloc(call, result, GM_KIND_EXTERNAL, handle, array_size(&shape),
                    GM_FLAG_ESTIMATED | GM_FLAG_MIPMAPPED);
}

/* ---- copies and sets ------------------------------------------------------------------------- */

void gm_effect_copy(struct gm_call *call, int result, enum gm_copy direction, uint64_t to,
                    uint64_t from, uint64_t size, uint8_t flags)
{
    struct gm_record record = {
        .type = GM_EVENT_COPY,
        .kind = (uint8_t)direction,
        .address = to,
        .aux = from,
        .size = size,
        .extra = gm_call_elapsed_ns(call),
        .flags = flags,
        .device = -1,
    };
    if (result != 0)
        return;
    if (gm_driver_read_unknown())
        record.flags |= GM_FLAG_UNKNOWN_VALUE;
    gm_call_record(call, &record, NULL);
}

void gm_effect_set(struct gm_call *call, int result, uint64_t address, uint64_t size, uint8_t flags)
{
    struct gm_record record = {
        .type = GM_EVENT_SET,
        .address = address,
        .size = size,
        .extra = gm_call_elapsed_ns(call),
        .flags = flags,
        .device = -1,
    };
    if (result == 0)
        gm_call_record(call, &record, NULL);
}

enum gm_copy gm_copy_direction(int to, int from)
{
    if (to == CU_MEMORYTYPE_UNIFIED || from == CU_MEMORYTYPE_UNIFIED)
        return GM_COPY_UNKNOWN;
    if (from == CU_MEMORYTYPE_HOST)
        return to == CU_MEMORYTYPE_HOST ? GM_COPY_HOST_TO_HOST : GM_COPY_HOST_TO_DEVICE;
    return to == CU_MEMORYTYPE_HOST ? GM_COPY_DEVICE_TO_HOST : GM_COPY_DEVICE_TO_DEVICE;
}

static uint64_t sum_of_sizes(const size_t *sizes, size_t count)
{
    uint64_t total = 0;
    for (size_t i = 0; sizes && i < count; i++)
        total += sizes[i];
    return total;
}

void gm_driver_copy_batch(struct gm_call *call, int result, const CUdeviceptr *to,
                          const CUdeviceptr *from, const size_t *sizes, size_t count, uint8_t flags)
{
    if (result == 0 && to && from && count)
        gm_effect_copy(call, result, GM_COPY_UNKNOWN, to[0], from[0], sum_of_sizes(sizes, count),
                       flags);
}

/* Extents count elements where an array takes part, so the size is a lower bound there. */
void gm_driver_copy_3d_batch(struct gm_call *call, int result,
                             const CUDA_MEMCPY3D_BATCH_OP *operations, size_t count, uint8_t flags)
{
    uint64_t size = 0;
    if (result != 0 || !operations || !count)
        return;
    for (size_t i = 0; i < count; i++)
        size += (uint64_t)operations[i].width * operations[i].height * operations[i].depth;
    gm_effect_copy(call, result, GM_COPY_UNKNOWN, operations[0].dst.pointer,
                   operations[0].src.pointer, size, flags);
}

/* One record for the batch, as above. An endpoint has no address of ours: it is another's memory. */
void gm_driver_copy_fabric_batch(struct gm_call *call, int result,
                                 const CUDA_FABRIC_COPY_BATCH_OP *operations, size_t count,
                                 uint8_t flags)
{
    uint64_t size = 0;
    if (result != 0 || !operations || !count)
        return;
    for (size_t i = 0; i < count; i++)
        size += operations[i].size;
    const CUfabricCpyOperand *to = &operations[0].dst, *from = &operations[0].src;
    bool of_ours = to->type == CU_FABRIC_COPY_OPERAND_TYPE_POINTER &&
                   from->type == CU_FABRIC_COPY_OPERAND_TYPE_POINTER;
    gm_effect_copy(call, result, of_ours ? GM_COPY_UNKNOWN : GM_COPY_PEER,
                   to->type == CU_FABRIC_COPY_OPERAND_TYPE_POINTER ? to->op.ptr.ptr : 0,
                   from->type == CU_FABRIC_COPY_OPERAND_TYPE_POINTER ? from->op.ptr.ptr : 0, size,
                   flags);
}

/* ---- what moves nothing ---------------------------------------------------------------------- */

void gm_driver_hint(struct gm_call *call, int result, CUdeviceptr address, uint64_t size,
                    uint32_t advice)
{
    struct gm_record record = {
        .type = GM_EVENT_HINT, .address = address, .size = size, .extra = advice, .device = -1};
    if (result == 0)
        gm_call_record(call, &record, NULL);
}

void gm_driver_hint_batch(struct gm_call *call, int result, const CUdeviceptr *addresses,
                          const size_t *sizes, size_t count)
{
    if (result == 0 && addresses && count)
        gm_driver_hint(call, result, addresses[0], sum_of_sizes(sizes, count), 0);
}

/* Memory that another process may hold from now on. */
void gm_effect_export(struct gm_call *call, int result, uint64_t address, uint64_t size)
{
    gm_effect_life(call, result, GM_EVENT_HOST_CALL, address, size, 0);
}

void gm_driver_host_call(struct gm_call *call, int result, uint64_t value, int which)
{
    struct gm_record record = {
        .type = GM_EVENT_HOST_CALL, .aux = value, .extra = (uint32_t)which, .device = -1};
    if (result == 0)
        gm_call_record(call, &record, NULL);
}
