/*
 * Tensor maps: what kernels need to copy tiles of a tensor by TMA. A map is a value of the
 * program's own, 128 bytes that nothing here ever reads but cuTensorMapReplaceAddress, so that a
 * map says where the tensor is and no more. What is refused, and for which compute capability,
 * is the text of cuda.h.
 */
#include "driver.h"
#include "profile.h"

#include <string.h>

/* Data types whose elements are packed: headers before CUDA 12.8 do not name them. */
enum { PACKED_U4_BY_8 = 13, PACKED_U4_BY_16, PACKED_U6_BY_16, DATA_TYPES };

enum { SWIZZLE_128B = 3, SWIZZLE_128B_ATOM_32B, SWIZZLE_128B_FLIP_8B, SWIZZLES = 7 };

enum { RANK_MOST = 5, TMA_MAJOR = 9, WIDE_MAJOR = 10 };

static const char magic[8] = "gpusimTM";

/* What all ways to describe a tensor have in common. */
struct tensor {
    CUtensorMap *map;
    unsigned int type;
    unsigned int rank;
    void *address;
    const cuuint64_t *dimensions;
    const cuuint64_t *strides; /* bytes; one fewer than dimensions */
    const cuuint32_t *steps;
    unsigned int interleave;
    unsigned int swizzle;
    unsigned int promotion;
    unsigned int fill;
    uint64_t inner; /* elements that are copied along the first dimension */
};

static bool has_gaps(unsigned int type)
{
    return type == PACKED_U4_BY_16 || type == PACKED_U6_BY_16;
}

/* In shared memory, where the swizzle is: packed values have their gaps. */
static unsigned int element_bits(unsigned int type)
{
    static const unsigned char bits[DATA_TYPES] = {8,  16, 32, 32, 64, 64, 16, 32,
                                                   64, 16, 32, 32, 32, 4,  8,  8};
    return bits[type];
}

static bool are_enumerators(const struct tensor *tensor)
{
    return tensor->type < DATA_TYPES && tensor->interleave <= CU_TENSOR_MAP_INTERLEAVE_32B &&
           tensor->swizzle < SWIZZLES && tensor->promotion <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B &&
           tensor->fill <= CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
}

static unsigned int alignment(const struct tensor *tensor)
{
    return has_gaps(tensor->type) || tensor->interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
}

static bool are_extents_valid(const struct tensor *tensor)
{
    for (unsigned int i = 0; i < tensor->rank; i++) {
        const bool is_step_ignored = i == 0 && !tensor->interleave;

        if (!tensor->dimensions[i] || tensor->dimensions[i] > 1ull << 32)
            return false;
        if (!is_step_ignored && (!tensor->steps[i] || tensor->steps[i] > 8))
            return false;
        if (i + 1 < tensor->rank &&
            (tensor->strides[i] % alignment(tensor) != 0 || tensor->strides[i] >= 1ull << 40))
            return false;
    }
    return tensor->dimensions[0] % (has_gaps(tensor->type)           ? 128
                                    : tensor->type == PACKED_U4_BY_8 ? 2
                                                                     : 1) ==
           0;
}

/* The pattern of banks: what is copied of a row must not be longer. */
static bool is_swizzle_valid(const struct tensor *tensor)
{
    const uint64_t bytes = tensor->inner * element_bits(tensor->type) / 8;
    const uint64_t most =
        tensor->swizzle >= SWIZZLE_128B ? 128 : 16ull << tensor->swizzle; /* 32B, 64B */

    if (tensor->interleave == CU_TENSOR_MAP_INTERLEAVE_32B &&
        tensor->swizzle != CU_TENSOR_MAP_SWIZZLE_32B)
        return false;
    if (has_gaps(tensor->type) &&
        ((tensor->swizzle && tensor->swizzle < SWIZZLE_128B) ||
         tensor->swizzle == SWIZZLE_128B_FLIP_8B ||
         (tensor->swizzle > SWIZZLE_128B_ATOM_32B && tensor->type == PACKED_U4_BY_16)))
        return false;
    if (tensor->type == PACKED_U6_BY_16 && tensor->interleave)
        return false;
    return tensor->interleave || !tensor->swizzle || bytes <= most;
}

static CUresult encode_tensor_map(const struct tensor *tensor, unsigned int rank_least)
{
    const uintptr_t address = (uintptr_t)tensor->address;
    uint64_t words[sizeof(CUtensorMap) / sizeof(uint64_t)] = {0};

    if (gpusim_profile.major < TMA_MAJOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!tensor->map || (uintptr_t)tensor->map % 64 != 0 || !tensor->dimensions ||
        (tensor->rank > 1 && !tensor->strides) || !tensor->steps || !are_enumerators(tensor) ||
        tensor->rank < rank_least || tensor->rank > RANK_MOST ||
        (tensor->interleave && tensor->rank < 3) || address % alignment(tensor) != 0 ||
        !are_extents_valid(tensor) || !is_swizzle_valid(tensor))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&words[0], magic, sizeof(magic));
    words[1] = address;
    words[2] = alignment(tensor);
    memcpy(tensor->map, words, sizeof(words));
    return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                void *address, const cuuint64_t *dimensions,
                                const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill)
{
    GPUSIM_ENTER();
    const struct tensor tensor = {map,        type,      rank,  address,
                                  dimensions, strides,   steps, interleave,
                                  swizzle,    promotion, fill,  box ? box[0] : 0};

    if (gpusim_profile.major >= TMA_MAJOR &&
        (!box || rank > RANK_MOST || (unsigned int)type >= DATA_TYPES))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; gpusim_profile.major >= TMA_MAJOR && i < rank; i++)
        if (!box[i] || box[i] > 256)
            return CUDA_ERROR_INVALID_VALUE;
    if (gpusim_profile.major >= TMA_MAJOR && rank &&
        ((!interleave && (uint64_t)box[0] * element_bits(type) % 128 != 0) ||
         (has_gaps(type) && box[0] != 128)))
        return CUDA_ERROR_INVALID_VALUE;
    return encode_tensor_map(&tensor, 1);
}

/* Whether one side of the box, {D, H, W} as far as the tensor has them, is in what `rank` leaves room for. */
static bool are_corners_valid(unsigned int rank, const int *lower, const int *upper)
{
    static const int most[RANK_MOST + 1] = {0, 0, 0, 32767, 127, 15};

    for (unsigned int i = 0; i + 2 < rank; i++)
        if (lower[i] < -most[rank] - 1 || lower[i] > most[rank] || upper[i] < -most[rank] - 1 ||
            upper[i] > most[rank])
            return false;
    return true;
}

static bool are_pixels_valid(unsigned int type, cuuint32_t channels, cuuint32_t pixels)
{
    return channels && channels <= 256 && pixels <= 1024 && (!has_gaps(type) || channels == 128);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                 void *address, const cuuint64_t *dimensions,
                                 const cuuint64_t *strides, const int *lower, const int *upper,
                                 cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *steps,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    GPUSIM_ENTER();
    const struct tensor tensor = {map,   type,       rank,    address,   dimensions, strides,
                                  steps, interleave, swizzle, promotion, fill,       channels};

    if (gpusim_profile.major >= TMA_MAJOR &&
        (!lower || !upper || rank < 3 || rank > RANK_MOST ||
         !are_corners_valid(rank, lower, upper) || !are_pixels_valid(type, channels, pixels)))
        return CUDA_ERROR_INVALID_VALUE;
    return encode_tensor_map(&tensor, 3);
}

#if CUDA_VERSION >= 12080
CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                     void *address, const cuuint64_t *dimensions,
                                     const cuuint64_t *strides, int lower, int upper,
                                     cuuint32_t channels, cuuint32_t pixels,
                                     const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                     CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
                                     CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    GPUSIM_ENTER();
    const struct tensor tensor = {map,   type,       rank,    address,   dimensions, strides,
                                  steps, interleave, swizzle, promotion, fill,       channels};
    const bool is_of_tile = mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W;

    if (gpusim_profile.major < WIDE_MAJOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    if ((unsigned int)mode > CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128 ||
        !are_corners_valid(3, &lower, &upper) ||
        !are_pixels_valid(type, channels, is_of_tile ? pixels : 0) ||
        ((unsigned int)swizzle != CU_TENSOR_MAP_SWIZZLE_64B &&
         (unsigned int)swizzle != SWIZZLE_128B && (unsigned int)swizzle != SWIZZLE_128B_ATOM_32B))
        return CUDA_ERROR_INVALID_VALUE;
    return encode_tensor_map(&tensor, 3);
}
#endif

CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
    GPUSIM_ENTER();
    uint64_t words[3];

    if (gpusim_profile.major < TMA_MAJOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!map || (uintptr_t)map % 64 != 0)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(words, map, sizeof(words));
    if (memcmp(words, magic, sizeof(magic)) != 0 || (uintptr_t)address % words[2] != 0)
        return CUDA_ERROR_INVALID_VALUE;
    words[1] = (uintptr_t)address;
    memcpy(map, words, sizeof(words));
    return CUDA_SUCCESS;
}
