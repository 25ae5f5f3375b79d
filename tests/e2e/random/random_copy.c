/* Random program: copies between linear and host memory, in one, two and three dimensions. */
#include "random.h"

CUresult cuMemcpyBatchAsync_v1(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *,
                               size_t *, size_t, size_t *,
                               CUstream) __asm__("cuMemcpyBatchAsync" PTSZ);
CUresult cuMemcpy3DBatchAsync_v1(size_t, CUDA_MEMCPY3D_BATCH_OP *, size_t *, unsigned long long,
                                 CUstream) __asm__("cuMemcpy3DBatchAsync" PTSZ);
/* The headers at hand may lack them. */
CUresult copy_with_attributes(CUdeviceptr, CUdeviceptr, size_t, CUmemcpyAttributes *,
                              CUstream) __asm__("cuMemcpyWithAttributesAsync" PTSZ);
CUresult copy_box_with_attributes(CUDA_MEMCPY3D_BATCH_OP *, unsigned long long,
                                  CUstream) __asm__("cuMemcpy3DWithAttributesAsync" PTSZ);

#define ROWS 4
#define PITCH 512
#define WIDTH 100
#define BYTES ((size_t)ROWS * PITCH)

/* Never read: several threads may write it at once. */
static _Thread_local char host[BYTES];

static void copy_line(CUdeviceptr a, CUdeviceptr b, cudaStream_t stream)
{
    CUcontext context = NULL;
    cuCtxGetCurrent(&context);
    switch (pick(12)) {
    case 0:
        LOG(cuMemcpy(a, b, BYTES));
        break;
    case 1:
        LOG(cuMemcpyAsync(a, b, BYTES, stream));
        break;
    case 2:
        LOG(cuMemcpyHtoD(a, host, BYTES));
        break;
    case 3:
        LOG(cuMemcpyHtoDAsync(a, host, BYTES, stream));
        break;
    case 4:
        LOG(cuMemcpyDtoH(host, a, BYTES));
        break;
    case 5:
        LOG(cuMemcpyDtoHAsync(host, a, BYTES, stream));
        break;
    case 6:
        LOG(cuMemcpyDtoD(a, b, BYTES));
        break;
    case 7:
        LOG(cuMemcpyDtoDAsync(a, b, BYTES, stream));
        break;
    case 8:
        LOG(cuMemcpyPeer(a, context, b, context, BYTES));
        break;
    case 9:
        LOG(cuMemcpyPeerAsync(a, context, b, context, BYTES, stream));
        break;
    case 10:
        LOG(cuMemcpyHtoD(a, NULL, BYTES)); /* refused */
        break;
    default:
        LOG(cuMemcpyDtoD(a, b, (size_t)1 << 40)); /* refused */
    }
}

static void copy_line_by_runtime(void *a, void *b, cudaStream_t stream)
{
    const int device = current_device();
    switch (pick(6)) {
    case 0:
        LOG(cudaMemcpy(a, host, BYTES, cudaMemcpyHostToDevice));
        break;
    case 1:
        LOG(cudaMemcpy(host, a, BYTES, cudaMemcpyDefault));
        break;
    case 2:
        LOG(cudaMemcpyAsync(a, b, BYTES, cudaMemcpyDeviceToDevice, stream));
        break;
    case 3:
        LOG(cudaMemcpyPeer(a, device, b, device, BYTES));
        break;
    case 4:
        LOG(cudaMemcpyPeerAsync(a, device, b, device, BYTES, stream));
        break;
    default:
        LOG(cudaMemcpyAsync(host, a, BYTES, cudaMemcpyDeviceToHost, stream));
    }
}

static void copy_rectangle(CUdeviceptr a, void *b, cudaStream_t stream)
{
    const CUDA_MEMCPY2D flat = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = host,
                                .srcPitch = PITCH,
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = a,
                                .dstPitch = PITCH,
                                .WidthInBytes = WIDTH,
                                .Height = ROWS};
    switch (pick(5)) {
    case 0:
        LOG(cuMemcpy2D(&flat));
        break;
    case 1:
        LOG(cuMemcpy2DAsync(&flat, stream));
        break;
    case 2:
        LOG(cuMemcpy2DUnaligned(&flat));
        break;
    case 3:
        LOG(cudaMemcpy2D(b, PITCH, host, PITCH, WIDTH, ROWS, cudaMemcpyHostToDevice));
        break;
    default:
        LOG(cudaMemcpy2DAsync(host, PITCH, b, PITCH, WIDTH, ROWS, cudaMemcpyDeviceToHost, stream));
    }
}

static void copy_box_between_peers(CUdeviceptr a, void *b, cudaStream_t stream)
{
    const struct cudaMemcpy3DPeerParms runtime = {.srcPtr = {b, PITCH, WIDTH, 2},
                                                  .srcDevice = current_device(),
                                                  .dstPtr = {(void *)a, PITCH, WIDTH, 2},
                                                  .dstDevice = current_device(),
                                                  .extent = {WIDTH, 2, ROWS / 2}};
    CUDA_MEMCPY3D_PEER box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                              .srcDevice = (CUdeviceptr)b,
                              .srcPitch = PITCH,
                              .srcHeight = 2,
                              .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                              .dstDevice = a,
                              .dstPitch = PITCH,
                              .dstHeight = 2,
                              .WidthInBytes = WIDTH,
                              .Height = 2,
                              .Depth = ROWS / 2};
    cuCtxGetCurrent(&box.srcContext);
    box.dstContext = box.srcContext;
    switch (pick(4)) {
    case 0:
        LOG(cuMemcpy3DPeer(&box));
        break;
    case 1:
        LOG(cuMemcpy3DPeerAsync(&box, stream));
        break;
    case 2:
        LOG(cudaMemcpy3DPeer(&runtime));
        break;
    default:
        LOG(cudaMemcpy3DPeerAsync(&runtime, stream));
    }
}

static void copy_box(CUdeviceptr a, void *b, cudaStream_t stream)
{
    const CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                               .srcHost = host,
                               .srcPitch = PITCH,
                               .srcHeight = 2,
                               .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                               .dstDevice = a,
                               .dstPitch = PITCH,
                               .dstHeight = 2,
                               .WidthInBytes = WIDTH,
                               .Height = 2,
                               .Depth = ROWS / 2};
    const struct cudaMemcpy3DParms runtime = {.srcPtr = {b, PITCH, WIDTH, 2},
                                              .dstPtr = {host, PITCH, WIDTH, 2},
                                              .extent = {WIDTH, 2, ROWS / 2},
                                              .kind = cudaMemcpyDeviceToHost};
    switch (pick(4)) {
    case 0:
        LOG(cuMemcpy3D(&box));
        break;
    case 1:
        LOG(cuMemcpy3DAsync(&box, stream));
        break;
    case 2:
        LOG(cudaMemcpy3D(&runtime));
        break;
    default:
        LOG(cudaMemcpy3DAsync(&runtime, stream));
    }
}

/* Batches are refused on the default stream. */
static void copy_batch(CUdeviceptr a, CUdeviceptr b, cudaStream_t stream)
{
    CUdeviceptr to[2] = {a, (CUdeviceptr)host}, from[2] = {b, a};
    void *const runtime_to[2] = {(void *)a, host};
    const void *const runtime_from[2] = {(void *)b, (void *)a};
    size_t sizes[2] = {BYTES / 2, 64}, failed, starts[1] = {0};
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    struct cudaMemcpyAttributes runtime_attributes = {.srcAccessOrder =
                                                          cudaMemcpySrcAccessOrderStream};
    CUDA_MEMCPY3D_BATCH_OP boxes[2] = {
        {.src = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = b}},
         .dst = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = a}},
         .extent = {WIDTH, 2, 2},
         .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM}};
    struct cudaMemcpy3DBatchOp runtime_boxes[1] = {
        {.src = {.type = cudaMemcpyOperandTypePointer, .op.ptr = {.ptr = (void *)b}},
         .dst = {.type = cudaMemcpyOperandTypePointer, .op.ptr = {.ptr = (void *)a}},
         .extent = {WIDTH, 2, 2},
         .srcAccessOrder = cudaMemcpySrcAccessOrderStream}};
    boxes[1] = boxes[0];
    switch (pick(6)) {
    case 0:
        LOG_AS("cuMemcpyBatchAsync" PTSZ,
               cuMemcpyBatchAsync_v1(to, from, sizes, 2, &attributes, starts, 1, &failed, stream));
        break;
    case 1:
        LOG(cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, starts, 1, stream));
        break;
    case 2:
        LOG_AS("cuMemcpy3DBatchAsync" PTSZ, cuMemcpy3DBatchAsync_v1(2, boxes, &failed, 0, stream));
        break;
    case 3:
        LOG(cuMemcpy3DBatchAsync(2, boxes, 0, stream));
        break;
    case 4:
        LOG(cudaMemcpyBatchAsync(runtime_to, runtime_from, sizes, 2, &runtime_attributes, starts, 1,
                                 stream));
        break;
    default:
        LOG(cudaMemcpy3DBatchAsync(1, runtime_boxes, 0, stream));
    }
}

/* A linear copy may have no attributes; a box has its own. */
static void copy_alone(CUdeviceptr a, CUdeviceptr b, cudaStream_t stream)
{
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    CUDA_MEMCPY3D_BATCH_OP box = {
        .src = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = b}},
        .dst = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = a}},
        .extent = {WIDTH, 2, 2},
        .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    switch (pick(6)) {
    case 0:
    case 1:
        LOG_AS("cuMemcpyWithAttributesAsync" PTSZ,
               copy_with_attributes(a, b, BYTES, pick(2) ? &attributes : NULL, stream));
        break;
    case 2:
    case 3:
        LOG_AS("cuMemcpy3DWithAttributesAsync" PTSZ, copy_box_with_attributes(&box, 0, stream));
        break;
    case 4:
        LOG_AS("cuMemcpyWithAttributesAsync" PTSZ,
               copy_with_attributes(a, b, (size_t)1 << 40, &attributes, stream)); /* refused */
        break;
    default:
        LOG_AS("cuMemcpy3DWithAttributesAsync" PTSZ,
               copy_box_with_attributes(NULL, 0, stream)); /* refused */
    }
}

void STEP(copy)(void)
{
    const int first = find_sized(LINEAR, BYTES), second = find_sized(LINEAR, BYTES);
    for (unsigned count = 1 + pick(4); first >= 0 && count > 0; count--) {
        void *const a = objects[first].pointer, *const b = objects[second].pointer;
        const cudaStream_t stream = random_stream();
        switch (pick(9)) {
        case 0:
        case 1:
            copy_line((CUdeviceptr)a, (CUdeviceptr)b, stream);
            break;
        case 2:
            copy_line_by_runtime(a, b, stream);
            break;
        case 3:
            copy_rectangle((CUdeviceptr)a, b, stream);
            break;
        case 4:
            copy_box((CUdeviceptr)a, b, stream);
            break;
        case 5:
            copy_box_between_peers((CUdeviceptr)a, b, stream);
            break;
        case 6:
            copy_alone((CUdeviceptr)a, (CUdeviceptr)b, stream);
            break;
        default:
            copy_batch((CUdeviceptr)a, (CUdeviceptr)b, created_stream());
        }
    }
}
