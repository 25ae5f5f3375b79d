/*
 * libcudart.so.12 has the names and signatures of runtime 12 where 13 changed them.
 *
 * The headers are those of 13, so the test opens the library and calls its functions through
 * pointers of the older types.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h> /* needs the headers above */

static void *library;

static void *function(const char *name)
{
    void *address = dlvsym(library, name, "libcudart.so.12");
    assert_non_null(address);
    return address;
}

static int open_library(void **state)
{
    (void)state;
    library = dlopen("libcudart.so.12", RTLD_NOW | RTLD_LOCAL);
    return library ? 0 : -1;
}

static void the_version_is_12_8(void **state)
{
    (void)state;
    cudaError_t (*get_version)(int *) = (cudaError_t(*)(int *))function("cudaRuntimeGetVersion");
    int version = 0;
    assert_int_equal(get_version(&version), cudaSuccess);
    assert_int_equal(version, 12080);
}

/* Offsets in the structures of runtimes 11 and 12, which no installed header declares. */
#define BYTES_11 728
#define BYTES_12 1032
#define MEMORY_OFFSET 288
#define CLOCK_RATE_OFFSET 348

static void properties_have_the_layout_of_12(void **state)
{
    (void)state;
    unsigned char properties[BYTES_12 + 64];
    size_t memory = 0;
    cudaError_t (*get)(void *, int) =
        (cudaError_t(*)(void *, int))function("cudaGetDeviceProperties_v2");
    memset(properties, 0xee, sizeof properties);
    assert_int_equal(get(properties, 0), cudaSuccess);
    memcpy(&memory, properties + MEMORY_OFFSET, sizeof memory);
    assert_int_equal(memory, (size_t)64 << 20);
    int clock_rate = 0;
    memcpy(&clock_rate, properties + CLOCK_RATE_OFFSET, sizeof clock_rate);
    assert_true(clock_rate >= 0);
    assert_int_equal(properties[BYTES_12], 0xee);

    get = (cudaError_t(*)(void *, int))function("cudaGetDeviceProperties");
    memset(properties, 0xee, sizeof properties);
    assert_int_equal(get(properties, 0), cudaSuccess);
    assert_int_equal(properties[BYTES_11], 0xee);
    assert_int_not_equal(properties[BYTES_11 - 1], 0xee);
}

/* As properties_have_the_layout_of_12: 13 made it longer. */
#define POINTER_BYTES_12 24

static void attributes_of_a_pointer_are_no_longer_than_in_12(void **state)
{
    (void)state;
    unsigned char attributes[sizeof(struct cudaPointerAttributes)];
    cudaError_t (*get)(void *, const void *) =
        (cudaError_t(*)(void *, const void *))function("cudaPointerGetAttributes");
    memset(attributes, 0xee, sizeof attributes);
    assert_int_equal(get(attributes, attributes), cudaSuccess);
    assert_int_not_equal(attributes[POINTER_BYTES_12 - 1], 0xee);
    for (size_t i = POINTER_BYTES_12; i < sizeof attributes; i++)
        assert_int_equal(attributes[i], 0xee);
}

static void advice_and_prefetch_take_a_device_number(void **state)
{
    (void)state;
    cudaError_t (*allocate)(void **, size_t, unsigned) =
        (cudaError_t(*)(void **, size_t, unsigned))function("cudaMallocManaged");
    cudaError_t (*advise)(const void *, size_t, enum cudaMemoryAdvise, int) =
        (cudaError_t(*)(const void *, size_t, enum cudaMemoryAdvise, int))function("cudaMemAdvise");
    cudaError_t (*prefetch)(const void *, size_t, int, cudaStream_t) =
        (cudaError_t(*)(const void *, size_t, int, cudaStream_t))function("cudaMemPrefetchAsync");
    cudaError_t (*release)(void *) = (cudaError_t(*)(void *))function("cudaFree");
    void *pointer = NULL;
    assert_int_equal(allocate(&pointer, 4096, cudaMemAttachGlobal), cudaSuccess);
    assert_int_equal(advise(pointer, 4096, cudaMemAdviseSetPreferredLocation, 0), cudaSuccess);
    assert_int_equal(prefetch(pointer, 4096, 0, NULL), cudaSuccess);
    assert_int_equal(prefetch(pointer, 4096, cudaCpuDeviceId, NULL), cudaSuccess);
    assert_int_equal(release(pointer), cudaSuccess);
}

static void batch_copies_report_the_failed_index(void **state)
{
    (void)state;
    typedef cudaError_t (*copy_batch)(void **, void **, size_t *, size_t,
                                      struct cudaMemcpyAttributes *, size_t *, size_t, size_t *,
                                      cudaStream_t);
    cudaError_t (*create)(cudaStream_t *) =
        (cudaError_t(*)(cudaStream_t *))function("cudaStreamCreate");
    cudaError_t (*synchronize)(cudaStream_t) =
        (cudaError_t(*)(cudaStream_t))function("cudaStreamSynchronize");
    int from = 4;
    int to = 0;
    void *destinations[] = {&to};
    void *sources[] = {&from};
    size_t sizes[] = {sizeof from};
    struct cudaMemcpyAttributes attributes = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
    size_t index = 0;
    size_t failed = 0;
    cudaStream_t stream = NULL;
    assert_int_equal(create(&stream), cudaSuccess);
    assert_int_equal(((copy_batch)function("cudaMemcpyBatchAsync"))(
                         destinations, sources, sizes, 1, &attributes, &index, 1, &failed, stream),
                     cudaSuccess);
    assert_int_equal(synchronize(stream), cudaSuccess);
    assert_int_equal(to, 4);
}

static void names_that_12_suffixed_are_there(void **state)
{
    (void)state;
    static const char *const names[] = {
        "cudaMemAdvise_v2",
        "cudaMemPrefetchAsync_v2",
        "cudaMemPrefetchAsync_v2_ptsz",
        "cudaStreamGetCaptureInfo_v2",
        "cudaStreamGetCaptureInfo_v3_ptsz",
        "cudaGraphAddNode_v2",
        "cudaGraphGetEdges_v2",
        "cudaEventElapsedTime_v2",
        "cudaThreadExit",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_non_null(function(names[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_is_12_8),
        cmocka_unit_test(properties_have_the_layout_of_12),
        cmocka_unit_test(attributes_of_a_pointer_are_no_longer_than_in_12),
        cmocka_unit_test(advice_and_prefetch_take_a_device_number),
        cmocka_unit_test(batch_copies_report_the_failed_index),
        cmocka_unit_test(names_that_12_suffixed_are_there),
    };
    return cmocka_run_group_tests(tests, open_library, NULL);
}
