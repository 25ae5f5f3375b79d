/*
 * Filling memory with a byte value.
 *
 * Compiled twice, for the legacy and for the per-thread default stream (runtime.h).
 */
#include "runtime.h"

/* The driver takes the value as a byte; the runtime documents that it uses the low one. */
static unsigned char low_byte(int value)
{
    return (unsigned char)(value & 0xff);
}

cudaError_t cudaMemset(void *pointer, int value, size_t bytes)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    if (bytes == 0)
        return cudaSuccess;
    return gpusim_finish(
        DRIVER(cuMemsetD8, 3020)(gpusim_device_address(pointer), low_byte(value), bytes));
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    if (bytes == 0)
        return cudaSuccess;
    return gpusim_finish(DRIVER(cuMemsetD8Async, 3020)(gpusim_device_address(pointer),
                                                       low_byte(value), bytes, stream));
}

cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height)
{
    return CALL(cuMemsetD2D8, 3020, gpusim_device_address(pointer), pitch, low_byte(value), width,
                height);
}

cudaError_t cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream)
{
    return CALL(cuMemsetD2D8Async, 3020, gpusim_device_address(pointer), pitch, low_byte(value),
                width, height, stream);
}

/* The number of slices that one 2D fill can cover: all of them if the rows of a slice leave no
 * gap. */
static size_t slices_at_once(const struct cudaPitchedPtr *pitched, const struct cudaExtent *extent)
{
    return extent->height == pitched->ysize ? extent->depth : 1;
}

cudaError_t cudaMemset3D(struct cudaPitchedPtr pitched, int value, struct cudaExtent extent)
{
    size_t step = slices_at_once(&pitched, &extent);
    cudaError_t error = cudaSuccess;
    for (size_t z = 0; z < extent.depth && error == cudaSuccess; z += step) {
        char *slice = (char *)pitched.ptr + z * pitched.pitch * pitched.ysize;
        error = CALL(cuMemsetD2D8, 3020, gpusim_device_address(slice), pitched.pitch,
                     low_byte(value), extent.width, extent.height * step);
    }
    return error;
}

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr pitched, int value, struct cudaExtent extent,
                              cudaStream_t stream)
{
    size_t step = slices_at_once(&pitched, &extent);
    cudaError_t error = cudaSuccess;
    for (size_t z = 0; z < extent.depth && error == cudaSuccess; z += step) {
        char *slice = (char *)pitched.ptr + z * pitched.pitch * pitched.ysize;
        error = CALL(cuMemsetD2D8Async, 3020, gpusim_device_address(slice), pitched.pitch,
                     low_byte(value), extent.width, extent.height * step, stream);
    }
    return error;
}
