/*
 * Arrays of the simulated driver: shapes, the estimate of their bytes, levels, copies, errors.
 */
#include "support.h"

#include <string.h>

static void an_array_counts_its_estimate(void **state)
{
    CUDA_ARRAY_DESCRIPTOR descriptor = {
        .Width = 100, .Height = 50, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 2};
    CUarray array;

    (void)state;
    assert_ok(cuArrayCreate(&array, &descriptor));
    assert_int_equal(DELTA(0, GPUSIM_ARRAY, live), 100 * 50 * 2 * 4);
    memset(&descriptor, 0, sizeof(descriptor));
    assert_ok(cuArrayGetDescriptor(&descriptor, array));
    assert_int_equal(descriptor.Height, 50);
    assert_ok(cuArrayDestroy(array));
    assert_cuda(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(array));
    assert_int_equal(DELTA(0, GPUSIM_ARRAY, frees), 1);
}

static void layers_count_and_sparse_arrays_hold_nothing(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR layered = {.Width = 8,
                                       .Height = 0,
                                       .Depth = 3,
                                       .Format = CU_AD_FORMAT_HALF,
                                       .NumChannels = 1,
                                       .Flags = CUDA_ARRAY3D_LAYERED};
    CUDA_ARRAY3D_DESCRIPTOR sparse = {.Width = 4096,
                                      .Height = 4096,
                                      .Format = CU_AD_FORMAT_FLOAT,
                                      .NumChannels = 1,
                                      .Flags = CUDA_ARRAY3D_SPARSE};
    CUDA_ARRAY3D_DESCRIPTOR cube = {.Width = 4,
                                    .Height = 4,
                                    .Depth = 5,
                                    .Format = CU_AD_FORMAT_FLOAT,
                                    .NumChannels = 1,
                                    .Flags = CUDA_ARRAY3D_CUBEMAP};
    CUarray first, second;

    (void)state;
    assert_ok(cuArray3DCreate(&first, &layered));
    assert_int_equal(DELTA(0, GPUSIM_ARRAY, live), 8 * 3 * 2);
    assert_ok(cuArray3DCreate(&second, &sparse));
    assert_int_equal(DELTA(0, GPUSIM_ARRAY, live), 8 * 3 * 2);
    assert_int_equal(DELTA(0, GPUSIM_ARRAY, allocs), 2);
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&second, &cube));
    cube.Depth = 6;
    assert_ok(cuArrayDestroy(second));
    assert_ok(cuArray3DCreate(&second, &cube));
    assert_ok(cuArrayDestroy(first));
    assert_ok(cuArrayDestroy(second));
}

static void levels_of_a_mipmap_share_its_storage(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {
        .Width = 16, .Height = 8, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    CUDA_ARRAY3D_DESCRIPTOR level_descriptor;
    CUmipmappedArray mipmap;
    CUarray level;

    (void)state;
    assert_ok(cuMipmappedArrayCreate(&mipmap, &descriptor, 5));
    assert_int_equal(DELTA(0, GPUSIM_ARRAY, live), 128 + 32 + 8 + 2 + 1);
    assert_ok(cuMipmappedArrayGetLevel(&level, mipmap, 1));
    assert_ok(cuArray3DGetDescriptor(&level_descriptor, level));
    assert_int_equal(level_descriptor.Width, 8);
    assert_int_equal(level_descriptor.Height, 4);
    assert_cuda(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(level));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&level, mipmap, 5));
    assert_ok(cuMipmappedArrayDestroy(mipmap));
    assert_cuda(CUDA_ERROR_INVALID_HANDLE, cuArray3DGetDescriptor(&level_descriptor, level));
    assert_int_equal(DELTA(0, GPUSIM_ARRAY, allocs), 1);
    assert_int_equal(DELTA(0, GPUSIM_ARRAY, frees), 1);
}

static void planes_of_a_video_array_share_its_storage(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {
        .Width = 64, .Height = 32, .Format = CU_AD_FORMAT_NV12, .NumChannels = 2};
    CUarray array, plane, again;
    CUDA_ARRAY3D_DESCRIPTOR of_plane;

    (void)state;
    if (cuArray3DCreate(&array, &descriptor) != CUDA_SUCCESS)
        fail();
    assert_ok(cuArrayGetPlane(&plane, array, 1));
    assert_ok(cuArrayGetPlane(&again, array, 1));
    assert_ptr_equal(plane, again);
    assert_ok(cuArray3DGetDescriptor(&of_plane, plane));
    assert_int_equal(of_plane.Width, 32);
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuArrayGetPlane(&plane, array, 2));
    assert_int_equal(DELTA(0, GPUSIM_ARRAY, allocs), 1);
    assert_ok(cuArrayDestroy(array));
}

static void arrays_are_copied_inside_their_bounds(void **state)
{
    CUDA_ARRAY_DESCRIPTOR descriptor = {
        .Width = 4, .Height = 3, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
    unsigned int out[12], in[12] = {0};
    CUarray array, copy;

    (void)state;
    for (unsigned int i = 0; i < 12; i++)
        out[i] = i * i;
    assert_ok(cuArrayCreate(&array, &descriptor));
    assert_ok(cuArrayCreate(&copy, &descriptor));
    CUDA_MEMCPY2D box = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                         .srcHost = out,
                         .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                         .dstArray = array,
                         .WidthInBytes = 16,
                         .Height = 3};
    assert_ok(cuMemcpy2D(&box));
    assert_ok(cuMemcpyAtoA(copy, 0, array, 0, 16)); /* the first row */
    assert_ok(cuMemcpyAtoH(in, copy, 4, 12));
    assert_memory_equal(in, out + 1, 12);
    box.Height = 4;
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&box));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoH(in, copy, 8, 12));
    assert_ok(cuArrayDestroy(copy));
    assert_cuda(CUDA_ERROR_INVALID_HANDLE, cuMemcpyAtoH(in, copy, 0, 4));
    assert_ok(cuArrayDestroy(array));
}

static void an_array_goes_with_its_context(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR planar = {
        .Width = 64, .Height = 32, .Format = CU_AD_FORMAT_NV12, .NumChannels = 2};
    CUcontext own;
    CUarray array, plane;
    CUmipmappedArray mipmap;

    (void)state;
    assert_ok(cuCtxCreate(&own, NULL, 0, 1));
    assert_ok(cuArray3DCreate(&array, &planar));
    assert_ok(cuArrayGetPlane(&plane, array, 0));
    assert_ok(cuMipmappedArrayCreate(&mipmap, &planar, 2));
    assert_ok(cuCtxDestroy(own));
    assert_int_equal(DELTA(1, GPUSIM_ARRAY, implicit_frees), 2);
    assert_int_equal(DELTA(1, GPUSIM_ARRAY, frees), 0);
    assert_cuda(CUDA_ERROR_INVALID_HANDLE, cuArray3DGetDescriptor(&planar, plane));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_test, end_test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_array_counts_its_estimate),
        TEST(layers_count_and_sparse_arrays_hold_nothing),
        TEST(levels_of_a_mipmap_share_its_storage),
        TEST(planes_of_a_video_array_share_its_storage),
        TEST(arrays_are_copied_inside_their_bounds),
        TEST(an_array_goes_with_its_context),
    };

    return cmocka_run_group_tests(tests, start_driver, NULL);
}
