/*
 * Translates the runtime's descriptions of a copy into the driver's.
 *
 * The runtime measures in elements as soon as an array takes part, in bytes otherwise, and says by
 * the copy kind where plain pointers point; the driver measures in bytes and wants a memory type
 * for each side.
 */
#include "runtime.h"

bool gpusim_memory_types(enum cudaMemcpyKind kind, CUmemorytype *source, CUmemorytype *destination)
{
    static const struct {
        CUmemorytype source;
        CUmemorytype destination;
    } types[] = {
        [cudaMemcpyHostToHost] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST},
        [cudaMemcpyHostToDevice] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE},
        [cudaMemcpyDeviceToHost] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST},
        [cudaMemcpyDeviceToDevice] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE},
        [cudaMemcpyDefault] = {CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED},
    };
    if ((unsigned)kind >= sizeof types / sizeof types[0])
        return false;
    *source = types[kind].source;
    *destination = types[kind].destination;
    return true;
}

/* The address goes into the field that the driver reads for this memory type; it ignores the
 * other. */
static void set_source(CUDA_MEMCPY3D *copy, const void *pointer)
{
    if (copy->srcMemoryType == CU_MEMORYTYPE_HOST)
        copy->srcHost = pointer;
    else
        copy->srcDevice = gpusim_device_address(pointer);
}

static void set_destination(CUDA_MEMCPY3D *copy, void *pointer)
{
    if (copy->dstMemoryType == CU_MEMORYTYPE_HOST)
        copy->dstHost = pointer;
    else
        copy->dstDevice = gpusim_device_address(pointer);
}

/* Bytes of the unit in which the extent is given; 0: one of the arrays is not known. */
static size_t unit_bytes(cudaArray_t source, cudaArray_t destination)
{
    if (!source && !destination)
        return 1;
    return gpusim_array_element_bytes((CUarray)(source ? source : destination));
}

cudaError_t gpusim_describe_copy(const struct cudaMemcpy3DParms *from, CUDA_MEMCPY3D *to)
{
    *to = (CUDA_MEMCPY3D){0};
    if (!from)
        return cudaErrorInvalidValue;
    if (!from->srcArray == !from->srcPtr.ptr || !from->dstArray == !from->dstPtr.ptr)
        return cudaErrorInvalidValue; /* each side is exactly one of array and pointer */
    if (!gpusim_memory_types(from->kind, &to->srcMemoryType, &to->dstMemoryType))
        return cudaErrorInvalidMemcpyDirection;
    size_t unit = unit_bytes(from->srcArray, from->dstArray);
    if (unit == 0)
        return cudaErrorInvalidResourceHandle;

    if (from->srcArray) {
        to->srcMemoryType = CU_MEMORYTYPE_ARRAY;
        to->srcArray = (CUarray)from->srcArray;
    } else {
        set_source(to, from->srcPtr.ptr);
        to->srcPitch = from->srcPtr.pitch;
        to->srcHeight = from->srcPtr.ysize;
    }
    if (from->dstArray) {
        to->dstMemoryType = CU_MEMORYTYPE_ARRAY;
        to->dstArray = (CUarray)from->dstArray;
    } else {
        set_destination(to, from->dstPtr.ptr);
        to->dstPitch = from->dstPtr.pitch;
        to->dstHeight = from->dstPtr.ysize;
    }
    to->srcXInBytes = from->srcPos.x * (from->srcArray ? unit : 1);
    to->srcY = from->srcPos.y;
    to->srcZ = from->srcPos.z;
    to->dstXInBytes = from->dstPos.x * (from->dstArray ? unit : 1);
    to->dstY = from->dstPos.y;
    to->dstZ = from->dstPos.z;
    to->WidthInBytes = from->extent.width * unit;
    to->Height = from->extent.height;
    to->Depth = from->extent.depth;
    return cudaSuccess;
}

cudaError_t gpusim_describe_peer_copy(const struct cudaMemcpy3DPeerParms *from,
                                      CUDA_MEMCPY3D_PEER *to)
{
    if (!from)
        return cudaErrorInvalidValue;
    struct cudaMemcpy3DParms plain = {.srcArray = from->srcArray,
                                      .srcPos = from->srcPos,
                                      .srcPtr = from->srcPtr,
                                      .dstArray = from->dstArray,
                                      .dstPos = from->dstPos,
                                      .dstPtr = from->dstPtr,
                                      .extent = from->extent,
                                      .kind = cudaMemcpyDeviceToDevice};
    CUDA_MEMCPY3D copy;
    cudaError_t error = gpusim_describe_copy(&plain, &copy);
    if (error != cudaSuccess)
        return error;
    *to = (CUDA_MEMCPY3D_PEER){.srcXInBytes = copy.srcXInBytes,
                               .srcY = copy.srcY,
                               .srcZ = copy.srcZ,
                               .srcMemoryType = copy.srcMemoryType,
                               .srcDevice = copy.srcDevice,
                               .srcArray = copy.srcArray,
                               .srcPitch = copy.srcPitch,
                               .srcHeight = copy.srcHeight,
                               .dstXInBytes = copy.dstXInBytes,
                               .dstY = copy.dstY,
                               .dstZ = copy.dstZ,
                               .dstMemoryType = copy.dstMemoryType,
                               .dstDevice = copy.dstDevice,
                               .dstArray = copy.dstArray,
                               .dstPitch = copy.dstPitch,
                               .dstHeight = copy.dstHeight,
                               .WidthInBytes = copy.WidthInBytes,
                               .Height = copy.Height,
                               .Depth = copy.Depth};
    error = gpusim_primary_context(from->srcDevice, &to->srcContext);
    if (error == cudaSuccess)
        error = gpusim_primary_context(from->dstDevice, &to->dstContext);
    return error;
}

void gpusim_describe_linear_copy(void *destination, const void *source, size_t bytes,
                                 enum cudaMemcpyKind kind, CUDA_MEMCPY3D *to)
{
    *to = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                          .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                          .srcPitch = bytes,
                          .srcHeight = 1,
                          .dstPitch = bytes,
                          .dstHeight = 1,
                          .WidthInBytes = bytes,
                          .Height = 1,
                          .Depth = 1};
    gpusim_memory_types(kind, &to->srcMemoryType, &to->dstMemoryType);
    set_source(to, source);
    set_destination(to, destination);
}

static enum cudaMemcpyKind kind_of_copy(CUmemorytype source, CUmemorytype destination)
{
    if (source == CU_MEMORYTYPE_UNIFIED || destination == CU_MEMORYTYPE_UNIFIED)
        return cudaMemcpyDefault;
    if (source == CU_MEMORYTYPE_HOST)
        return destination == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
    return destination == CU_MEMORYTYPE_HOST ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

void gpusim_describe_copy_back(const CUDA_MEMCPY3D *from, struct cudaMemcpy3DParms *to)
{
    cudaArray_t source = (cudaArray_t)from->srcArray;
    cudaArray_t destination = (cudaArray_t)from->dstArray;
    bool from_array = from->srcMemoryType == CU_MEMORYTYPE_ARRAY;
    bool to_array = from->dstMemoryType == CU_MEMORYTYPE_ARRAY;
    size_t unit = unit_bytes(from_array ? source : NULL, to_array ? destination : NULL);
    if (unit == 0)
        unit = 1;
    *to = (struct cudaMemcpy3DParms){
        .srcPos = {from->srcXInBytes / (from_array ? unit : 1), from->srcY, from->srcZ},
        .dstPos = {from->dstXInBytes / (to_array ? unit : 1), from->dstY, from->dstZ},
        .extent = {from->WidthInBytes / unit, from->Height, from->Depth},
        .kind = kind_of_copy(from->srcMemoryType, from->dstMemoryType)};
    if (from_array)
        to->srcArray = source;
    else
        to->srcPtr = (struct cudaPitchedPtr){from->srcMemoryType == CU_MEMORYTYPE_HOST
                                                 ? (void *)(uintptr_t)from->srcHost
                                                 : gpusim_pointer(from->srcDevice),
                                             from->srcPitch, from->srcPitch, from->srcHeight};
    if (to_array)
        to->dstArray = destination;
    else
        to->dstPtr = (struct cudaPitchedPtr){from->dstMemoryType == CU_MEMORYTYPE_HOST
                                                 ? from->dstHost
                                                 : gpusim_pointer(from->dstDevice),
                                             from->dstPitch, from->dstPitch, from->dstHeight};
}
