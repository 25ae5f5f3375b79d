/*
 * Virtual memory management, multicast and external memory of the simulated driver.
 */
#include "support.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GRANULE (2 * MIB)

static const CUmemAllocationProp on_device = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
};
static const CUmemAccessDesc access_of_device = {{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static void physical_memory_lives_until_handle_and_mapping_are_gone(void **state)
{
    CUmemGenericAllocationHandle handle, again;
    CUdeviceptr address;

    (void)state;
    assert_ok(cuMemCreate(&handle, GRANULE, &on_device, 0));
    assert_int_equal(DELTA(0, GPUSIM_VMM, live), GRANULE);
    assert_ok(cuMemAddressReserve(&address, 2 * GRANULE, 0, 0, 0));
    assert_ok(cuMemMap(address, GRANULE, 0, handle, 0));
    assert_ok(cuMemRelease(handle));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemRelease(handle));
    assert_int_equal(DELTA(0, GPUSIM_VMM, live), GRANULE);
    assert_ok(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(address + 5)));
    assert_ok(cuMemUnmap(address, GRANULE));
    assert_int_equal(DELTA(0, GPUSIM_VMM, live), GRANULE);
    assert_ok(cuMemRelease(again));
    assert_int_equal(DELTA(0, GPUSIM_VMM, live), 0);
    assert_int_equal(DELTA(0, GPUSIM_VMM, frees), 1);
    assert_ok(cuMemAddressFree(address, 2 * GRANULE));
}

static void sizes_are_multiples_of_the_granularity(void **state)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    size_t granularity;

    (void)state;
    assert_ok(
        cuMemGetAllocationGranularity(&granularity, &on_device, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    assert_int_equal(granularity, GRANULE);
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, GRANULE + 1, &on_device, 0));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&address, 4096, 0, 0, 0));
    assert_cuda(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&handle, CAPACITY + GRANULE, &on_device, 0));
    assert_int_equal(oracle->failed - before.failed, 1);
    assert_int_equal(oracle->rejected - before.rejected, 1);
}

static void an_address_shows_what_is_mapped_there_now(void **state)
{
    CUmemGenericAllocationHandle first, second;
    CUdeviceptr address, other;
    int value = 1, seen;

    (void)state;
    assert_ok(cuMemCreate(&first, GRANULE, &on_device, 0));
    assert_ok(cuMemCreate(&second, GRANULE, &on_device, 0));
    assert_ok(cuMemAddressReserve(&address, GRANULE, 0, 0, 0));
    assert_ok(cuMemAddressReserve(&other, GRANULE, 0, 0, 0));
    assert_ok(cuMemMap(address, GRANULE, 0, first, 0));
    assert_cuda(CUDA_ERROR_ALREADY_MAPPED, cuMemMap(address, GRANULE, 0, second, 0));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(address, &value, 4)); /* no access yet */
    assert_ok(cuMemSetAccess(address, GRANULE, &access_of_device, 1));
    assert_ok(cuMemcpyHtoD(address, &value, 4));
    assert_ok(cuMemUnmap(address, GRANULE));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(address, &value, 4));
    assert_ok(cuMemMap(address, GRANULE, 0, second, 0));
    assert_ok(cuMemSetAccess(address, GRANULE, &access_of_device, 1));
    assert_ok(cuMemcpyDtoH(&seen, address, 4));
    assert_int_equal(seen, 0);
    assert_ok(cuMemMap(other, GRANULE, 0, first, 0));
    assert_ok(cuMemSetAccess(other, GRANULE, &access_of_device, 1));
    assert_ok(cuMemcpyDtoH(&seen, other, 4));
    assert_int_equal(seen, 1);
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(address, GRANULE));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemFree(address));
    assert_ok(cuMemUnmap(address, GRANULE));
    assert_ok(cuMemUnmap(other, GRANULE));
    assert_ok(cuMemRelease(first));
    assert_ok(cuMemRelease(second));
    assert_ok(cuMemAddressFree(address, GRANULE));
    assert_ok(cuMemAddressFree(other, GRANULE));
}

static void neighbouring_mappings_are_one_range_to_copies(void **state)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;

    (void)state;
    assert_ok(cuMemCreate(&handle, 2 * GRANULE, &on_device, 0));
    assert_ok(cuMemAddressReserve(&address, 3 * GRANULE, 0, 0, 0));
    assert_ok(cuMemMap(address, GRANULE, GRANULE, handle, 0)); /* the halves swapped */
    assert_ok(cuMemMap(address + GRANULE, GRANULE, 0, handle, 0));
    assert_ok(cuMemSetAccess(address, 2 * GRANULE, &access_of_device, 1));
    assert_ok(cuMemsetD8(address + GRANULE - 8, 3, 16));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(address + 2 * GRANULE - 8, 3, 16));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(address, GRANULE / 2));
    assert_ok(cuMemUnmap(address, 2 * GRANULE));
    assert_ok(cuMemRelease(handle));
    assert_ok(cuMemAddressFree(address, 3 * GRANULE));
}

static void host_memory_counts_as_host_memory(void **state)
{
    CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0}};
    CUmemGenericAllocationHandle handle;

    (void)state;
    assert_ok(cuMemCreate(&handle, GRANULE, &properties, 0));
    assert_int_equal(HOST_DELTA(GPUSIM_HOST_VMM, live), GRANULE);
    assert_int_equal(DELTA(0, GPUSIM_VMM, live), 0);
    assert_ok(cuMemRelease(handle));
    assert_int_equal(HOST_DELTA(GPUSIM_HOST_VMM, frees), 1);
}

static void an_import_of_what_this_process_exported_is_the_same_memory(void **state)
{
    CUmemGenericAllocationHandle handle, imported;
    CUdeviceptr address, other;
    int fd, value = 99, seen = 0;

    (void)state;
    assert_ok(cuMemCreate(&handle, GRANULE, &on_device, 0));
    assert_ok(
        cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_ok(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    assert_ok(cuMemAddressReserve(&address, 2 * GRANULE, 0, 0, 0));
    other = address + GRANULE;
    assert_ok(cuMemMap(address, GRANULE, 0, handle, 0));
    assert_ok(cuMemMap(other, GRANULE, 0, imported, 0));
    assert_ok(cuMemSetAccess(address, 2 * GRANULE, &access_of_device, 1));
    assert_ok(cuMemcpyHtoD(address + 12, &value, 4));
    assert_ok(cuMemcpyDtoH(&seen, other + 12, 4));
    assert_int_equal(seen, 99);
    assert_int_equal(DELTA(0, GPUSIM_EXTERNAL, allocs), 0);
    assert_ok(cuMemUnmap(address, GRANULE));
    assert_ok(cuMemRelease(handle));
    assert_int_equal(DELTA(0, GPUSIM_VMM, live), GRANULE); /* mapped through the import */
    assert_ok(cuMemUnmap(other, GRANULE));
    assert_ok(cuMemRelease(imported));
    assert_int_equal(DELTA(0, GPUSIM_VMM, live), 0);
    assert_ok(cuMemAddressFree(address, 2 * GRANULE));
    assert_cuda(CUDA_ERROR_INVALID_VALUE,
                cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)0,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
}

static size_t free_memory(void)
{
    size_t free_bytes, total;

    assert_ok(cuMemGetInfo(&free_bytes, &total));
    return free_bytes;
}

static void an_exported_descriptor_keeps_the_memory(void **state)
{
    CUmemGenericAllocationHandle handle;
    const size_t at_first = free_memory();
    int fd, copy;

    (void)state;
    assert_ok(cuMemCreate(&handle, GRANULE, &on_device, 0));
    assert_ok(
        cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_ok(cuMemRelease(handle));
    assert_int_equal(DELTA(0, GPUSIM_VMM, live), 0);
    assert_int_equal(free_memory(), at_first - GRANULE);
    copy = dup(fd);
    close(fd);
    assert_int_equal(free_memory(), at_first - GRANULE);
    close(copy);
    assert_int_equal(free_memory(), at_first);
}

static void vmm_memory_outlives_a_context(void **state)
{
    CUmemGenericAllocationHandle handle;
    CUcontext own;

    (void)state;
    assert_ok(cuCtxCreate(&own, NULL, 0, 0));
    assert_ok(cuMemCreate(&handle, GRANULE, &on_device, 0));
    assert_ok(cuCtxDestroy(own));
    assert_int_equal(DELTA(0, GPUSIM_VMM, live), GRANULE);
    assert_ok(cuMemRelease(handle));
}

static void a_multicast_binding_keeps_memory_alive(void **state)
{
    CUmulticastObjectProp properties = {.numDevices = 1, .size = GRANULE};
    CUmemGenericAllocationHandle team, memory;

    (void)state;
    assert_ok(cuMulticastCreate(&team, &properties));
    assert_ok(cuMemCreate(&memory, GRANULE, &on_device, 0));
    assert_cuda(CUDA_ERROR_ILLEGAL_STATE, cuMulticastBindMem(team, 0, memory, 0, GRANULE, 0));
    assert_ok(cuMulticastAddDevice(team, 0));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMulticastAddDevice(team, 1));
    assert_ok(cuMulticastBindMem(team, 0, memory, 0, GRANULE, 0));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMulticastBindMem(team, 0, memory, 0, GRANULE, 0));
    assert_ok(cuMemRelease(memory));
    assert_int_equal(DELTA(0, GPUSIM_VMM, live), GRANULE);
    assert_ok(cuMulticastUnbind(team, 0, 0, GRANULE));
    assert_int_equal(DELTA(0, GPUSIM_VMM, live), 0);
    assert_ok(cuMemCreate(&memory, GRANULE, &on_device, 0));
    assert_ok(cuMulticastBindMem(team, 0, memory, 0, GRANULE, 0));
    assert_ok(cuMemRelease(memory));
    assert_ok(cuMemRelease(team)); /* takes its bindings with it */
    assert_int_equal(DELTA(0, GPUSIM_VMM, live), 0);
}

static void *add_second_device(void *team)
{
    return (void *)(intptr_t)cuMulticastAddDevice((CUmemGenericAllocationHandle)(uintptr_t)team, 1);
}

/* As two processes do that each add a device of their own and bind memory of theirs. */
static void a_multicast_object_is_shared(void **state)
{
    CUmulticastObjectProp properties = {
        .numDevices = 2, .size = GRANULE, .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
    CUmemGenericAllocationHandle team, imported, memory;
    pthread_t thread;
    void *added;
    int fd;

    (void)state;
    assert_ok(cuMulticastCreate(&team, &properties));
    assert_ok(cuMulticastAddDevice(team, 0));
    assert_ok(cuMemExportToShareableHandle(&fd, team, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_ok(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    assert_ok(cuMemCreate(&memory, GRANULE, &on_device, 0));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMulticastAddDevice(imported, 0));
    assert_int_equal(pthread_create(&thread, NULL, add_second_device, (void *)(uintptr_t)imported),
                     0);
    assert_ok(
        cuMulticastBindMem(team, 0, memory, 0, GRANULE, 0)); /* when the thread has added it */
    assert_int_equal(pthread_join(thread, &added), 0);
    assert_ok((CUresult)(intptr_t)added);
    assert_ok(cuMemRelease(team));
    assert_ok(cuMulticastBindMem(imported, 0, memory, 0, GRANULE, 0));
    assert_ok(cuMemRelease(memory));
    assert_int_equal(DELTA(0, GPUSIM_VMM, live), GRANULE);
    assert_ok(cuMemRelease(imported));
    assert_int_equal(DELTA(0, GPUSIM_VMM, live), 0);
}

static void external_memory_is_mapped_as_buffer_and_mipmap(void **state)
{
    int fd = memfd_create("external", MFD_CLOEXEC), value = 5;
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC description = {
        .type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .handle.fd = fd, .size = 65536};
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.offset = 512, .size = 1000};
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC array = {
        .arrayDesc = {.Width = 8,
                      .Height = 8,
                      .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                      .NumChannels = 1},
        .numLevels = 2};
    CUexternalMemory memory;
    CUmipmappedArray mipmap;
    CUdeviceptr pointer;
    int *seen;

    (void)state;
    assert_int_equal(ftruncate(fd, 65536), 0);
    assert_ok(cuImportExternalMemory(&memory, &description));
    assert_ok(cuExternalMemoryGetMappedBuffer(&pointer, memory, &buffer));
    assert_int_equal(DELTA(0, GPUSIM_EXTERNAL, live), 1000);
    assert_int_equal(oracle->device[0].live, before.device[0].live);
    assert_ok(cuMemcpyHtoD(pointer, &value, 4));
    seen = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    assert_int_equal(seen[128], 5);
    munmap(seen, 4096);
    assert_ok(cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &array));
    assert_int_equal(DELTA(0, GPUSIM_EXTERNAL, live), 1000 + 64 + 16);
    assert_ok(cuMipmappedArrayDestroy(mipmap));
    assert_ok(cuMemFree(pointer));
    buffer.size = 65536;
    assert_cuda(CUDA_ERROR_INVALID_VALUE,
                cuExternalMemoryGetMappedBuffer(&pointer, memory, &buffer));
    assert_ok(cuDestroyExternalMemory(memory));
    assert_cuda(CUDA_ERROR_INVALID_HANDLE, cuDestroyExternalMemory(memory));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_test, end_test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(physical_memory_lives_until_handle_and_mapping_are_gone),
        TEST(sizes_are_multiples_of_the_granularity),
        TEST(an_address_shows_what_is_mapped_there_now),
        TEST(neighbouring_mappings_are_one_range_to_copies),
        TEST(host_memory_counts_as_host_memory),
        TEST(an_import_of_what_this_process_exported_is_the_same_memory),
        TEST(an_exported_descriptor_keeps_the_memory),
        TEST(vmm_memory_outlives_a_context),
        TEST(a_multicast_binding_keeps_memory_alive),
        TEST(a_multicast_object_is_shared),
        TEST(external_memory_is_mapped_as_buffer_and_mipmap),
    };

    return cmocka_run_group_tests(tests, start_driver, NULL);
}
