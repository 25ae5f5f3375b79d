/* The runtime hooks add the name of the call, and a record if no driver hook made one. */
#include "fake.h"

#define OUT_OF_MEMORY 2

REAL(CUresult, cuMemAlloc_v2, (CUdeviceptr * address, size_t size), { *address = 0x7000; })
REAL(CUresult, cuMemFree_v2, (CUdeviceptr address), {})

/* A runtime on top of the hooked driver, */
static cudaError_t real_cudaMalloc(void **address, size_t size)
{
    CUdeviceptr allocated = 0;
    CUresult result = cuMemAlloc_v2(&allocated, size);
    if (result == 0)
        *address = (void *)(uintptr_t)allocated;
    return result;
}

static cudaError_t real_cudaFree(void *address)
{
    return cuMemFree_v2((CUdeviceptr)(uintptr_t)address);
}

/* and one that has its own ways. */
REAL(cudaError_t, cudaMallocPitch, (void **address, size_t *pitch, size_t width, size_t height), {
    *address = (void *)0x7000;
    *pitch = 512;
})
REAL(cudaError_t, cudaMallocManaged, (void **address, size_t size, unsigned int flags),
     { *address = (void *)0x7000; })
REAL(cudaError_t, cudaMalloc3D, (struct cudaPitchedPtr * pitched, struct cudaExtent extent),
     { *pitched = (struct cudaPitchedPtr){.ptr = (void *)0x7000, .pitch = 512}; })
REAL(cudaError_t, cudaHostAlloc, (void **address, size_t size, unsigned int flags),
     { *address = NULL; })
REAL(cudaError_t, cudaFreeHost, (void *address), {})
REAL(cudaError_t, cudaMallocArray,
     (cudaArray_t * array, const struct cudaChannelFormatDesc *format, size_t width, size_t height,
      unsigned int flags),
     { *array = (cudaArray_t)0xa000; })
REAL(cudaError_t, cudaMemcpy, (void *to, const void *from, size_t size, enum cudaMemcpyKind kind),
     {})
REAL(cudaError_t, cudaMemcpy3D, (const struct cudaMemcpy3DParms *copy), {})
REAL(cudaError_t, cudaMemcpy3DPeer, (const struct cudaMemcpy3DPeerParms *copy), {})
REAL(cudaError_t, cudaMemset3D,
     (struct cudaPitchedPtr pitched, int value, struct cudaExtent extent), {})
REAL(cudaError_t, cudaDeviceReset, (void), {})
REAL(cudaError_t, cudaSetDevice, (int device), {})
REAL(cudaError_t, cudaMallocAsync_ptsz, (void **address, size_t size, cudaStream_t stream),
     { *address = (void *)0x7000; })

static void one_allocation_is_one_record_under_the_name_of_the_outer_call(void **unused)
{
    void *address = NULL;
    USE(cudaMalloc);
    USE(cudaFree);
    USE(cuMemAlloc_v2);
    USE(cuMemFree_v2);
    assert_int_equal(cudaMalloc(&address, 100), 0);
    assert_ptr_equal(address, (void *)0x7000);
    assert_int_equal(record_count(), 1);
    assert_record(0, GM_EVENT_ALLOC, 0x7000, 100);
    assert_int_equal(record_at(0)->api, GM_API_cudaMalloc);
    assert_int_equal(record_at(0)->flags, 0);
    assert_int_equal(cudaFree(address), 0);
    assert_int_equal(record_count(), 2);
    assert_record(1, GM_EVENT_FREE, 0x7000, 0);
    assert_int_equal(record_at(1)->api, GM_API_cudaFree);
}

static void one_failure_is_one_record_too(void **unused)
{
    void *address = (void *)3;
    USE(cudaMalloc);
    USE(cudaFree);
    USE(cuMemAlloc_v2);
    USE(cuMemFree_v2);
    real_result = OUT_OF_MEMORY;
    assert_int_equal(cudaMalloc(&address, 100), OUT_OF_MEMORY);
    assert_ptr_equal(address, (void *)3);
    assert_int_equal(record_count(), 1);
    assert_record(0, GM_EVENT_ALLOC_FAILED, 0, 100);
    assert_int_equal(cudaFree((void *)0x7000), OUT_OF_MEMORY);
    assert_int_equal(record_count(), 3);
    assert_record(1, GM_EVENT_FREE, 0x7000, 0);
    assert_record(2, GM_EVENT_UNDO, 0x7000, 0);
}

static void a_runtime_with_its_own_ways_is_recorded_at_its_layer(void **unused)
{
    void *address;
    size_t pitch;
    struct cudaPitchedPtr cube;
    USE(cudaMallocManaged);
    USE(cudaMallocPitch);
    USE(cudaMalloc3D);
    cudaMallocManaged(&address, 64, 1);
    assert_record(0, GM_EVENT_ALLOC, 0x7000, 64);
    assert_int_equal(record_at(0)->kind, GM_KIND_MANAGED);
    assert_int_equal(record_at(0)->flags, GM_FLAG_RUNTIME);
    cudaMallocPitch(&address, &pitch, 500, 3);
    assert_record(1, GM_EVENT_ALLOC, 0x7000, 512 * 3);
    cudaMalloc3D(&cube, (struct cudaExtent){500, 3, 2});
    assert_record(2, GM_EVENT_ALLOC, 0x7000, 512 * 3 * 2);
}

REAL(CUresult, cuLaunchKernel,
     (CUfunction function, unsigned int x, unsigned int y, unsigned int z, unsigned int a,
      unsigned int b, unsigned int c, unsigned int shared, CUstream stream, void **parameters,
      void **extra),
     {})
REAL(cudaError_t, cudaStreamCreate, (cudaStream_t * stream), {})
REAL(cudaError_t, cudaLaunchKernel_ptsz,
     (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
      cudaStream_t stream),
     {})

static cudaError_t real_cudaLaunchKernel(const void *function, dim3 grid, dim3 block,
                                         void **arguments, size_t shared, cudaStream_t stream)
{
    return cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static void a_refusal_is_recorded_once_at_the_layer_that_sees_it(void **unused)
{
    const dim3 one = {1, 1, 1};
    cudaStream_t stream;
    void *address;
    USE(cuLaunchKernel);
    USE(cudaLaunchKernel);
    USE(cudaLaunchKernel_ptsz);
    USE(cudaStreamCreate);
    USE(cudaMallocManaged);
    real_result = OUT_OF_MEMORY;
    assert_int_equal(cudaLaunchKernel(NULL, one, one, NULL, 0, NULL), OUT_OF_MEMORY);
    assert_int_equal(record_count(), 1);
    assert_record(0, GM_EVENT_ALLOC_FAILED, 0, 0);
    assert_int_equal(record_at(0)->flags, 0);
    assert_int_equal(cudaLaunchKernel_ptsz(NULL, one, one, NULL, 0, NULL), OUT_OF_MEMORY);
    assert_record(1, GM_EVENT_ALLOC_FAILED, 0, 0);
    assert_int_equal(record_at(1)->flags, GM_FLAG_RUNTIME);
    assert_int_equal(record_at(1)->api, GM_API_cudaLaunchKernel_ptsz);
    assert_int_equal(cudaStreamCreate(&stream), OUT_OF_MEMORY);
    assert_int_equal(record_at(2)->aux, GM_PURPOSE_STREAM);
    assert_int_equal(cudaMallocManaged(&address, 64, 1), OUT_OF_MEMORY);
    assert_record(3, GM_EVENT_ALLOC_FAILED, 0, 64);
    assert_int_equal(record_at(3)->kind, GM_KIND_MANAGED);
    assert_int_equal(record_count(), 4);
}

REAL(cudaError_t, cudaMalloc3DArray,
     (cudaArray_t * array, const struct cudaChannelFormatDesc *format, struct cudaExtent extent,
      unsigned int flags),
     {})

static void a_refused_array_is_recorded_with_its_size(void **unused)
{
    const struct cudaChannelFormatDesc format = {.x = 32};
    const struct cudaExtent extent = {64, 2, 3};
    struct cudaPitchedPtr pitched;
    cudaArray_t array;
    USE(cudaMalloc3D);
    USE(cudaMalloc3DArray);
    real_result = OUT_OF_MEMORY;
    cudaMalloc3D(&pitched, extent);
    cudaMalloc3DArray(&array, &format, extent, 0);
    assert_record(0, GM_EVENT_ALLOC_FAILED, 0, 64 * 2 * 3);
    assert_record(1, GM_EVENT_ALLOC_FAILED, 0, 4 * 64 * 2 * 3);
    assert_int_equal(record_at(1)->kind, GM_KIND_ARRAY);
    real_result = 1;
    cudaMalloc3D(&pitched, extent);
    cudaMalloc3DArray(&array, &format, extent, 0);
    assert_int_equal(record_count(), 2);
}

static void an_allocation_of_nothing_is_not_recorded(void **unused)
{
    void *address;
    USE(cudaHostAlloc); /* succeeds, with NULL */
    assert_int_equal(cudaHostAlloc(&address, 0, 0), 0);
    assert_int_equal(record_count(), 0);
}

static void what_the_runtime_refuses_by_itself_is_not_recorded(void **unused)
{
    void *address;
    USE(cudaMallocManaged);
    USE(cudaFreeHost);
    real_result = 1;
    assert_int_equal(cudaMallocManaged(&address, 64, 99), 1);
    assert_int_equal(cudaFreeHost((void *)0x7000), 1);
    assert_int_equal(record_count(), 0);
}

static void a_free_at_the_runtime_layer_is_recorded_after_its_success(void **unused)
{
    USE(cudaFreeHost);
    assert_int_equal(cudaFreeHost((void *)0x7000), 0);
    assert_int_equal(records_at_call, 0);
    assert_record(0, GM_EVENT_FREE, 0x7000, 0);
    assert_int_equal(record_at(0)->flags, GM_FLAG_RUNTIME);
    cudaFreeHost(NULL);
    assert_int_equal(record_count(), 1);
}

static void an_array_is_estimated_from_the_bits_of_its_format(void **unused)
{
    cudaArray_t array;
    struct cudaChannelFormatDesc format = {.x = 16, .y = 16};
    USE(cudaMallocArray);
    cudaMallocArray(&array, &format, 10, 0, 0);
    assert_record(0, GM_EVENT_ALLOC, 0xa000, 10 * 4);
    assert_int_equal(record_at(0)->flags, GM_FLAG_ESTIMATED | GM_FLAG_RUNTIME);
}

static void a_copy_by_default_leaves_the_direction_to_the_reader(void **unused)
{
    static const enum gm_copy expected[] = {GM_COPY_HOST_TO_HOST, GM_COPY_HOST_TO_DEVICE,
                                            GM_COPY_DEVICE_TO_HOST, GM_COPY_DEVICE_TO_DEVICE,
                                            GM_COPY_UNKNOWN};
    char from[8], to[8];
    USE(cudaMemcpy);
    for (unsigned kind = 0; kind < 5; kind++) {
        cudaMemcpy(to, from, sizeof(to), (enum cudaMemcpyKind)kind);
        assert_record(kind, GM_EVENT_COPY, to, sizeof(to));
        assert_int_equal(record_at(kind)->kind, expected[kind]);
    }
    cudaMemcpy(to, from, sizeof(to), (enum cudaMemcpyKind)12345);
    assert_int_equal(record_at(5)->kind, GM_COPY_UNKNOWN);
}

static void a_copy_of_a_volume_names_both_sides(void **unused)
{
    struct cudaMemcpy3DParms copy = {.srcPtr = {.ptr = (void *)0x8000},
                                     .dstArray = (cudaArray_t)0xa000,
                                     .extent = {10, 3, 2},
                                     .kind = 1};
    struct cudaMemcpy3DPeerParms peer = {
        .srcPtr = {.ptr = (void *)0x8000}, .dstPtr = {.ptr = (void *)0x7000}, .extent = {10, 3, 2}};
    USE(cudaMemcpy3D);
    USE(cudaMemcpy3DPeer);
    cudaMemcpy3D(&copy);
    assert_record(0, GM_EVENT_COPY, 0xa000, 60);
    assert_int_equal(record_at(0)->aux, 0x8000);
    assert_int_equal(record_at(0)->kind, GM_COPY_HOST_TO_DEVICE);
    cudaMemcpy3DPeer(&peer);
    assert_record(1, GM_EVENT_COPY, 0x7000, 60);
    assert_int_equal(record_at(1)->kind, GM_COPY_PEER);
    real_result = 1;
    cudaMemcpy3D(NULL);
    cudaMemcpy3DPeer(NULL);
    assert_int_equal(record_count(), 2);
}

static void a_set_of_a_volume_counts_its_bytes(void **unused)
{
    struct cudaPitchedPtr cube = {.ptr = (void *)0x7000, .pitch = 512};
    USE(cudaMemset3D);
    cudaMemset3D(cube, 0, (struct cudaExtent){10, 3, 2});
    assert_record(0, GM_EVENT_SET, 0x7000, 60);
}

static void a_reset_without_a_driver_call_ends_the_context_of_the_device(void **unused)
{
    USE(cudaDeviceReset);
    USE(cudaSetDevice);
    cudaSetDevice(3);
    cudaDeviceReset();
    assert_int_equal(record_count(), 1);
    assert_record(0, GM_EVENT_CONTEXT_END, 0, 0);
    assert_int_equal(record_at(0)->device, 3);
}

static void the_per_thread_form_is_a_function_of_its_own(void **unused)
{
    void *address;
    USE(cudaMallocAsync_ptsz);
    cudaMallocAsync_ptsz(&address, 64, NULL);
    assert_record(0, GM_EVENT_ALLOC, 0x7000, 64);
    assert_int_equal(record_at(0)->api, GM_API_cudaMallocAsync_ptsz);
    assert_int_equal(record_at(0)->flags, GM_FLAG_RUNTIME | GM_FLAG_ASYNC | GM_FLAG_POOL);
}

#define TEST(name) cmocka_unit_test_setup(name, start_over)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_allocation_is_one_record_under_the_name_of_the_outer_call),
        TEST(one_failure_is_one_record_too),
        TEST(a_runtime_with_its_own_ways_is_recorded_at_its_layer),
        TEST(a_refusal_is_recorded_once_at_the_layer_that_sees_it),
        TEST(an_allocation_of_nothing_is_not_recorded),
        TEST(a_refused_array_is_recorded_with_its_size),
        TEST(what_the_runtime_refuses_by_itself_is_not_recorded),
        TEST(a_free_at_the_runtime_layer_is_recorded_after_its_success),
        TEST(an_array_is_estimated_from_the_bits_of_its_format),
        TEST(a_copy_by_default_leaves_the_direction_to_the_reader),
        TEST(a_copy_of_a_volume_names_both_sides),
        TEST(a_set_of_a_volume_counts_its_bytes),
        TEST(a_reset_without_a_driver_call_ends_the_context_of_the_device),
        TEST(the_per_thread_form_is_a_function_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
