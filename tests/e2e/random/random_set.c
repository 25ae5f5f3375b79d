/* Random program: sets of all widths. */
#include "random.h"

#define ROWS 4
#define PITCH 512
#define BYTES ((size_t)ROWS * PITCH)

static void set_by_runtime(void *memory, cudaStream_t stream)
{
    const struct cudaPitchedPtr cube = {memory, PITCH, 100, 2};
    const struct cudaExtent extent = {100, 2, ROWS / 2};
    switch (pick(6)) {
    case 0:
        LOG(cudaMemset(memory, 1, BYTES));
        break;
    case 1:
        LOG(cudaMemsetAsync(memory, 2, BYTES, stream));
        break;
    case 2:
        LOG(cudaMemset2D(memory, PITCH, 3, 100, ROWS));
        break;
    case 3:
        LOG(cudaMemset2DAsync(memory, PITCH, 4, 100, ROWS, stream));
        break;
    case 4:
        LOG(cudaMemset3D(cube, 5, extent));
        break;
    default:
        LOG(cudaMemset3DAsync(cube, 6, extent, stream));
    }
}

static void set_by_driver(CUdeviceptr memory, CUstream stream)
{
    switch (pick(12)) {
    case 0:
        LOG(cuMemsetD8(memory, 1, BYTES));
        break;
    case 1:
        LOG(cuMemsetD8Async(memory, 2, BYTES, stream));
        break;
    case 2:
        LOG(cuMemsetD16(memory, 3, BYTES / 2));
        break;
    case 3:
        LOG(cuMemsetD16Async(memory, 4, BYTES / 2, stream));
        break;
    case 4:
        LOG(cuMemsetD32(memory, 5, BYTES / 4));
        break;
    case 5:
        LOG(cuMemsetD32Async(memory, 6, BYTES / 4, stream));
        break;
    case 6:
        LOG(cuMemsetD2D8(memory, PITCH, 7, 100, ROWS));
        break;
    case 7:
        LOG(cuMemsetD2D8Async(memory, PITCH, 8, 100, ROWS, stream));
        break;
    case 8:
        LOG(cuMemsetD2D16(memory, PITCH, 9, 100, ROWS));
        break;
    case 9:
        LOG(cuMemsetD2D16Async(memory, PITCH, 10, 100, ROWS, stream));
        break;
    case 10:
        LOG(cuMemsetD2D32(memory, PITCH, 11, 100, ROWS));
        break;
    default:
        LOG(cuMemsetD2D32Async(memory, PITCH, 12, 100, ROWS, stream));
    }
}

void STEP(set)(void)
{
    const int index = find_sized(LINEAR, BYTES);
    for (unsigned count = 1 + pick(3); index >= 0 && count > 0; count--) {
        if (pick(3))
            set_by_driver((CUdeviceptr)objects[index].pointer, random_stream());
        else
            set_by_runtime(objects[index].pointer, random_stream());
    }
}
