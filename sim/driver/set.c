/*
 * cuMemset in every width and form, and single words written or awaited by a stream.
 */
#include "contents.h"
#include "memory.h"
#include "stream.h"

#include <stdlib.h>
#include <string.h>

static CUresult check_set(const CUDA_MEMSET_NODE_PARAMS_v2 *set)
{
    uint64_t row, span;

    if (set->elementSize != 1 && set->elementSize != 2 && set->elementSize != 4)
        return CUDA_ERROR_INVALID_VALUE;
    if (set->width == 0 || set->height == 0)
        return CUDA_SUCCESS;
    if (__builtin_mul_overflow(set->width, set->elementSize, &row) ||
        (set->height > 1 && set->pitch < row) ||
        __builtin_mul_overflow(set->pitch, set->height - 1, &span) ||
        __builtin_add_overflow(span, row, &span))
        return CUDA_ERROR_INVALID_VALUE;
    if (set->dst % set->elementSize || (set->height > 1 && set->pitch % set->elementSize))
        return CUDA_ERROR_INVALID_VALUE;
    return gpusim_check_access(set->dst, span, false);
}

static void fill_row(uint64_t address, unsigned int value, unsigned int element, size_t count)
{
    if (element == 1) {
        memset((void *)(uintptr_t)address, (int)(value & 0xff), count);
    } else if (element == 2) {
        uint16_t *words = (uint16_t *)(uintptr_t)address;

        for (size_t i = 0; i < count; i++)
            words[i] = (uint16_t)value;
    } else {
        uint32_t *words = (uint32_t *)(uintptr_t)address;

        for (size_t i = 0; i < count; i++)
            words[i] = value;
    }
}

CUresult gpusim_set(const CUDA_MEMSET_NODE_PARAMS_v2 *set)
{
    GPUSIM_TRY(check_set(set));
    gpusim_device_time += gpusim_settings.kernel_ns;
    for (size_t y = 0; set->width > 0 && y < set->height; y++)
        if (!gpusim_is_on_device(set->dst) ||
            gpusim_contents_set(set->dst + y * set->pitch, set->width * set->elementSize))
            fill_row(set->dst + y * set->pitch, set->value, set->elementSize, set->width);
    return CUDA_SUCCESS;
}

static CUresult set_now(CUdeviceptr to, size_t pitch, unsigned int value, unsigned int element,
                        size_t width, size_t height)
{
    const CUDA_MEMSET_NODE_PARAMS_v2 set = {to, pitch, value, element, width, height, NULL};

    GPUSIM_ENTER_CONTEXT(context);
    (void)context;
    GPUSIM_TRY(gpusim_check_unsafe_call());
    return gpusim_set(&set);
}

static CUresult set_in_stream(CUdeviceptr to, size_t pitch, unsigned int value,
                              unsigned int element, size_t width, size_t height, CUstream stream)
{
    const struct gpusim_operation operation = {
        .type = CU_GRAPH_NODE_TYPE_MEMSET,
        .set = {to, pitch, value, element, width, height, NULL},
    };

    GPUSIM_ENTER();
    return gpusim_submit(stream, &operation);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
    return set_now(to, 0, value, 1, count, 1);
}

CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count)
{
    return set_now(to, 0, value, 2, count, 1);
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count)
{
    return set_now(to, 0, value, 4, count, 1);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                         size_t height)
{
    return set_now(to, pitch, value, 1, width, height);
}

CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                          size_t height)
{
    return set_now(to, pitch, value, 2, width, height);
}

CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                          size_t height)
{
    return set_now(to, pitch, value, 4, width, height);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    return set_in_stream(to, 0, value, 1, count, 1, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream)
{
    return set_in_stream(to, 0, value, 2, count, 1, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream)
{
    return set_in_stream(to, 0, value, 4, count, 1, stream);
}

CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream)
{
    return set_in_stream(to, pitch, value, 1, width, height, stream);
}

CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                            size_t height, CUstream stream)
{
    return set_in_stream(to, pitch, value, 2, width, height, stream);
}

CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                            size_t height, CUstream stream)
{
    return set_in_stream(to, pitch, value, 4, width, height, stream);
}

/* ---- words ----------------------------------------------------------------------------------- */

static uint64_t read_word(uint64_t address, unsigned int bytes)
{
    uint64_t value = 0;

    memcpy(&value, (const void *)(uintptr_t)address, bytes);
    return value;
}

/* Whether a wait is over. Work runs when it is submitted, so a wait that is not over never would
 * be. */
static bool satisfied(uint64_t now, uint64_t wanted, unsigned int flags, unsigned int bytes)
{
    switch (flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return bytes == 4 ? (int32_t)((uint32_t)now - (uint32_t)wanted) >= 0
                          : (int64_t)(now - wanted) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == wanted;
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & wanted) != 0;
    default: /* NOR */
        return ~(now | wanted) << (64 - bytes * 8) != 0;
    }
}

static CUresult run_word(const CUstreamBatchMemOpParams *item)
{
    bool is_wait = item->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
                   item->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
    bool is_long = item->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
                   item->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
    unsigned int bytes = is_long ? 8 : 4;
    uint64_t address = item->writeValue.address;
    uint64_t value = is_long ? item->writeValue.value64 : item->writeValue.value;

    if (item->operation == CU_STREAM_MEM_OP_BARRIER ||
        item->operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES)
        return CUDA_SUCCESS;
    if (address % bytes)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_check_access(address, bytes, false));
    if (is_wait)
        return satisfied(read_word(address, bytes), value, item->waitValue.flags, bytes)
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_NOT_SUPPORTED;
    memcpy((void *)(uintptr_t)address, &value, bytes);
    return CUDA_SUCCESS;
}

CUresult gpusim_batch(const CUstreamBatchMemOpParams *items, unsigned int count)
{
    for (unsigned int i = 0; i < count; i++)
        GPUSIM_TRY(run_word(&items[i]));
    return CUDA_SUCCESS;
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *items,
                               unsigned int flags)
{
    struct gpusim_operation operation = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                                         .batch = {items, count}};

    GPUSIM_ENTER();
    if (!items || count == 0 || count > 256 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return gpusim_submit(stream, &operation);
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *items,
                            unsigned int flags)
{
    return cuStreamBatchMemOp_v2(stream, count, items, flags);
}

static CUresult wait_or_write(CUstream stream, CUstreamBatchMemOpType type, CUdeviceptr address,
                              cuuint64_t value, unsigned int flags)
{
    CUstreamBatchMemOpParams item;

    memset(&item, 0, sizeof(item));
    item.writeValue.operation = type;
    item.writeValue.address = address;
    item.writeValue.value64 = value;
    item.writeValue.flags = flags;
    return cuStreamBatchMemOp_v2(stream, 1, &item, 0);
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                 unsigned int flags)
{
    return wait_or_write(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                 unsigned int flags)
{
    return wait_or_write(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                unsigned int flags)
{
    return wait_or_write(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                unsigned int flags)
{
    return wait_or_write(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                              unsigned int flags)
{
    return cuStreamWriteValue32_v2(stream, address, value, flags);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
                              unsigned int flags)
{
    return cuStreamWriteValue64_v2(stream, address, value, flags);
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                             unsigned int flags)
{
    return cuStreamWaitValue32_v2(stream, address, value, flags);
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
                             unsigned int flags)
{
    return cuStreamWaitValue64_v2(stream, address, value, flags);
}
