/*
 * Stream-ordered memory and pools of the simulated driver.
 */
#include "support.h"

#include <unistd.h>

static cuuint64_t pool_number(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    cuuint64_t value;

    assert_ok(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

static size_t device_free(void)
{
    size_t available, total;

    assert_ok(cuMemGetInfo(&available, &total));
    return available;
}

static void either_family_frees_the_other(void **state)
{
    CUdeviceptr pooled, linear;

    (void)state;
    assert_ok(cuMemAllocAsync(&pooled, 1000, NULL));
    assert_ok(cuMemAlloc(&linear, 2000));
    assert_int_equal(DELTA(0, GPUSIM_DEVICE, live), 3000);
    assert_ok(cuMemFree(pooled));
    assert_ok(cuMemFreeAsync(linear, NULL));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(linear, NULL));
    assert_int_equal(DELTA(0, GPUSIM_DEVICE, frees), 2);
}

static void a_pool_keeps_its_storage_up_to_its_threshold(void **state)
{
    CUmemoryPool pool;
    CUdeviceptr pointer;
    cuuint64_t keep = 4 * MIB, zero = 0;

    (void)state;
    assert_ok(cuDeviceGetDefaultMemPool(&pool, 0));
    assert_ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    assert_ok(cuMemAllocAsync(&pointer, 10 * MIB, NULL));
    assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 10 * MIB);
    assert_true(pool_number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 10 * MIB);
    assert_ok(cuMemFreeAsync(pointer, NULL));
    assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    assert_true(pool_number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 10 * MIB);
    assert_ok(cuStreamSynchronize(NULL));
    assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), keep);
    assert_ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &zero));
    assert_ok(cuMemPoolTrimTo(pool, 0));
    assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    assert_true(pool_number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) >= 10 * MIB);
    assert_ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
    assert_int_equal(pool_number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 0);
    assert_int_equal(device_free(), CAPACITY);
}

static void idle_storage_of_a_pool_makes_room_for_others(void **state)
{
    CUdeviceptr pooled, linear;
    cuuint64_t everything = UINT64_MAX, zero = 0;
    CUmemoryPool pool;

    (void)state;
    assert_ok(cuDeviceGetDefaultMemPool(&pool, 0));
    assert_ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &everything));
    assert_ok(cuMemAllocAsync(&pooled, 200 * MIB, NULL));
    assert_cuda(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&linear, 100 * MIB));
    assert_ok(cuMemFreeAsync(pooled, NULL));
    assert_ok(cuStreamSynchronize(NULL));
    assert_int_equal(device_free(), 56 * MIB);
    assert_ok(cuMemAlloc(&linear, 100 * MIB));
    assert_ok(cuMemFree(linear));
    assert_ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &zero));
    assert_int_equal(oracle->failed - before.failed, 1);
}

static CUmemoryPool new_pool(int device, CUmemAllocationHandleType types)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .handleTypes = types,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    CUmemoryPool pool;

    assert_ok(cuMemPoolCreate(&pool, &properties));
    return pool;
}

static void memory_of_a_destroyed_pool_lives_on(void **state)
{
    CUmemoryPool pool = new_pool(1, CU_MEM_HANDLE_TYPE_NONE);
    CUdeviceptr pointer;
    int value = 7;

    (void)state;
    assert_ok(cuMemAllocFromPoolAsync(&pointer, 4096, pool, NULL));
    assert_int_equal(DELTA(1, GPUSIM_DEVICE, live),
                     4096); /* the pool's device, not the context's */
    assert_ok(cuMemPoolDestroy(pool));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(pool));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&pointer, 1, pool, NULL));
    assert_ok(cuMemcpyHtoD(pointer, &value, sizeof(value)));
    assert_ok(cuMemFreeAsync(pointer, NULL));
    assert_int_equal(DELTA(1, GPUSIM_DEVICE, live), 0);
}

static void the_current_pool_can_be_set_and_the_default_not_destroyed(void **state)
{
    CUmemoryPool pool = new_pool(0, CU_MEM_HANDLE_TYPE_NONE), found, first;
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    CUdeviceptr pointer;

    (void)state;
    assert_ok(cuMemGetDefaultMemPool(&first, &location, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(first));
    assert_ok(cuDeviceGetMemPool(&found, 0));
    assert_ptr_equal(found, first);
    assert_ok(cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
    assert_ok(cuMemGetMemPool(&found, &location, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ptr_equal(found, pool);
    assert_ok(cuMemAllocAsync(&pointer, 64, NULL));
    assert_ok(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer));
    assert_ptr_equal(found, pool);
    assert_ok(cuMemFreeAsync(pointer, NULL));
    assert_ok(cuMemPoolDestroy(pool));
    assert_ok(cuDeviceGetMemPool(&found, 0));
    assert_ptr_equal(found, first);
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuDeviceSetMemPool(1, first));
}

static void access_of_peers_is_remembered(void **state)
{
    CUmemoryPool pool;
    CUmemAccess_flags flags;
    CUmemAccessDesc peer = {{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1},
                            CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    (void)state;
    assert_ok(cuDeviceGetDefaultMemPool(&pool, 0));
    assert_ok(cuMemPoolGetAccess(&flags, pool, &peer.location));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    assert_ok(cuMemPoolSetAccess(pool, &peer, 1));
    assert_ok(cuMemPoolGetAccess(&flags, pool, &peer.location));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    peer.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    assert_ok(cuMemPoolSetAccess(pool, &peer, 1));
    peer.location.id = 0;
    assert_cuda(CUDA_ERROR_INVALID_DEVICE, cuMemPoolSetAccess(pool, &peer, 1));
}

static void a_pool_and_a_pointer_can_be_imported(void **state)
{
    CUmemoryPool pool = new_pool(0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), imported;
    CUmemPoolPtrExportData data;
    CUdeviceptr pointer, alias;
    int fd, value = 1234, seen = 0;

    (void)state;
    assert_ok(
        cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_ok(cuMemAllocFromPoolAsync(&pointer, 100, pool, NULL));
    assert_ok(cuMemcpyHtoD(pointer, &value, sizeof(value)));
    assert_ok(cuMemPoolExportPointer(&data, pointer));
    assert_ok(cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    close(fd);
    assert_ok(cuMemPoolImportPointer(&alias, imported, &data));
    assert_int_not_equal(alias, pointer);
    assert_ok(cuMemcpyDtoH(&seen, alias, sizeof(seen)));
    assert_int_equal(seen, value);
    assert_int_equal(DELTA(0, GPUSIM_EXTERNAL, allocs), 1);
    assert_int_equal(DELTA(0, GPUSIM_EXTERNAL, live), 0);
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&alias, 1, imported, NULL));
    assert_ok(cuMemFreeAsync(alias, NULL));
    assert_ok(cuMemFreeAsync(pointer, NULL));
    assert_ok(cuMemPoolDestroy(imported));
    assert_ok(cuMemPoolDestroy(pool));
    assert_int_equal(DELTA(0, GPUSIM_EXTERNAL, frees), 1);
}

static CUmemoryPool pool_at(CUmemLocationType where, CUmemAllocationType type)
{
    CUmemPoolProps properties = {.allocType = type, .location = {.type = where}};
    CUmemoryPool pool;

    assert_ok(cuMemPoolCreate(&pool, &properties));
    return pool;
}

static void a_pool_of_the_host_gives_pinned_memory(void **state)
{
    CUmemoryPool pool = pool_at(CU_MEM_LOCATION_TYPE_HOST, CU_MEM_ALLOCATION_TYPE_PINNED);
    CUdeviceptr pointer;
    unsigned int type;

    (void)state;
    assert_ok(cuMemAllocFromPoolAsync(&pointer, 300 * MIB, pool, NULL)); /* more than the device */
    assert_int_equal(HOST_DELTA(GPUSIM_PINNED, live), 300 * MIB);
    assert_int_equal(DELTA(0, GPUSIM_DEVICE, allocs), 0);
    assert_int_equal(device_free(), CAPACITY);
    assert_ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer));
    assert_int_equal(type, CU_MEMORYTYPE_HOST);
    *(volatile char *)(uintptr_t)pointer =
        1; /* "their default accessibility will be from the host" */
    assert_ok(cuMemPoolDestroy(pool));
    assert_ok(cuMemFreeAsync(pointer, NULL));
    assert_int_equal(HOST_DELTA(GPUSIM_PINNED, frees), 1);
}

static void a_pool_of_managed_memory_gives_managed_memory(void **state)
{
    CUmemoryPool pool = pool_at(CU_MEM_LOCATION_TYPE_NONE, CU_MEM_ALLOCATION_TYPE_MANAGED);
    CUdeviceptr pointer;
    unsigned int is_managed;

    (void)state;
    assert_ok(cuMemAllocFromPoolAsync(&pointer, 5000, pool, NULL));
    assert_int_equal(DELTA(0, GPUSIM_MANAGED, live), 5000);
    assert_ok(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer));
    assert_true(is_managed);
    assert_ok(cuMemFree(pointer));
    assert_ok(cuMemPoolDestroy(pool));
}

/* "The location and allocation type specified must match those of the pool". */
static void each_location_and_type_has_its_own_current_pool(void **state)
{
    CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST},
                  device = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    CUmemoryPool pool = pool_at(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ALLOCATION_TYPE_MANAGED);
    CUmemoryPool found, pinned;

    (void)state;
    assert_ok(cuDeviceGetMemPool(&pinned, 0));
    assert_cuda(CUDA_ERROR_INVALID_VALUE,
                cuMemSetMemPool(&device, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
    assert_cuda(CUDA_ERROR_INVALID_VALUE,
                cuMemSetMemPool(&host, CU_MEM_ALLOCATION_TYPE_MANAGED, pool));
    assert_ok(cuMemSetMemPool(&device, CU_MEM_ALLOCATION_TYPE_MANAGED, pool));
    assert_ok(cuMemGetMemPool(&found, &device, CU_MEM_ALLOCATION_TYPE_MANAGED));
    assert_ptr_equal(found, pool);
    assert_ok(cuDeviceGetMemPool(&found, 0));
    assert_ptr_equal(found, pinned);
    assert_ok(cuMemPoolDestroy(pool)); /* "sets the default mempool ... as the current mempool" */
    assert_ok(cuMemGetMemPool(&found, &device, CU_MEM_ALLOCATION_TYPE_MANAGED));
    assert_ok(cuMemGetDefaultMemPool(&pool, &device, CU_MEM_ALLOCATION_TYPE_MANAGED));
    assert_ptr_equal(found, pool);
}

static void pools_nowhere_are_refused(void **state)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT}};
    CUmemoryPool pool;

    (void)state;
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&pool, &properties));
    properties.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 9};
    assert_cuda(CUDA_ERROR_INVALID_DEVICE, cuMemPoolCreate(&pool, &properties));
    properties.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_NONE};
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&pool, &properties));
    properties.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
    properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&pool, &properties));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_test, end_test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(either_family_frees_the_other),
        TEST(a_pool_keeps_its_storage_up_to_its_threshold),
        TEST(idle_storage_of_a_pool_makes_room_for_others),
        TEST(memory_of_a_destroyed_pool_lives_on),
        TEST(the_current_pool_can_be_set_and_the_default_not_destroyed),
        TEST(access_of_peers_is_remembered),
        TEST(a_pool_and_a_pointer_can_be_imported),
        TEST(a_pool_of_the_host_gives_pinned_memory),
        TEST(a_pool_of_managed_memory_gives_managed_memory),
        TEST(each_location_and_type_has_its_own_current_pool),
        TEST(pools_nowhere_are_refused),
    };

    return cmocka_run_group_tests(tests, start_driver, NULL);
}
