/*
 * Copies of linear memory: one-dimensional, pitched, volumes, device variables.
 *
 * Compiled twice, for the legacy and for the per-thread default stream (runtime.h). The copy kind
 * selects the driver function, so that a trace of the driver's calls distinguishes directions; with
 * cudaMemcpyDefault the driver finds the direction itself.
 */
#include "runtime.h"

static cudaError_t copy_linear(void *destination, const void *source, size_t bytes,
                               enum cudaMemcpyKind kind)
{
    CUdeviceptr to = gpusim_device_address(destination);
    CUdeviceptr from = gpusim_device_address(source);
    if ((unsigned)kind > cudaMemcpyDefault)
        return gpusim_fail(cudaErrorInvalidMemcpyDirection);
    if (!gpusim_enter())
        return gpusim_refusal();
    if (bytes == 0)
        return cudaSuccess;
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return gpusim_finish(DRIVER(cuMemcpyHtoD, 3020)(to, source, bytes));
    case cudaMemcpyDeviceToHost:
        return gpusim_finish(DRIVER(cuMemcpyDtoH, 3020)(destination, from, bytes));
    case cudaMemcpyDeviceToDevice:
        return gpusim_finish(DRIVER(cuMemcpyDtoD, 3020)(to, from, bytes));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        break;
    }
    return gpusim_finish(DRIVER(cuMemcpy, 4000)(to, from, bytes));
}

static cudaError_t copy_linear_async(void *destination, const void *source, size_t bytes,
                                     enum cudaMemcpyKind kind, cudaStream_t stream)
{
    CUdeviceptr to = gpusim_device_address(destination);
    CUdeviceptr from = gpusim_device_address(source);
    if ((unsigned)kind > cudaMemcpyDefault)
        return gpusim_fail(cudaErrorInvalidMemcpyDirection);
    if (!gpusim_enter())
        return gpusim_refusal();
    if (bytes == 0)
        return cudaSuccess;
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return gpusim_finish(DRIVER(cuMemcpyHtoDAsync, 3020)(to, source, bytes, stream));
    case cudaMemcpyDeviceToHost:
        return gpusim_finish(DRIVER(cuMemcpyDtoHAsync, 3020)(destination, from, bytes, stream));
    case cudaMemcpyDeviceToDevice:
        return gpusim_finish(DRIVER(cuMemcpyDtoDAsync, 3020)(to, from, bytes, stream));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        break;
    }
    return gpusim_finish(DRIVER(cuMemcpyAsync, 4000)(to, from, bytes, stream));
}

cudaError_t cudaMemcpy(void *destination, const void *source, size_t bytes,
                       enum cudaMemcpyKind kind)
{
    return copy_linear(destination, source, bytes, kind);
}

cudaError_t cudaMemcpyAsync(void *destination, const void *source, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy_linear_async(destination, source, bytes, kind, stream);
}

static cudaError_t describe_pitched(void *destination, size_t destination_pitch, const void *source,
                                    size_t source_pitch, size_t width, size_t height,
                                    enum cudaMemcpyKind kind, CUDA_MEMCPY2D *copy)
{
    *copy = (CUDA_MEMCPY2D){.srcHost = source,
                            .srcDevice = gpusim_device_address(source),
                            .srcPitch = source_pitch,
                            .dstHost = destination,
                            .dstDevice = gpusim_device_address(destination),
                            .dstPitch = destination_pitch,
                            .WidthInBytes = width,
                            .Height = height};
    if (!gpusim_memory_types(kind, &copy->srcMemoryType, &copy->dstMemoryType))
        return gpusim_fail(cudaErrorInvalidMemcpyDirection);
    if (width > source_pitch || width > destination_pitch)
        return gpusim_fail(cudaErrorInvalidPitchValue);
    return cudaSuccess;
}

cudaError_t cudaMemcpy2D(void *destination, size_t destination_pitch, const void *source,
                         size_t source_pitch, size_t width, size_t height, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D copy;
    cudaError_t error = describe_pitched(destination, destination_pitch, source, source_pitch,
                                         width, height, kind, &copy);
    return error == cudaSuccess ? CALL(cuMemcpy2DUnaligned, 3020, &copy) : error;
}

cudaError_t cudaMemcpy2DAsync(void *destination, size_t destination_pitch, const void *source,
                              size_t source_pitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind, cudaStream_t stream)
{
    CUDA_MEMCPY2D copy;
    cudaError_t error = describe_pitched(destination, destination_pitch, source, source_pitch,
                                         width, height, kind, &copy);
    return error == cudaSuccess ? CALL(cuMemcpy2DAsync, 3020, &copy, stream) : error;
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *parameters)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    CUDA_MEMCPY3D copy;
    cudaError_t error = gpusim_describe_copy(parameters, &copy);
    return error == cudaSuccess ? gpusim_finish(DRIVER(cuMemcpy3D, 3020)(&copy))
                                : gpusim_fail(error);
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *parameters, cudaStream_t stream)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    CUDA_MEMCPY3D copy;
    cudaError_t error = gpusim_describe_copy(parameters, &copy);
    return error == cudaSuccess ? gpusim_finish(DRIVER(cuMemcpy3DAsync, 3020)(&copy, stream))
                                : gpusim_fail(error);
}

cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *parameters)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    CUDA_MEMCPY3D_PEER copy;
    cudaError_t error = gpusim_describe_peer_copy(parameters, &copy);
    return error == cudaSuccess ? gpusim_finish(DRIVER(cuMemcpy3DPeer, 4000)(&copy))
                                : gpusim_fail(error);
}

cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *parameters,
                                  cudaStream_t stream)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    CUDA_MEMCPY3D_PEER copy;
    cudaError_t error = gpusim_describe_peer_copy(parameters, &copy);
    return error == cudaSuccess ? gpusim_finish(DRIVER(cuMemcpy3DPeerAsync, 4000)(&copy, stream))
                                : gpusim_fail(error);
}

/* The device address `offset` bytes into a variable, if `bytes` bytes follow it there. */
static cudaError_t find_in_variable(const void *symbol, size_t offset, size_t bytes, void **address)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    CUdeviceptr start = 0;
    size_t size = 0;
    cudaError_t error = gpusim_find_variable(symbol, &start, &size);
    if (error == cudaSuccess && (offset > size || bytes > size - offset))
        error = cudaErrorInvalidValue;
    *address = gpusim_pointer(start + offset);
    return gpusim_fail(error);
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *source, size_t bytes, size_t offset,
                               enum cudaMemcpyKind kind)
{
    void *address = NULL;
    cudaError_t error = find_in_variable(symbol, offset, bytes, &address);
    return error == cudaSuccess ? copy_linear(address, source, bytes, kind) : error;
}

cudaError_t cudaMemcpyFromSymbol(void *destination, const void *symbol, size_t bytes, size_t offset,
                                 enum cudaMemcpyKind kind)
{
    void *address = NULL;
    cudaError_t error = find_in_variable(symbol, offset, bytes, &address);
    return error == cudaSuccess ? copy_linear(destination, address, bytes, kind) : error;
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *source, size_t bytes,
                                    size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    void *address = NULL;
    cudaError_t error = find_in_variable(symbol, offset, bytes, &address);
    return error == cudaSuccess ? copy_linear_async(address, source, bytes, kind, stream) : error;
}

cudaError_t cudaMemcpyFromSymbolAsync(void *destination, const void *symbol, size_t bytes,
                                      size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    void *address = NULL;
    cudaError_t error = find_in_variable(symbol, offset, bytes, &address);
    return error == cudaSuccess ? copy_linear_async(destination, address, bytes, kind, stream)
                                : error;
}
