/*
 * Copies between arrays and memory, the pitched kind and the deprecated linear kind.
 *
 * Compiled twice, for the legacy and for the per-thread default stream (runtime.h). All of them
 * become two-dimensional driver copies.
 */
#include "runtime.h"

/* One end of a copy: an array at a byte and row offset, or memory with a pitch. */
struct side {
    CUarray array;
    size_t x; /* bytes */
    size_t y; /* rows */
    const void *pointer;
    size_t pitch;
};

static struct side array_side(cudaArray_const_t array, size_t x, size_t y)
{
    return (struct side){.array = (CUarray)(uintptr_t)array, .x = x, .y = y};
}

static struct side memory_side(const void *pointer, size_t pitch)
{
    return (struct side){.pointer = pointer, .pitch = pitch};
}

/* `stream` counts only for an asynchronous copy. The caller has entered. */
static cudaError_t copy_rectangle(const struct side *to, const struct side *from, size_t width,
                                  size_t height, enum cudaMemcpyKind kind, bool asynchronous,
                                  cudaStream_t stream)
{
    CUDA_MEMCPY2D copy = {.srcXInBytes = from->x,
                          .srcY = from->y,
                          .srcHost = from->pointer,
                          .srcDevice = gpusim_device_address(from->pointer),
                          .srcArray = from->array,
                          .srcPitch = from->pitch,
                          .dstXInBytes = to->x,
                          .dstY = to->y,
                          .dstHost = (void *)(uintptr_t)to->pointer,
                          .dstDevice = gpusim_device_address(to->pointer),
                          .dstArray = to->array,
                          .dstPitch = to->pitch,
                          .WidthInBytes = width,
                          .Height = height};
    if (!gpusim_memory_types(kind, &copy.srcMemoryType, &copy.dstMemoryType))
        return gpusim_fail(cudaErrorInvalidMemcpyDirection);
    if (from->array)
        copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    if (to->array)
        copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    return gpusim_finish(asynchronous ? DRIVER(cuMemcpy2DAsync, 3020)(&copy, stream)
                                      : DRIVER(cuMemcpy2DUnaligned, 3020)(&copy));
}

static cudaError_t row_bytes(const struct side *side, size_t *bytes)
{
    CUDA_ARRAY3D_DESCRIPTOR description;
    CUresult result = DRIVER(cuArray3DGetDescriptor, 3020)(&description, side->array);
    if (result != CUDA_SUCCESS)
        return gpusim_finish(result);
    *bytes = description.Width * gpusim_array_element_bytes(side->array);
    return *bytes ? cudaSuccess : gpusim_fail(cudaErrorInvalidValue);
}

/* Moves on by `bytes`, which never cross the end of a row unless they are whole rows. */
static void advance(struct side *side, size_t bytes, size_t row)
{
    if (!side->array) {
        side->pointer = (const char *)side->pointer + bytes;
        return;
    }
    side->y += (side->x + bytes) / row;
    side->x = (side->x + bytes) % row;
}

/*
 * Copies `bytes` consecutive bytes, rows of an array following each other. A stretch that covers
 * whole rows on both sides is one driver copy.
 */
static cudaError_t copy_consecutive(struct side to, struct side from, size_t bytes,
                                    enum cudaMemcpyKind kind, bool asynchronous,
                                    cudaStream_t stream)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    size_t to_row = 0;
    size_t from_row = 0;
    cudaError_t error = to.array ? row_bytes(&to, &to_row) : cudaSuccess;
    if (error == cudaSuccess && from.array)
        error = row_bytes(&from, &from_row);
    to_row = to.array ? to_row : from_row;
    from_row = from.array ? from_row : to_row;
    while (error == cudaSuccess && bytes > 0) {
        size_t width = bytes;
        size_t height = 1;
        if (to.x == 0 && from.x == 0 && to_row == from_row && bytes >= to_row) {
            width = to_row;
            height = bytes / to_row;
        } else {
            width = width < to_row - to.x ? width : to_row - to.x;
            width = width < from_row - from.x ? width : from_row - from.x;
        }
        to.pitch = from.pitch = width;
        error = copy_rectangle(&to, &from, width, height, kind, asynchronous, stream);
        advance(&to, width * height, to_row);
        advance(&from, width * height, from_row);
        bytes -= width * height;
    }
    return error;
}

static cudaError_t enter_and_copy(struct side to, struct side from, size_t width, size_t height,
                                  enum cudaMemcpyKind kind, bool asynchronous, cudaStream_t stream)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    return copy_rectangle(&to, &from, width, height, kind, asynchronous, stream);
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
                                size_t width, size_t height, enum cudaMemcpyKind kind)
{
    return enter_and_copy(array_side(to, x, y), memory_side(from, pitch), width, height, kind,
                          false, NULL);
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from,
                                     size_t pitch, size_t width, size_t height,
                                     enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return enter_and_copy(array_side(to, x, y), memory_side(from, pitch), width, height, kind, true,
                          stream);
}

cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x,
                                  size_t y, size_t width, size_t height, enum cudaMemcpyKind kind)
{
    return enter_and_copy(memory_side(to, pitch), array_side(from, x, y), width, height, kind,
                          false, NULL);
}

cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, cudaArray_const_t from, size_t x,
                                       size_t y, size_t width, size_t height,
                                       enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return enter_and_copy(memory_side(to, pitch), array_side(from, x, y), width, height, kind, true,
                          stream);
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y,
                                     cudaArray_const_t from, size_t from_x, size_t from_y,
                                     size_t width, size_t height, enum cudaMemcpyKind kind)
{
    return enter_and_copy(array_side(to, to_x, to_y), array_side(from, from_x, from_y), width,
                          height, kind, false, NULL);
}

cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes,
                              enum cudaMemcpyKind kind)
{
    return copy_consecutive(array_side(to, x, y), memory_side(from, 0), bytes, kind, false, NULL);
}

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from,
                                   size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy_consecutive(array_side(to, x, y), memory_side(from, 0), bytes, kind, true, stream);
}

cudaError_t cudaMemcpyFromArray(void *to, cudaArray_const_t from, size_t x, size_t y, size_t bytes,
                                enum cudaMemcpyKind kind)
{
    return copy_consecutive(memory_side(to, 0), array_side(from, x, y), bytes, kind, false, NULL);
}

cudaError_t cudaMemcpyFromArrayAsync(void *to, cudaArray_const_t from, size_t x, size_t y,
                                     size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy_consecutive(memory_side(to, 0), array_side(from, x, y), bytes, kind, true, stream);
}

cudaError_t cudaMemcpyArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from,
                                   size_t from_x, size_t from_y, size_t bytes,
                                   enum cudaMemcpyKind kind)
{
    return copy_consecutive(array_side(to, to_x, to_y), array_side(from, from_x, from_y), bytes,
                            kind, false, NULL);
}
