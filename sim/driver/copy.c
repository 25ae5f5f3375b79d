/*
 * cuMemcpy and its many forms: each builds the box that copy_engine.c copies. Asynchronous forms go
 * through the stream, the others run at once.
 */
#include "array.h"
#include "memory.h"
#include "newer.h"
#include "stream.h"

static CUDA_MEMCPY3D_PEER copy_of_line(CUmemorytype to, CUdeviceptr target, CUmemorytype from,
                                       CUdeviceptr source, size_t bytes)
{
    return (CUDA_MEMCPY3D_PEER){
        .srcMemoryType = from,
        .srcDevice = source,
        .srcHost = (const void *)(uintptr_t)source,
        .dstMemoryType = to,
        .dstDevice = target,
        .dstHost = (void *)(uintptr_t)target,
        .WidthInBytes = bytes,
        .Height = 1,
        .Depth = 1,
    };
}

static CUresult copy_now(CUDA_MEMCPY3D_PEER box)
{
    GPUSIM_ENTER_CONTEXT(context);
    (void)context;
    GPUSIM_TRY(gpusim_check_unsafe_call());
    return gpusim_copy(&box);
}

static CUresult copy_in_stream(CUDA_MEMCPY3D_PEER box, CUstream stream)
{
    struct gpusim_operation operation = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .copy = box};

    GPUSIM_ENTER();
    return gpusim_submit(stream, &operation);
}

/* ---- between addresses ----------------------------------------------------------------------- */

#define UNIFIED CU_MEMORYTYPE_UNIFIED
#define HOST CU_MEMORYTYPE_HOST
#define DEVICE CU_MEMORYTYPE_DEVICE

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy_now(copy_of_line(UNIFIED, to, UNIFIED, from, bytes));
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_in_stream(copy_of_line(UNIFIED, to, UNIFIED, from, bytes), stream);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    return copy_now(copy_of_line(DEVICE, to, HOST, (CUdeviceptr)(uintptr_t)from, bytes));
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return copy_in_stream(copy_of_line(DEVICE, to, HOST, (CUdeviceptr)(uintptr_t)from, bytes),
                          stream);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    return copy_now(copy_of_line(HOST, (CUdeviceptr)(uintptr_t)to, DEVICE, from, bytes));
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_in_stream(copy_of_line(HOST, (CUdeviceptr)(uintptr_t)to, DEVICE, from, bytes),
                          stream);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy_now(copy_of_line(DEVICE, to, DEVICE, from, bytes));
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_in_stream(copy_of_line(DEVICE, to, DEVICE, from, bytes), stream);
}

static CUresult check_peers(CUcontext to, CUcontext from)
{
    GPUSIM_ENTER();
    return gpusim_context_of(to) && gpusim_context_of(from) ? CUDA_SUCCESS
                                                            : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                      CUcontext from_context, size_t bytes)
{
    GPUSIM_TRY(check_peers(to_context, from_context));
    return copy_now(copy_of_line(DEVICE, to, DEVICE, from, bytes));
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, size_t bytes, CUstream stream)
{
    GPUSIM_TRY(check_peers(to_context, from_context));
    return copy_in_stream(copy_of_line(DEVICE, to, DEVICE, from, bytes), stream);
}

/* ---- arrays, one row ------------------------------------------------------------------------- */

static CUDA_MEMCPY3D_PEER to_array(CUarray array, size_t offset, CUmemorytype from,
                                   CUdeviceptr source, size_t bytes)
{
    CUDA_MEMCPY3D_PEER box = copy_of_line(CU_MEMORYTYPE_ARRAY, 0, from, source, bytes);

    box.dstArray = array;
    box.dstXInBytes = offset;
    return box;
}

static CUDA_MEMCPY3D_PEER from_array(CUmemorytype to, CUdeviceptr target, CUarray array,
                                     size_t offset, size_t bytes)
{
    CUDA_MEMCPY3D_PEER box = copy_of_line(to, target, CU_MEMORYTYPE_ARRAY, 0, bytes);

    box.srcArray = array;
    box.srcXInBytes = offset;
    return box;
}

CUresult cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t bytes)
{
    return copy_now(to_array(to, offset, DEVICE, from, bytes));
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t bytes)
{
    return copy_now(from_array(DEVICE, to, from, offset, bytes));
}

CUresult cuMemcpyHtoA_v2(CUarray to, size_t offset, const void *from, size_t bytes)
{
    return copy_now(to_array(to, offset, HOST, (CUdeviceptr)(uintptr_t)from, bytes));
}

CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void *from, size_t bytes,
                              CUstream stream)
{
    return copy_in_stream(to_array(to, offset, HOST, (CUdeviceptr)(uintptr_t)from, bytes), stream);
}

CUresult cuMemcpyAtoH_v2(void *to, CUarray from, size_t offset, size_t bytes)
{
    return copy_now(from_array(HOST, (CUdeviceptr)(uintptr_t)to, from, offset, bytes));
}

CUresult cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t offset, size_t bytes, CUstream stream)
{
    return copy_in_stream(from_array(HOST, (CUdeviceptr)(uintptr_t)to, from, offset, bytes),
                          stream);
}

CUresult cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset,
                         size_t bytes)
{
    CUDA_MEMCPY3D_PEER box = to_array(to, to_offset, CU_MEMORYTYPE_ARRAY, 0, bytes);

    box.srcArray = from;
    box.srcXInBytes = from_offset;
    return copy_now(box);
}

/* ---- rectangles and boxes -------------------------------------------------------------------- */

static CUDA_MEMCPY3D_PEER rectangle(const CUDA_MEMCPY2D *copy)
{
    return (CUDA_MEMCPY3D_PEER){
        .srcXInBytes = copy->srcXInBytes,
        .srcY = copy->srcY,
        .srcMemoryType = copy->srcMemoryType,
        .srcHost = copy->srcHost,
        .srcDevice = copy->srcDevice,
        .srcArray = copy->srcArray,
        .srcPitch = copy->srcPitch,
        .dstXInBytes = copy->dstXInBytes,
        .dstY = copy->dstY,
        .dstMemoryType = copy->dstMemoryType,
        .dstHost = copy->dstHost,
        .dstDevice = copy->dstDevice,
        .dstArray = copy->dstArray,
        .dstPitch = copy->dstPitch,
        .WidthInBytes = copy->WidthInBytes,
        .Height = copy->Height,
        .Depth = 1,
    };
}

CUDA_MEMCPY3D_PEER gpusim_box(const CUDA_MEMCPY3D *copy)
{
    return (CUDA_MEMCPY3D_PEER){
        .srcXInBytes = copy->srcXInBytes,
        .srcY = copy->srcY,
        .srcZ = copy->srcZ,
        .srcMemoryType = copy->srcMemoryType,
        .srcHost = copy->srcHost,
        .srcDevice = copy->srcDevice,
        .srcArray = copy->srcArray,
        .srcPitch = copy->srcPitch,
        .srcHeight = copy->srcHeight,
        .dstXInBytes = copy->dstXInBytes,
        .dstY = copy->dstY,
        .dstZ = copy->dstZ,
        .dstMemoryType = copy->dstMemoryType,
        .dstHost = copy->dstHost,
        .dstDevice = copy->dstDevice,
        .dstArray = copy->dstArray,
        .dstPitch = copy->dstPitch,
        .dstHeight = copy->dstHeight,
        .WidthInBytes = copy->WidthInBytes,
        .Height = copy->Height,
        .Depth = copy->Depth,
    };
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy)
{
    return copy ? copy_now(rectangle(copy)) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy)
{
    return copy ? copy_now(rectangle(copy)) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
    return copy ? copy_in_stream(rectangle(copy), stream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy)
{
    return copy ? copy_now(gpusim_box(copy)) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream)
{
    return copy ? copy_in_stream(gpusim_box(copy), stream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *copy)
{
    return copy ? copy_now(*copy) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
    return copy ? copy_in_stream(*copy, stream) : CUDA_ERROR_INVALID_VALUE;
}

/* ---- batches --------------------------------------------------------------------------------- */

static CUresult copy_batch(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
                           size_t *failed, CUstream stream)
{
    if (failed)
        *failed = SIZE_MAX;
    if (!to || !from || !sizes || count == 0 || !stream)
        return CUDA_ERROR_INVALID_VALUE; /* the header refuses the default stream */
    for (size_t i = 0; i < count; i++) {
        CUresult result =
            copy_in_stream(copy_of_line(UNIFIED, to[i], UNIFIED, from[i], sizes[i]), stream);

        if (result != CUDA_SUCCESS) {
            if (failed)
                *failed = i;
            return result;
        }
    }
    return CUDA_SUCCESS;
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
                            CUmemcpyAttributes *attributes, size_t *attribute_indices,
                            size_t attribute_count, size_t *failed, CUstream stream)
{
    (void)attributes;
    (void)attribute_indices;
    (void)attribute_count;
    return copy_batch(to, from, sizes, count, failed, stream);
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
                               CUmemcpyAttributes *attributes, size_t *attribute_indices,
                               size_t attribute_count, CUstream stream)
{
    return cuMemcpyBatchAsync(to, from, sizes, count, attributes, attribute_indices,
                              attribute_count, NULL, stream);
}

/* Extents and offsets of arrays are in elements, rows of memory too: scale makes them bytes. */
static CUDA_MEMCPY3D_PEER batch_box(const CUDA_MEMCPY3D_BATCH_OP *item, size_t scale)
{
    CUDA_MEMCPY3D_PEER box = {.WidthInBytes = item->extent.width * scale,
                              .Height = item->extent.height,
                              .Depth = item->extent.depth};

    if (item->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        box.srcMemoryType = CU_MEMORYTYPE_ARRAY;
        box.srcArray = item->src.op.array.array;
        box.srcXInBytes = item->src.op.array.offset.x * scale;
        box.srcY = item->src.op.array.offset.y;
        box.srcZ = item->src.op.array.offset.z;
    } else {
        box.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
        box.srcDevice = item->src.op.ptr.ptr;
        box.srcPitch = item->src.op.ptr.rowLength * scale;
        box.srcHeight = item->src.op.ptr.layerHeight;
    }
    if (item->dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        box.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        box.dstArray = item->dst.op.array.array;
        box.dstXInBytes = item->dst.op.array.offset.x * scale;
        box.dstY = item->dst.op.array.offset.y;
        box.dstZ = item->dst.op.array.offset.z;
    } else {
        box.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
        box.dstDevice = item->dst.op.ptr.ptr;
        box.dstPitch = item->dst.op.ptr.rowLength * scale;
        box.dstHeight = item->dst.op.ptr.layerHeight;
    }
    return box;
}

/* Bytes of an element of the operand, or 0 when it is memory: then a unit is a byte. */
static size_t element_of(const CUmemcpy3DOperand *operand)
{
    size_t size = 0;

    if (operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        gpusim_lock();
        struct gpusim_array *array = GPUSIM_FIND(operand->op.array.array, GPUSIM_TYPE_ARRAY);
        size = array ? gpusim_element_size(&array->descriptor) : 0;
        gpusim_unlock();
    }
    return size;
}

CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *items, size_t *failed,
                              unsigned long long flags, CUstream stream)
{
    GPUSIM_TRY(gpusim_ready());
    if (failed)
        *failed = SIZE_MAX;
    if (!items || count == 0 || flags != 0 || !stream)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        size_t from = element_of(&items[i].src), to = element_of(&items[i].dst);
        size_t scale = from ? from : to ? to : 1;
        CUresult result = copy_in_stream(batch_box(&items[i], scale), stream);

        if (result != CUDA_SUCCESS) {
            if (failed)
                *failed = i;
            return result;
        }
    }
    return CUDA_SUCCESS;
}

CUresult cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP *items,
                                 unsigned long long flags, CUstream stream)
{
    return cuMemcpy3DBatchAsync(count, items, NULL, flags, stream);
}

/* ---- copies with attributes, which say where memory may be; here all of it is reachable ------ */

CUresult cuMemcpyWithAttributesAsync(CUdeviceptr to, CUdeviceptr from, size_t size,
                                     CUmemcpyAttributes *attributes, CUstream stream)
{
    if (!attributes)
        return CUDA_ERROR_INVALID_VALUE;
    return copy_batch(&to, &from, &size, 1, NULL, stream);
}

CUresult cuMemcpyWithAttributesAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t size,
                                          CUmemcpyAttributes *attributes, CUstream stream)
{
    return cuMemcpyWithAttributesAsync(to, from, size, attributes,
                                       stream ? stream : CU_STREAM_PER_THREAD);
}

CUresult cuMemcpy3DWithAttributesAsync(CUDA_MEMCPY3D_BATCH_OP *operation, unsigned long long flags,
                                       CUstream stream)
{
    return cuMemcpy3DBatchAsync(1, operation, NULL, flags, stream);
}

CUresult cuMemcpy3DWithAttributesAsync_ptsz(CUDA_MEMCPY3D_BATCH_OP *operation,
                                            unsigned long long flags, CUstream stream)
{
    return cuMemcpy3DWithAttributesAsync(operation, flags, stream ? stream : CU_STREAM_PER_THREAD);
}
