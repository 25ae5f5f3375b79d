/* Random program: arrays and mipmapped arrays of all shapes. */
#include "random.h"

struct old_array {
    unsigned width, height;
    CUarray_format format;
    unsigned channels;
};
struct old_array_3d {
    unsigned width, height, depth;
    CUarray_format format;
    unsigned channels, flags;
};
CUresult cuArrayCreate_v1(CUarray *, const struct old_array *) __asm__("cuArrayCreate");
CUresult cuArray3DCreate_v1(CUarray *, const struct old_array_3d *) __asm__("cuArray3DCreate");

static void create_array(void)
{
    CUarray array = NULL;
    cudaArray_t runtime_array = NULL;
    const struct cudaChannelFormatDesc format = {8 << pick(3), 0, 0, 0,
                                                 cudaChannelFormatKindUnsigned};
    unsigned width = 1 + pick(300), height = pick(200), depth = height ? pick(10) : 0;
    unsigned channels = 1u << pick(3);
    CUDA_ARRAY_DESCRIPTOR flat = {width, height, CU_AD_FORMAT_FLOAT, channels};
    CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = width,
                                     .Height = height,
                                     .Depth = depth,
                                     .Format = CU_AD_FORMAT_HALF,
                                     .NumChannels = channels,
                                     .Flags = pick(2) && depth ? CUDA_ARRAY3D_LAYERED : 0};
    int result;
    switch (pick(6)) {
    case 0:
        result = LOG(cudaMallocArray(&runtime_array, &format, width, height, 0));
        break;
    case 1:
        result = LOG(cudaMalloc3DArray(&runtime_array, &format,
                                       (struct cudaExtent){width, height, depth}, 0));
        break;
    case 2:
        result = LOG(cuArrayCreate(&array, &flat));
        break;
    case 3:
        result = LOG_AS(
            "cuArrayCreate",
            cuArrayCreate_v1(&array, &(struct old_array){width, height, flat.Format, channels}));
        break;
    case 4:
        result = LOG(cuArray3DCreate(&array, &shape));
        break;
    default:
        result = LOG_AS("cuArray3DCreate",
                        cuArray3DCreate_v1(&array, &(struct old_array_3d){width, height, depth,
                                                                          CU_AD_FORMAT_SIGNED_INT16,
                                                                          channels, 0}));
    }
    if (result == 0)
        keep((struct object){.family = ARRAY,
                             .pointer = array ? (void *)array : (void *)runtime_array,
                             .in_context = 1});
}

static void create_mipmapped(void)
{
    cudaMipmappedArray_t runtime_array = NULL;
    CUmipmappedArray array = NULL;
    const struct cudaChannelFormatDesc format = {8 << pick(3), 0, 0, 0,
                                                 cudaChannelFormatKindUnsigned};
    const CUDA_ARRAY3D_DESCRIPTOR shape = {
        .Width = 64, .Height = 32, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 2};
    const unsigned levels = 1 + pick(6);
    if (pick(2)) {
        if (LOG(cudaMallocMipmappedArray(&runtime_array, &format, (struct cudaExtent){64, 64, 0},
                                         levels, 0)) == 0)
            keep((struct object){.family = MIPMAPPED, .pointer = runtime_array, .in_context = 1});
    } else if (LOG(cuMipmappedArrayCreate(&array, &shape, levels)) == 0) {
        keep((struct object){.family = MIPMAPPED, .pointer = array, .in_context = 1});
    }
}

void array_step(void)
{
    pick(3) ? create_array() : create_mipmapped();
}

int free_array(struct object object)
{
    return pick(2) ? LOG(cudaFreeArray(object.pointer)) : LOG(cuArrayDestroy(object.pointer));
}

int free_mipmapped(struct object object)
{
    return pick(2) ? LOG(cudaFreeMipmappedArray(object.pointer))
                   : LOG(cuMipmappedArrayDestroy(object.pointer));
}
