/*
 * What a dry run asks of the simulated driver: the device that was named, and device memory whose
 * contents are virtual, of which it says what is known.
 */
#include "support.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern bool gpumem_sim_has_read_unknown(void);
extern bool gpumem_sim_knows(uint64_t address, uint64_t bytes);
extern void gpumem_sim_learn(uint64_t address, uint64_t bytes);
extern void gpumem_sim_unlearn(uint64_t address, uint64_t bytes);
extern void gpumem_sim_forget(uint64_t address, uint64_t bytes);

enum { SMALL = 4096, LARGE = 2 << 20 }; /* below and above GPUMEM_SIM_VIRTUAL */

static unsigned char host[LARGE];

static int start_dry(void **state)
{
    setenv("GPUMEM_SIM_VIRTUAL", "1M", 1);
    setenv("GPUMEM_SIM_KERNEL_NS", "20000", 1);
    setenv("GPUMEM_SIM_CONTEXT", "8M", 1);
    setenv("GPUMEM_SIM_CODE", "2M", 1);
    setenv("GPUMEM_SIM_DEVICE", "cc=8.9,sms=128,kernels=86,name=Card, with a comma", 1);
    return start_driver(state);
}

static CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr memory;

    assert_ok(cuMemAlloc(&memory, bytes));
    return memory;
}

/* The first byte that a small copy to the host gives, and whether it is one that nobody knows. */
static unsigned char read_byte(CUdeviceptr from, bool *unknown)
{
    unsigned char byte = 99;

    assert_ok(cuMemcpyDtoH(&byte, from, 1));
    *unknown = gpumem_sim_has_read_unknown();
    assert_false(gpumem_sim_has_read_unknown()); /* it is told once */
    return byte;
}

static void assert_reads(CUdeviceptr from, unsigned char expected, bool known)
{
    bool unknown;

    assert_int_equal(read_byte(from, &unknown), expected);
    assert_int_equal(!unknown, known);
    assert_int_equal(gpumem_sim_knows(from, 1), known);
}

static void the_device_is_the_one_that_was_named(void **state)
{
    char name[128];
    int value;

    (void)state;
    assert_ok(cuDeviceGetName(name, sizeof(name), 0));
    assert_string_equal(name, "Card, with a comma (gpumem simulated)");
    assert_ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    assert_int_equal(value, 128);
    assert_ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 1));
    assert_int_equal(value, 9);
    assert_ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0));
    assert_int_equal(value, 1536);
}

static void what_the_host_wrote_is_known_and_nothing_else(void **state)
{
    CUdeviceptr memory = allocate(SMALL), other = allocate(SMALL);

    (void)state;
    memset(host, 7, SMALL);
    assert_reads(memory, 0, false);
    assert_ok(cuMemcpyHtoD(memory, host, 16));
    assert_reads(memory + 15, 7, true);
    assert_reads(memory + 16, 0, false);
    assert_false(gpumem_sim_knows(memory, 17));
    assert_ok(cuMemcpyDtoD(other, memory, 16)); /* carries what is known */
    assert_reads(other, 7, true);
    assert_ok(cuMemcpyDtoD(memory, memory + 64, 8)); /* and what is not */
    assert_reads(memory, 0, false);
    assert_reads(memory + 8, 7, true);
    assert_ok(cuMemsetD8(other, 5, 4));
    assert_reads(other, 5, true);
    assert_ok(cuMemFree(memory));
    assert_ok(cuMemFree(other));
}

static void large_copies_and_sets_are_dropped(void **state)
{
    CUdeviceptr memory = allocate(2 * LARGE);

    (void)state;
    memset(host, 7, LARGE);
    assert_ok(cuMemcpyHtoD(memory, host, SMALL));
    assert_ok(cuMemcpyHtoD(memory, host, LARGE)); /* over what was stored */
    assert_reads(memory, 0, true);
    assert_ok(cuMemsetD8(memory + LARGE, 7, LARGE));
    assert_reads(memory + LARGE, 0, true);
    memset(host, 9, LARGE);
    assert_ok(cuMemcpyDtoH(host, memory, LARGE));
    assert_int_equal(host[0], 9); /* costs the host nothing */
    assert_ok(cuMemFree(memory));
}

static void a_block_that_is_handed_out_anew_reads_as_zero(void **state)
{
    CUdeviceptr memory = allocate(SMALL);

    (void)state;
    memset(host, 7, SMALL);
    assert_ok(cuMemcpyHtoD(memory, host, SMALL));
    gpumem_sim_forget(memory + 512, 512);
    assert_reads(memory + 511, 7, true);
    assert_reads(memory + 512, 0, false);
    assert_reads(memory + 1023, 0, false);
    assert_reads(memory + 1024, 7, true);
    assert_ok(cuMemFree(memory));
}

static void values_that_were_computed_are_learned_and_unlearned(void **state)
{
    CUdeviceptr memory = allocate(SMALL);
    const unsigned char three = 3;

    (void)state;
    memcpy((void *)(uintptr_t)(memory + 8), &three, 1); /* as the value plane stores it */
    gpumem_sim_learn(memory + 8, 1);
    assert_reads(memory + 8, 3, true);
    gpumem_sim_unlearn(memory + 8, 1);
    assert_reads(memory + 8, 3, false);
    gpumem_sim_forget(memory, SMALL);
    assert_reads(memory + 8, 0, false);
    assert_ok(cuMemFree(memory));
}

/* As in a loop of XLA's that a kernel ends. */
static void a_byte_that_is_read_again_and_again_after_kernels_is_theirs(void **state)
{
    enum { SOON = 4000, OFTEN = 5000 };
    CUmodule module;
    CUfunction function;
    CUdeviceptr memory = allocate(SMALL);
    bool unknown;

    (void)state;
    memset(host, 1, SMALL);
    assert_ok(cuMemcpyHtoD(memory, host, SMALL));
    for (int i = 0; i < OFTEN; i++)
        read_byte(memory + 8, &unknown);
    assert_reads(memory + 8, 1, true); /* no kernel ran */
    assert_ok(cuModuleLoadData(&module, "image"));
    assert_ok(cuModuleGetFunction(&function, module, "kernel"));
    for (int i = 0; i < OFTEN; i++) {
        assert_ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
        if (i <= SOON)
            assert_int_equal(read_byte(memory + 8, &unknown), 1);
        else
            read_byte(memory + 8, &unknown);
        assert_ok(cuMemcpyDtoH(host, memory, 4)); /* a number that is read each time stays */
    }
    assert_reads(memory + 8, 0, false);
    assert_reads(memory + 7, 1, true);
    assert_reads(memory + 9, 1, true);
    assert_ok(cuModuleUnload(module));
    assert_ok(cuMemFree(memory));
}

/* Else an autotuner, as XLA's, would choose by how busy the host is. */
static void events_count_the_work_between_them_and_no_time_of_the_host(void **state)
{
    const struct timespec pause = {.tv_nsec = 3000000};
    CUdeviceptr memory = allocate(SMALL);
    CUevent events[3];
    float idle, busy;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_ok(cuEventCreate(&events[i], 0));
    assert_ok(cuEventRecord(events[0], NULL));
    nanosleep(&pause, NULL);
    assert_ok(cuEventRecord(events[1], NULL));
    assert_ok(cuMemsetD8(memory, 1, SMALL));
    assert_ok(cuMemcpyHtoD(memory, host, SMALL));
    assert_ok(cuEventRecord(events[2], NULL));
    assert_ok(cuEventElapsedTime(&idle, events[0], events[1]));
    assert_ok(cuEventElapsedTime(&busy, events[1], events[2]));
    assert_int_equal(idle * 1e6F + 0.5F, 1000);
    assert_int_equal(busy * 1e6F + 0.5F, 41000);
    for (int i = 0; i < 3; i++)
        assert_ok(cuEventDestroy(events[i]));
    assert_ok(cuMemFree(memory));
}

/* What the driver says is free, in MiB below all of the device. */
static size_t taken(void)
{
    size_t free_bytes, total;

    assert_ok(cuMemGetInfo(&free_bytes, &total));
    return (total - free_bytes) >> 20;
}

static void code_is_loaded_when_a_kernel_is_first_launched(void **state)
{
    static const char *const names[] = {"first", "second", "third"};
    CUmodule module;
    CUfunction functions[3];

    (void)state;
    assert_ok(cuModuleLoadData(&module, "cubin"));
    for (int i = 0; i < 3; i++)
        assert_ok(cuModuleGetFunction(&functions[i], module, names[i]));
    assert_int_equal(taken(), 6);
    for (size_t i = 0; i < 3; i++) {
        assert_ok(cuLaunchKernel(functions[i], 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
        assert_ok(cuLaunchKernel(functions[i], 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
        assert_int_equal(taken(), i ? 8 : 7); /* no more than was said to be code */
    }
    assert_ok(cuModuleUnload(module));
}

/* On another device, which has launched nothing. */
static void code_is_not_free_where_memory_was_refused(void **state)
{
    CUcontext other;
    CUdeviceptr memory;
    size_t free_bytes, total;

    (void)state;
    assert_ok(cuDevicePrimaryCtxRetain(&other, 1));
    assert_ok(cuCtxPushCurrent(other));
    assert_int_equal(taken(), 6);
    assert_ok(cuMemGetInfo(&free_bytes, &total));
    assert_int_equal(cuMemAlloc(&memory, free_bytes), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(taken(), 8);
    assert_ok(cuCtxPopCurrent(&other));
    assert_ok(cuDevicePrimaryCtxRelease(1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_test, end_test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_device_is_the_one_that_was_named),
        TEST(code_is_loaded_when_a_kernel_is_first_launched),
        TEST(code_is_not_free_where_memory_was_refused),
        TEST(what_the_host_wrote_is_known_and_nothing_else),
        TEST(large_copies_and_sets_are_dropped),
        TEST(a_byte_that_is_read_again_and_again_after_kernels_is_theirs),
        TEST(events_count_the_work_between_them_and_no_time_of_the_host),
        TEST(a_block_that_is_handed_out_anew_reads_as_zero),
        TEST(values_that_were_computed_are_learned_and_unlearned),
    };

    return cmocka_run_group_tests(tests, start_dry, NULL);
}
