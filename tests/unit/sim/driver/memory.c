/*
 * The simulated driver: names and lookup, devices, linear, pitched, managed and pinned memory,
 * copies and sets, pointer attributes, and the oracle's figures for each.
 */
#include "support.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- lookup ---------------------------------------------------------------------------------- */

static void *lookup(const char *name, int version, cuuint64_t flags)
{
    void *found = NULL;

    return cuGetProcAddress(name, &found, version, flags, NULL) == CUDA_SUCCESS ? found : NULL;
}

static void lookup_gives_the_highest_abi_not_above_the_version(void **state)
{
    (void)state;
    assert_ptr_equal(lookup("cuMemAlloc", 2000, 0), dlsym(RTLD_DEFAULT, "cuMemAlloc"));
    assert_ptr_equal(lookup("cuMemAlloc", 3020, 0), dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
    assert_ptr_equal(lookup("cuMemAlloc", 13000, 0), dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
    assert_ptr_equal(lookup("cuCtxGetDevice", 2000, 0), dlsym(RTLD_DEFAULT, "cuCtxGetDevice"));
    assert_ptr_equal(lookup("cuCtxGetDevice", 13000, 0), dlsym(RTLD_DEFAULT, "cuCtxGetDevice_v2"));
    assert_ptr_equal(lookup("cuGetProcAddress", 11030, 0), dlsym(RTLD_DEFAULT, "cuGetProcAddress"));
    assert_ptr_equal(lookup("cuGetProcAddress", 12000, 0),
                     dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2"));
    assert_ptr_equal(lookup("cuGLInit", 13000, 0), dlsym(RTLD_DEFAULT, "cuGLInit"));
}

static void lookup_knows_the_per_thread_forms(void **state)
{
    (void)state;
    assert_ptr_equal(lookup("cuMemcpyHtoD", 7000, 2), dlsym(RTLD_DEFAULT, "cuMemcpyHtoD_v2_ptds"));
    assert_ptr_equal(lookup("cuMemAllocAsync", 11020, 2),
                     dlsym(RTLD_DEFAULT, "cuMemAllocAsync_ptsz"));
    assert_ptr_equal(lookup("cuMemAllocAsync", 11020, 1), dlsym(RTLD_DEFAULT, "cuMemAllocAsync"));
    assert_ptr_equal(lookup("cuMemAlloc", 13000, 2), dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
}

static void lookup_says_why_it_failed(void **state)
{
    CUdriverProcAddressQueryResult status;
    void *found = &status;

    (void)state;
    assert_ok(cuGetProcAddress("", &found, 0, 0, NULL));
    assert_null(found);
    assert_ok(cuGetProcAddress("cuNothing", &found, 13000, 0, &status));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    assert_ok(cuGetProcAddress("cuMemCreate", &found, 9000, 0, &status));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuInit", &found, 99000, 0, &status));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress(NULL, &found, 13000, 0, &status));
    assert_ok(cuGetProcAddress("cuInit", &found, 13000, 0, &status));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
}

static void the_driver_says_that_it_is_simulated(void **state)
{
    char name[64];
    const void *table = &name;

    (void)state;
    assert_non_null(dlsym(RTLD_DEFAULT, "gpumem_simulated_driver"));
    assert_ok(cuDeviceGetName(name, sizeof(name), 1));
    assert_non_null(strstr(name, "simulated"));
    assert_int_not_equal(cuGetExportTable(&table, &(CUuuid){{0}}), CUDA_SUCCESS);
}

static void every_error_has_a_name_and_a_text(void **state)
{
    const char *text;

    (void)state;
    assert_ok(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
    assert_string_equal(text, "CUDA_ERROR_OUT_OF_MEMORY");
    assert_ok(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    assert_string_equal(text, "out of memory");
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuGetErrorName((CUresult)12345, &text));
    for (int code = 0; code < 1000; code++) {
        CUresult named = cuGetErrorName((CUresult)code, &text);
        assert_cuda(named, cuGetErrorString((CUresult)code, &text));
    }
}

static void devices_answer_all_attributes(void **state)
{
    int count, value;
    size_t total;
    CUdevice device;
    char bus[16];

    (void)state;
    assert_ok(cuDeviceGetCount(&count));
    assert_int_equal(count, 2);
    assert_cuda(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 2));
    assert_ok(cuDeviceTotalMem(&total, 1));
    assert_int_equal(total, CAPACITY);
    for (int attribute = 1; attribute < CU_DEVICE_ATTRIBUTE_MAX; attribute++)
        assert_ok(cuDeviceGetAttribute(&value, (CUdevice_attribute)attribute, 0));
    assert_ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0));
    assert_int_equal(value, 1);
    assert_ok(cuDeviceGetPCIBusId(bus, sizeof(bus), 1));
    assert_ok(cuDeviceGetByPCIBusId(&device, bus));
    assert_int_equal(device, 1);
}

/* ---- linear ---------------------------------------------------------------------------------- */

static void memory_holds_what_was_copied_to_it(void **state)
{
    unsigned char out[1000], in[1000] = {0};
    CUdeviceptr pointer;

    (void)state;
    for (size_t i = 0; i < sizeof(out); i++)
        out[i] = (unsigned char)(i * 7);
    assert_ok(cuMemAlloc(&pointer, sizeof(out)));
    assert_int_equal(pointer % 512, 0);
    assert_ok(cuMemcpyHtoD(pointer, out, sizeof(out)));
    assert_ok(cuMemcpyDtoH(in, pointer, sizeof(in)));
    assert_memory_equal(in, out, sizeof(in));
    assert_int_equal(DELTA(0, GPUSIM_DEVICE, live), sizeof(out));
    assert_ok(cuMemFree(pointer));
    assert_int_equal(DELTA(0, GPUSIM_DEVICE, live), 0);
    assert_int_equal(DELTA(0, GPUSIM_DEVICE, allocs), 1);
    assert_int_equal(DELTA(0, GPUSIM_DEVICE, frees), 1);
}

static void a_second_free_is_refused_and_not_counted(void **state)
{
    CUdeviceptr pointer;

    (void)state;
    assert_ok(cuMemAlloc(&pointer, 64));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemFree(pointer + 8));
    assert_ok(cuMemFree(pointer));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemFree(pointer));
    assert_ok(cuMemFree(0));
    assert_int_equal(DELTA(0, GPUSIM_DEVICE, frees), 1);
}

static void a_refused_allocation_counts_as_failed_or_rejected(void **state)
{
    CUdeviceptr pointer;
    CUarray array;
    CUDA_ARRAY_DESCRIPTOR wrong = {.Width = 1, .NumChannels = 3, .Format = CU_AD_FORMAT_FLOAT};

    (void)state;
    assert_cuda(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&pointer, CAPACITY + 1));
    assert_cuda(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&pointer, SIZE_MAX));
    assert_int_equal(oracle->failed - before.failed, 2);
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&pointer, 0));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(NULL, 1));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuArrayCreate(&array, &wrong));
    assert_int_equal(oracle->rejected - before.rejected, 3);
    assert_int_equal(oracle->failed - before.failed, 2);
    assert_int_equal(DELTA(0, GPUSIM_DEVICE, allocs), 0);
}

static void fragmented_memory_refuses_what_no_hole_holds(void **state)
{
    enum { PIECES = 16 };
    CUdeviceptr pieces[PIECES], large;
    size_t available, total;

    (void)state;
    for (int i = 0; i < PIECES; i++)
        assert_ok(cuMemAlloc(&pieces[i], CAPACITY / PIECES));
    for (int i = 0; i < PIECES; i += 2)
        assert_ok(cuMemFree(pieces[i]));
    assert_ok(cuMemGetInfo(&available, &total));
    assert_int_equal(available, CAPACITY / 2);
    assert_cuda(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&large, CAPACITY / PIECES + 1));
    assert_ok(cuMemFree(pieces[1]));
    assert_ok(cuMemAlloc(&large, 3 * CAPACITY / PIECES)); /* three neighbours make one hole */
    assert_int_equal(large, pieces[0]);
    assert_ok(cuMemFree(large));
    for (int i = 3; i < PIECES; i += 2)
        assert_ok(cuMemFree(pieces[i]));
    assert_ok(cuMemGetInfo(&available, &total));
    assert_int_equal(available, total);
}

static void pitched_memory_counts_pitch_times_height(void **state)
{
    CUdeviceptr pointer;
    size_t pitch;

    (void)state;
    assert_ok(cuMemAllocPitch(&pointer, &pitch, 700, 10, 4));
    assert_int_equal(pitch, 1024);
    assert_int_equal(DELTA(0, GPUSIM_DEVICE, live), 10240);
    assert_ok(cuMemFree(pointer));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&pointer, &pitch, 700, 10, 5));
}

static void the_range_of_an_inner_address_is_found(void **state)
{
    CUdeviceptr pointer, base;
    size_t size;

    (void)state;
    assert_ok(cuMemAlloc(&pointer, 5000));
    assert_ok(cuMemGetAddressRange(&base, &size, pointer + 4999));
    assert_int_equal(base, pointer);
    assert_int_equal(size, 5000);
    assert_int_not_equal(cuMemGetAddressRange(&base, &size, pointer + 5000), CUDA_SUCCESS);
    assert_ok(cuMemFree(pointer));
}

static void peak_is_the_largest_sum_over_time(void **state)
{
    CUdeviceptr first, second, managed;
    uint64_t peak;

    (void)state;
    assert_ok(cuMemAlloc(&first, 100 * MIB));
    assert_ok(cuMemAllocManaged(&managed, 20 * MIB, CU_MEM_ATTACH_GLOBAL));
    peak = oracle->device[0].peak;
    assert_int_equal(peak, 120 * MIB);
    assert_ok(cuMemFree(first));
    assert_ok(cuMemAlloc(&second, 50 * MIB));
    assert_int_equal(oracle->device[0].peak, peak);
    assert_int_equal(oracle->device[0].live, 70 * MIB);
    assert_ok(cuMemFree(second));
    assert_ok(cuMemFree(managed));
}

/* ---- copies and sets ------------------------------------------------------------------------- */

static void copies_outside_an_allocation_are_refused(void **state)
{
    CUdeviceptr pointer;
    char buffer[64];

    (void)state;
    assert_ok(cuMemAlloc(&pointer, 32));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(pointer, buffer, 33));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(pointer + 16, buffer, 17));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(pointer, 0, 33));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemsetD8((CUdeviceptr)(uintptr_t)buffer, 0, 8));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(0, buffer, 8));
    assert_ok(cuMemcpyHtoD(pointer, buffer, 0));
    assert_ok(cuMemFree(pointer));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(buffer, pointer, 8));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemcpy((CUdeviceptr)(uintptr_t)buffer, pointer, 8));
}

static void sets_of_every_width_fill(void **state)
{
    CUdeviceptr pointer;
    uint32_t words[16];
    uint16_t shorts[32];
    unsigned char bytes[64];

    (void)state;
    assert_ok(cuMemAlloc(&pointer, 64));
    assert_ok(cuMemsetD32(pointer, 0xdeadbeef, 16));
    assert_ok(cuMemcpyDtoH(words, pointer, 64));
    assert_int_equal(words[0], 0xdeadbeef);
    assert_int_equal(words[15], 0xdeadbeef);
    assert_ok(cuMemsetD16Async(pointer, 0x1234, 16, NULL));
    assert_ok(cuMemcpyDtoH(shorts, pointer, 64));
    assert_int_equal(shorts[15], 0x1234);
    assert_int_equal(shorts[16], 0xbeef);
    assert_ok(cuMemsetD2D8(pointer, 16, 0x55, 4, 4)); /* 4 rows of 16, the first 4 bytes of each */
    assert_ok(cuMemcpyDtoH(bytes, pointer, 64));
    assert_int_equal(bytes[48 + 3], 0x55);
    assert_int_not_equal(bytes[48 + 4], 0x55);
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(pointer + 2, 0, 1));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D8(pointer, 2, 0, 4, 2));
    assert_ok(cuMemFree(pointer));
}

static void rectangles_and_boxes_are_copied(void **state)
{
    unsigned char out[4 * 8 * 2], in[4 * 8 * 2] = {0};
    CUdeviceptr pointer;

    (void)state;
    for (size_t i = 0; i < sizeof(out); i++)
        out[i] = (unsigned char)i;
    assert_ok(cuMemAlloc(&pointer, 4096));
    CUDA_MEMCPY3D to = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = out,
                        .srcPitch = 8,
                        .srcHeight = 4,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = pointer,
                        .dstPitch = 64,
                        .dstHeight = 8,
                        .WidthInBytes = 8,
                        .Height = 4,
                        .Depth = 2};
    assert_ok(cuMemcpy3D(&to));
    CUDA_MEMCPY2D back = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = pointer + 64 * 8, /* the second slice */
                          .srcPitch = 64,
                          .srcXInBytes = 2,
                          .srcY = 1,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = in,
                          .dstPitch = 8,
                          .WidthInBytes = 3,
                          .Height = 2};
    assert_ok(cuMemcpy2D(&back));
    assert_int_equal(in[0], out[32 + 8 + 2]);
    assert_int_equal(in[8 + 2], out[32 + 16 + 4]);
    back.WidthInBytes = 7; /* beyond the pitch of the target and of the source */
    back.dstPitch = 4;
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&back));
    assert_ok(cuMemFree(pointer));
}

static void batches_copy_every_item(void **state)
{
    CUdeviceptr pointer, to[2], from[2];
    size_t sizes[2] = {8, 8}, zero = 0;
    uint64_t out[2] = {11, 22}, in[2] = {0};
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    CUstream stream;

    (void)state;
    assert_ok(cuStreamCreate(&stream, 0));
    assert_ok(cuMemAlloc(&pointer, 16));
    for (int i = 0; i < 2; i++) {
        to[i] = pointer + 8 * (1 - (unsigned int)i);
        from[i] = (CUdeviceptr)(uintptr_t)&out[i];
    }
    assert_ok(cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &zero, 1, stream));
    assert_ok(cuMemcpyDtoH(in, pointer, 16));
    assert_int_equal(in[0], 22);
    assert_int_equal(in[1], 11);
    assert_ok(cuMemFree(pointer));
    assert_ok(cuStreamDestroy(stream));
}

static void words_are_written_and_awaited(void **state)
{
    CUdeviceptr pointer;
    uint64_t value;

    (void)state;
    assert_ok(cuMemAlloc(&pointer, 16));
    assert_ok(cuStreamWriteValue64(NULL, pointer + 8, 77, 0));
    assert_ok(cuMemcpyDtoH(&value, pointer + 8, 8));
    assert_int_equal(value, 77);
    assert_ok(cuStreamWaitValue32(NULL, pointer + 8, 70, CU_STREAM_WAIT_VALUE_GEQ));
    assert_ok(cuMemFree(pointer));
}

/* ---- managed --------------------------------------------------------------------------------- */

static void managed_memory_is_shared_with_the_host(void **state)
{
    CUdeviceptr pointer;
    unsigned int *host, value, managed;
    int location;

    (void)state;
    assert_ok(cuMemAllocManaged(&pointer, 8192, CU_MEM_ATTACH_GLOBAL));
    host = (unsigned int *)(uintptr_t)pointer;
    host[100] = 42;
    assert_ok(cuMemcpyDtoH(&value, pointer + 400, 4));
    assert_int_equal(value, 42);
    assert_ok(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer));
    assert_int_equal(managed, 1);
    CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1};
    assert_ok(cuMemAdvise(pointer, 8192, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device));
    assert_ok(cuMemPrefetchAsync(pointer, 8192, device, 0, NULL));
    assert_ok(cuMemRangeGetAttribute(&location, sizeof(location),
                                     CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, pointer, 8192));
    assert_int_equal(location, 1);
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(pointer, 8193, device, 0, NULL));
    assert_int_equal(DELTA(0, GPUSIM_MANAGED, live), 8192);
    assert_ok(cuMemFree(pointer));
    assert_int_equal(DELTA(0, GPUSIM_MANAGED, frees), 1);
}

/* ---- pinned and registered ------------------------------------------------------------------- */

static void pinned_memory_is_host_memory(void **state)
{
    CUdeviceptr alias;
    unsigned int flags, type;
    void *pointer, *plain;

    (void)state;
    assert_ok(cuMemHostAlloc(&pointer, 1000, CU_MEMHOSTALLOC_PORTABLE));
    assert_ok(cuMemAllocHost(&plain, 24));
    memset(pointer, 1, 1000);
    assert_ok(cuMemHostGetDevicePointer(&alias, pointer, 0));
    assert_ok(cuMemsetD8(alias, 9, 1000));
    assert_int_equal(((char *)pointer)[999], 9);
    assert_ok(cuMemHostGetFlags(&flags, pointer));
    assert_int_equal(flags & CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
    assert_ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, alias));
    assert_int_equal(type, CU_MEMORYTYPE_HOST);
    assert_int_equal(HOST_DELTA(GPUSIM_PINNED, live), 1024);
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemFree(alias));
    assert_ok(cuMemFreeHost(pointer));
    assert_ok(cuMemFreeHost(plain));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(pointer));
    assert_int_equal(HOST_DELTA(GPUSIM_PINNED, frees), 2);
}

static void a_range_can_be_registered_once(void **state)
{
    char *buffer = malloc(10000);

    (void)state;
    assert_ok(cuMemHostRegister(buffer, 10000, 0));
    assert_cuda(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(buffer + 50, 10, 0));
    assert_int_equal(HOST_DELTA(GPUSIM_REGISTERED, live), 10000);
    assert_cuda(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(buffer + 1));
    assert_ok(cuMemHostUnregister(buffer));
    assert_cuda(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(buffer));
    void *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(hole, 4096);
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(hole, 4096, 0));
    assert_int_equal(oracle->rejected - before.rejected, 2);
    free(buffer);
}

/* ---- pointers -------------------------------------------------------------------------------- */

static void several_attributes_of_a_foreign_pointer_are_null(void **state)
{
    int here, ordinal = 5;
    CUcontext owner = (CUcontext)&here;
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_CONTEXT,
                                        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *data[] = {&owner, &ordinal};

    (void)state;
    assert_ok(cuPointerGetAttributes(2, attributes, data, (CUdeviceptr)(uintptr_t)&here));
    assert_null(owner);
    assert_int_equal(ordinal, -2);
    assert_cuda(CUDA_ERROR_INVALID_VALUE,
                cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                      (CUdeviceptr)(uintptr_t)&here));
}

static void attributes_of_an_allocation_describe_it(void **state)
{
    CUdeviceptr pointer, start;
    CUcontext owner;
    size_t size;

    (void)state;
    assert_ok(cuMemAlloc(&pointer, 4321));
    assert_ok(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, pointer));
    assert_ptr_equal(owner, context);
    assert_ok(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, pointer + 7));
    assert_int_equal(start, pointer);
    assert_ok(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, pointer + 7));
    assert_int_equal(size, 4321);
    assert_ok(cuMemFree(pointer));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_test, end_test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(peak_is_the_largest_sum_over_time), /* first: a peak is the whole process's */
        TEST(lookup_gives_the_highest_abi_not_above_the_version),
        TEST(lookup_knows_the_per_thread_forms),
        TEST(lookup_says_why_it_failed),
        TEST(the_driver_says_that_it_is_simulated),
        TEST(every_error_has_a_name_and_a_text),
        TEST(devices_answer_all_attributes),
        TEST(memory_holds_what_was_copied_to_it),
        TEST(a_second_free_is_refused_and_not_counted),
        TEST(a_refused_allocation_counts_as_failed_or_rejected),
        TEST(fragmented_memory_refuses_what_no_hole_holds),
        TEST(pitched_memory_counts_pitch_times_height),
        TEST(the_range_of_an_inner_address_is_found),
        TEST(copies_outside_an_allocation_are_refused),
        TEST(sets_of_every_width_fill),
        TEST(rectangles_and_boxes_are_copied),
        TEST(batches_copy_every_item),
        TEST(words_are_written_and_awaited),
        TEST(managed_memory_is_shared_with_the_host),
        TEST(pinned_memory_is_host_memory),
        TEST(a_range_can_be_registered_once),
        TEST(several_attributes_of_a_foreign_pointer_are_null),
        TEST(attributes_of_an_allocation_describe_it),
    };

    return cmocka_run_group_tests(tests, start_driver, NULL);
}
