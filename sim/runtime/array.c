/*
 * CUDA arrays: creation, geometry and the translation of channel descriptions into the driver's
 * element formats.
 */
#include "runtime.h"
#include <string.h>

/* A format that is not three plain facts (bits, kind, channels) has a runtime kind of its own. */
static const struct {
    enum cudaChannelFormatKind kind;
    int bits;
    CUarray_format format;
    unsigned channels; /* 0: as many as the description has */
} formats[] = {
    {cudaChannelFormatKindUnsigned, 8, CU_AD_FORMAT_UNSIGNED_INT8, 0},
    {cudaChannelFormatKindUnsigned, 16, CU_AD_FORMAT_UNSIGNED_INT16, 0},
    {cudaChannelFormatKindUnsigned, 32, CU_AD_FORMAT_UNSIGNED_INT32, 0},
    {cudaChannelFormatKindSigned, 8, CU_AD_FORMAT_SIGNED_INT8, 0},
    {cudaChannelFormatKindSigned, 16, CU_AD_FORMAT_SIGNED_INT16, 0},
    {cudaChannelFormatKindSigned, 32, CU_AD_FORMAT_SIGNED_INT32, 0},
    {cudaChannelFormatKindFloat, 16, CU_AD_FORMAT_HALF, 0},
    {cudaChannelFormatKindFloat, 32, CU_AD_FORMAT_FLOAT, 0},
    {cudaChannelFormatKindNV12, 8, CU_AD_FORMAT_NV12, 3},
    {cudaChannelFormatKindUnsignedNormalized8X1, 8, CU_AD_FORMAT_UNORM_INT8X1, 1},
    {cudaChannelFormatKindUnsignedNormalized8X2, 8, CU_AD_FORMAT_UNORM_INT8X2, 2},
    {cudaChannelFormatKindUnsignedNormalized8X4, 8, CU_AD_FORMAT_UNORM_INT8X4, 4},
    {cudaChannelFormatKindUnsignedNormalized16X1, 16, CU_AD_FORMAT_UNORM_INT16X1, 1},
    {cudaChannelFormatKindUnsignedNormalized16X2, 16, CU_AD_FORMAT_UNORM_INT16X2, 2},
    {cudaChannelFormatKindUnsignedNormalized16X4, 16, CU_AD_FORMAT_UNORM_INT16X4, 4},
    {cudaChannelFormatKindSignedNormalized8X1, 8, CU_AD_FORMAT_SNORM_INT8X1, 1},
    {cudaChannelFormatKindSignedNormalized8X2, 8, CU_AD_FORMAT_SNORM_INT8X2, 2},
    {cudaChannelFormatKindSignedNormalized8X4, 8, CU_AD_FORMAT_SNORM_INT8X4, 4},
    {cudaChannelFormatKindSignedNormalized16X1, 16, CU_AD_FORMAT_SNORM_INT16X1, 1},
    {cudaChannelFormatKindSignedNormalized16X2, 16, CU_AD_FORMAT_SNORM_INT16X2, 2},
    {cudaChannelFormatKindSignedNormalized16X4, 16, CU_AD_FORMAT_SNORM_INT16X4, 4},
    {cudaChannelFormatKindUnsignedBlockCompressed1, 8, CU_AD_FORMAT_BC1_UNORM, 4},
    {cudaChannelFormatKindUnsignedBlockCompressed1SRGB, 8, CU_AD_FORMAT_BC1_UNORM_SRGB, 4},
    {cudaChannelFormatKindUnsignedBlockCompressed2, 8, CU_AD_FORMAT_BC2_UNORM, 4},
    {cudaChannelFormatKindUnsignedBlockCompressed2SRGB, 8, CU_AD_FORMAT_BC2_UNORM_SRGB, 4},
    {cudaChannelFormatKindUnsignedBlockCompressed3, 8, CU_AD_FORMAT_BC3_UNORM, 4},
    {cudaChannelFormatKindUnsignedBlockCompressed3SRGB, 8, CU_AD_FORMAT_BC3_UNORM_SRGB, 4},
    {cudaChannelFormatKindUnsignedBlockCompressed4, 8, CU_AD_FORMAT_BC4_UNORM, 1},
    {cudaChannelFormatKindSignedBlockCompressed4, 8, CU_AD_FORMAT_BC4_SNORM, 1},
    {cudaChannelFormatKindUnsignedBlockCompressed5, 8, CU_AD_FORMAT_BC5_UNORM, 2},
    {cudaChannelFormatKindSignedBlockCompressed5, 8, CU_AD_FORMAT_BC5_SNORM, 2},
    {cudaChannelFormatKindUnsignedBlockCompressed6H, 16, CU_AD_FORMAT_BC6H_UF16, 3},
    {cudaChannelFormatKindSignedBlockCompressed6H, 16, CU_AD_FORMAT_BC6H_SF16, 3},
    {cudaChannelFormatKindUnsignedBlockCompressed7, 8, CU_AD_FORMAT_BC7_UNORM, 4},
    {cudaChannelFormatKindUnsignedBlockCompressed7SRGB, 8, CU_AD_FORMAT_BC7_UNORM_SRGB, 4},
    {cudaChannelFormatKindUnsignedNormalized1010102, 10, CU_AD_FORMAT_UNORM_INT_101010_2, 4},
};
#define FORMATS (sizeof formats / sizeof formats[0])

cudaError_t gpusim_array_format(const struct cudaChannelFormatDesc *channels,
                                CUarray_format *format, unsigned *channel_count)
{
    if (!channels)
        return cudaErrorInvalidValue;
    int bits[] = {channels->x, channels->y, channels->z, channels->w};
    unsigned count = 0;
    while (count < 4 && bits[count] != 0)
        count++;
    for (size_t i = 0; i < FORMATS; i++) {
        if (formats[i].kind != channels->f || formats[i].bits != bits[0])
            continue;
        *format = formats[i].format;
        *channel_count = formats[i].channels ? formats[i].channels : count;
        return cudaSuccess;
    }
    return cudaErrorInvalidChannelDescriptor;
}

struct cudaChannelFormatDesc gpusim_channel_description(CUarray_format format,
                                                        unsigned channel_count)
{
    for (size_t i = 0; i < FORMATS; i++) {
        if (formats[i].format != format)
            continue;
        int bits = formats[i].bits;
        return (struct cudaChannelFormatDesc){.x = bits,
                                              .y = channel_count > 1 ? bits : 0,
                                              .z = channel_count > 2 ? bits : 0,
                                              .w = channel_count > 3 ? bits : 0,
                                              .f = formats[i].kind};
    }
    return (struct cudaChannelFormatDesc){.f = cudaChannelFormatKindNone};
}

static cudaError_t describe_array(const struct cudaChannelFormatDesc *channels,
                                  struct cudaExtent extent, unsigned flags,
                                  CUDA_ARRAY3D_DESCRIPTOR *description)
{
    *description = (CUDA_ARRAY3D_DESCRIPTOR){
        .Width = extent.width, .Height = extent.height, .Depth = extent.depth, .Flags = flags};
    return gpusim_array_format(channels, &description->Format, &description->NumChannels);
}

size_t gpusim_array_element_bytes(CUarray array)
{
    CUDA_ARRAY3D_DESCRIPTOR description;
    if (DRIVER(cuArray3DGetDescriptor, 3020)(&description, array) != CUDA_SUCCESS)
        return 0;
    struct cudaChannelFormatDesc channels =
        gpusim_channel_description(description.Format, description.NumChannels);
    return (size_t)channels.x / 8 * description.NumChannels;
}

/* The runtime's array types are the driver's under other names. */
static CUarray *array_out(cudaArray_t *array)
{
    return (CUarray *)(void *)array;
}

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *channels,
                              struct cudaExtent extent, unsigned int flags)
{
    CUDA_ARRAY3D_DESCRIPTOR description;
    cudaError_t error =
        array ? describe_array(channels, extent, flags, &description) : cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return gpusim_fail(error);
    return CALL(cuArray3DCreate, 3020, array_out(array), &description);
}

cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *channels,
                            size_t width, size_t height, unsigned int flags)
{
    struct cudaExtent extent = {.width = width, .height = height};
    if (flags != cudaArrayDefault)
        return cudaMalloc3DArray(array, channels, extent, flags);
    CUDA_ARRAY_DESCRIPTOR description = {.Width = width, .Height = height};
    cudaError_t error =
        array ? gpusim_array_format(channels, &description.Format, &description.NumChannels)
              : cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return gpusim_fail(error);
    return CALL(cuArrayCreate, 3020, array_out(array), &description);
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    return array ? gpusim_finish(DRIVER(cuArrayDestroy, 2000)((CUarray)array)) : cudaSuccess;
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *mipmap,
                                     const struct cudaChannelFormatDesc *channels,
                                     struct cudaExtent extent, unsigned int levels,
                                     unsigned int flags)
{
    CUDA_ARRAY3D_DESCRIPTOR description;
    cudaError_t error =
        mipmap ? describe_array(channels, extent, flags, &description) : cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return gpusim_fail(error);
    return CALL(cuMipmappedArrayCreate, 5000, (CUmipmappedArray *)(void *)mipmap, &description,
                levels);
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmap)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    return mipmap ? gpusim_finish(DRIVER(cuMipmappedArrayDestroy, 5000)((CUmipmappedArray)mipmap))
                  : cudaSuccess;
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *level, cudaMipmappedArray_const_t mipmap,
                                       unsigned int index)
{
    return CALL(cuMipmappedArrayGetLevel, 5000, array_out(level),
                (CUmipmappedArray)(uintptr_t)mipmap, index);
}

cudaError_t cudaArrayGetPlane(cudaArray_t *plane, cudaArray_t array, unsigned int index)
{
    return CALL(cuArrayGetPlane, 11020, array_out(plane), (CUarray)array, index);
}

cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *channels, struct cudaExtent *extent,
                             unsigned int *flags, cudaArray_t array)
{
    CUDA_ARRAY3D_DESCRIPTOR description;
    cudaError_t error = CALL(cuArray3DGetDescriptor, 3020, &description, (CUarray)array);
    if (error != cudaSuccess)
        return error;
    if (channels)
        *channels = gpusim_channel_description(description.Format, description.NumChannels);
    if (extent)
        *extent = (struct cudaExtent){description.Width, description.Height, description.Depth};
    if (flags)
        *flags = description.Flags;
    return cudaSuccess;
}

cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *channels, cudaArray_const_t array)
{
    if (!channels)
        return gpusim_fail(cudaErrorInvalidValue);
    return cudaArrayGetInfo(channels, NULL, NULL, (cudaArray_t)(uintptr_t)array);
}

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                   enum cudaChannelFormatKind kind)
{
    return (struct cudaChannelFormatDesc){x, y, z, w, kind};
}

_Static_assert(sizeof(struct cudaArrayMemoryRequirements) == sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS),
               "same layout");
_Static_assert(sizeof(struct cudaArraySparseProperties) == sizeof(CUDA_ARRAY_SPARSE_PROPERTIES),
               "same layout");

cudaError_t cudaArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *requirements,
                                           cudaArray_t array, int device)
{
    return CALL(cuArrayGetMemoryRequirements, 11060,
                (CUDA_ARRAY_MEMORY_REQUIREMENTS *)(void *)requirements, (CUarray)array, device);
}

cudaError_t
cudaMipmappedArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *requirements,
                                        cudaMipmappedArray_t mipmap, int device)
{
    return CALL(cuMipmappedArrayGetMemoryRequirements, 11060,
                (CUDA_ARRAY_MEMORY_REQUIREMENTS *)(void *)requirements, (CUmipmappedArray)mipmap,
                device);
}

cudaError_t cudaArrayGetSparseProperties(struct cudaArraySparseProperties *properties,
                                         cudaArray_t array)
{
    return CALL(cuArrayGetSparseProperties, 11010,
                (CUDA_ARRAY_SPARSE_PROPERTIES *)(void *)properties, (CUarray)array);
}

cudaError_t cudaMipmappedArrayGetSparseProperties(struct cudaArraySparseProperties *properties,
                                                  cudaMipmappedArray_t mipmap)
{
    return CALL(cuMipmappedArrayGetSparseProperties, 11010,
                (CUDA_ARRAY_SPARSE_PROPERTIES *)(void *)properties, (CUmipmappedArray)mipmap);
}
