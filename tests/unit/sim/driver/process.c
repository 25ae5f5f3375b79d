/*
 * Whole processes: settings, injected failures, fork, the end of the process, and sharing between
 * two of them. Each case runs in a child that is this program with a role.
 */
#include "support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a child: leave with the number of the line that was wrong. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define CHECK_CUDA(expected, call) CHECK((call) == (expected))

static void start_child(void)
{
    CHECK_CUDA(CUDA_SUCCESS, cuInit(0));
    CHECK_CUDA(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_CUDA(CUDA_SUCCESS, cuCtxSetCurrent(context));
}

/* ---- roles ----------------------------------------------------------------------------------- */

static int fail_every_third(const char *unused)
{
    CUdeviceptr pointers[6];

    (void)unused;
    start_child();
    for (int i = 0; i < 6; i++)
        CHECK_CUDA(i % 3 == 2 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS,
                   cuMemAlloc(&pointers[i], 64));
    CHECK_CUDA(CUDA_SUCCESS, cuMemFree(pointers[0]));
    CHECK(cuMemFree(pointers[1]) != CUDA_SUCCESS);    /* every second free fails ... */
    CHECK_CUDA(CUDA_SUCCESS, cuMemFree(pointers[1])); /* ... and changed nothing */
    CHECK(cuMemFree(pointers[3]) != CUDA_SUCCESS);
    return 0;
}

static int do_nothing(const char *unused)
{
    CUdeviceptr first, second;

    (void)unused;
    start_child();
    CHECK_CUDA(CUDA_SUCCESS, cuMemAlloc(&first, 1ull << 60));
    CHECK_CUDA(CUDA_SUCCESS, cuMemAllocAsync(&second, 64, NULL));
    CHECK(first != second);
    CHECK_CUDA(CUDA_SUCCESS, cuMemFree(first));
    CHECK_CUDA(CUDA_SUCCESS, cuMemFreeAsync(second, NULL));
    return 0;
}

static int exit_code_of(pid_t child)
{
    int status;

    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int fork_before_and_after(const char *unused)
{
    CUdeviceptr pointer;

    (void)unused;
    pid_t early = fork();
    if (early == 0) {
        start_child();
        CHECK_CUDA(CUDA_SUCCESS, cuMemAlloc(&pointer, 64));
        _exit(0);
    }
    CHECK(exit_code_of(early) == 0);
    start_child();
    pid_t late = fork();
    if (late == 0) {
        int count;

        CHECK_CUDA(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
        CHECK_CUDA(CUDA_ERROR_NOT_INITIALIZED, cuInit(0));
        CHECK_CUDA(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc(&pointer, 64));
        _exit(0);
    }
    CHECK(exit_code_of(late) == 0);
    CHECK_CUDA(CUDA_SUCCESS, cuMemAlloc(&pointer, 64));
    return 0;
}

static int read_settings(const char *unused)
{
    int count, version;
    size_t total;

    (void)unused;
    CHECK_CUDA(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
    CHECK_CUDA(CUDA_SUCCESS, cuInit(0));
    CHECK_CUDA(CUDA_SUCCESS, cuDeviceGetCount(&count));
    CHECK(count == 3);
    CHECK_CUDA(CUDA_SUCCESS, cuDeviceTotalMem(&total, 2));
    CHECK(total == 1ull << 30);
    CHECK_CUDA(CUDA_SUCCESS, cuDriverGetVersion(&version));
    CHECK(version == 12040);
    return 0;
}

static size_t free_of_device(void)
{
    size_t free_bytes = 0, total;

    return cuMemGetInfo(&free_bytes, &total) == CUDA_SUCCESS ? free_bytes : 0;
}

static int share_pieces(const char *unused)
{
    const size_t piece = 2 << 20;
    CUdeviceptr small[3], large;
    CUcontext primary;

    (void)unused;
    CHECK_CUDA(CUDA_SUCCESS, cuInit(0));
    CHECK_CUDA(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&primary, 0));
    CHECK_CUDA(CUDA_SUCCESS, cuCtxSetCurrent(primary));
    const size_t at_first = free_of_device();
    CHECK_CUDA(CUDA_SUCCESS, cuMemAlloc(&small[0], 1));
    CHECK(free_of_device() == at_first - piece);
    CHECK_CUDA(CUDA_SUCCESS, cuMemAlloc(&small[1], piece / 2));
    CHECK(free_of_device() == at_first - piece);
    CHECK_CUDA(CUDA_SUCCESS, cuMemAlloc(&small[2], piece / 2));
    CHECK(free_of_device() == at_first - 2 * piece);
    CHECK_CUDA(CUDA_SUCCESS, cuMemAlloc(&large, piece));
    CHECK(free_of_device() == at_first - 3 * piece);
    CHECK_CUDA(CUDA_SUCCESS, cuMemFree(small[1]));
    CHECK(free_of_device() == at_first - 2 * piece);
    CHECK_CUDA(CUDA_SUCCESS, cuMemFree(small[0]));
    CHECK_CUDA(CUDA_SUCCESS, cuMemFree(small[2]));
    CHECK_CUDA(CUDA_SUCCESS, cuMemFree(large));
    CHECK(free_of_device() == at_first);
    return 0;
}

static int be_injected(const char *unused)
{
    (void)unused;
    CHECK_CUDA(CUDA_SUCCESS, cuInit(0));
    CHECK_CUDA(CUDA_SUCCESS, cuInit(0));
    const char *injected = getenv("GPUMEM_TEST_INJECTED");
    CHECK(injected && strcmp(injected, "once") == 0);
    return 0;
}

/* Opens the handle in the file, reads what the exporter wrote, writes an answer. */
static int open_handle(const char *path)
{
    CUipcMemHandle handle;
    CUdeviceptr pointer, again;
    FILE *file = fopen(path, "rb");
    int value = 0, reply = 4321;

    CHECK(file && fread(&handle, sizeof(handle), 1, file) == 1);
    fclose(file);
    start_child();
    CHECK_CUDA(CUDA_SUCCESS,
               cuIpcOpenMemHandle(&pointer, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    CHECK_CUDA(CUDA_SUCCESS,
               cuIpcOpenMemHandle(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    CHECK(again == pointer);
    CHECK_CUDA(CUDA_SUCCESS, cuMemcpyDtoH(&value, pointer, sizeof(value)));
    CHECK(value == 1234);
    CHECK_CUDA(CUDA_SUCCESS, cuMemcpyHtoD(pointer + 100, &reply, sizeof(reply)));
    CHECK_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemFree(pointer));
    CHECK_CUDA(CUDA_SUCCESS, cuIpcCloseMemHandle(pointer));
    CHECK_CUDA(CUDA_SUCCESS, cuMemcpyDtoH(&value, pointer, sizeof(value)));
    CHECK_CUDA(CUDA_SUCCESS, cuIpcCloseMemHandle(pointer));
    CHECK_CUDA(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(pointer));
    return 0;
}

/* Opens the event of the handle in the file, and waits for it. */
static int open_event(const char *path)
{
    CUipcEventHandle handle, damaged;
    CUevent event;
    FILE *file = fopen(path, "rb");

    CHECK(file && fread(&handle, sizeof(handle), 1, file) == 1);
    fclose(file);
    start_child();
    memset(&damaged, 'x', sizeof(damaged));
    CHECK_CUDA(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenEventHandle(&event, damaged));
    CHECK_CUDA(CUDA_SUCCESS, cuIpcOpenEventHandle(&event, handle));
    CHECK_CUDA(CUDA_SUCCESS, cuStreamWaitEvent(NULL, event, 0));
    CHECK_CUDA(CUDA_SUCCESS, cuEventSynchronize(event));
    CHECK_CUDA(CUDA_SUCCESS, cuEventDestroy(event));
    return 0;
}

static int die(const char *unused)
{
    CUdeviceptr pointer;

    (void)unused;
    start_child();
    CHECK_CUDA(CUDA_SUCCESS, cuMemAlloc(&pointer, 12345));
    raise(SIGKILL);
    return 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static char oracle_path[64];
static char oracle_setting[96];

static int start_process(void **state)
{
    (void)state;
    snprintf(oracle_path, sizeof(oracle_path), "/tmp/gpumem-sim-child.%ld", (long)getpid());
    snprintf(oracle_setting, sizeof(oracle_setting), "GPUMEM_SIM_ORACLE=%s", oracle_path);
    return 0;
}

static int end_process(void **state)
{
    (void)state;
    unlink(oracle_path);
    return 0;
}

static void injected_failures_come_in_turn(void **state)
{
    const char *settings[] = {"GPUMEM_SIM_FAIL=alloc:3,free:2", oracle_setting, NULL};
    struct gpusim_oracle totals;

    (void)state;
    assert_int_equal(run_child("fail_every_third", NULL, settings), 0);
    read_oracle(oracle_path, &totals);
    assert_int_equal(totals.failed, 2);
    assert_int_equal(totals.device[0].kind[GPUSIM_DEVICE].allocs, 4);
    assert_int_equal(totals.device[0].kind[GPUSIM_DEVICE].frees, 2);
}

static void the_benchmark_path_touches_nothing(void **state)
{
    const char *settings[] = {"GPUMEM_SIM_NOOP=1", oracle_setting, NULL};
    struct gpusim_oracle totals;

    (void)state;
    assert_int_equal(run_child("do_nothing", NULL, settings), 0);
    read_oracle(oracle_path, &totals);
    assert_int_equal(totals.device[0].kind[GPUSIM_DEVICE].allocs, 0);
}

static void a_fork_has_a_driver_only_when_it_came_first(void **state)
{
    (void)state;
    assert_int_equal(run_child("fork_before_and_after", NULL, NULL), 0);
}

static void the_environment_sets_devices_memory_and_version(void **state)
{
    const char *settings[] = {"GPUMEM_SIM_DEVICES=3", "GPUMEM_SIM_MEMORY=1G",
                              "GPUMEM_SIM_DRIVER_VERSION=12040", NULL};

    (void)state;
    assert_int_equal(run_child("read_settings", NULL, settings), 0);
}

static void small_allocations_share_pieces_where_that_is_asked_for(void **state)
{
    const char *settings[] = {"GPUMEM_SIM_SHARE=1", NULL};

    (void)state;
    assert_int_equal(run_child("share_pieces", NULL, settings), 0);
}

static void a_tool_is_injected_once(void **state)
{
    const char *settings[] = {"CUDA_INJECTION64_PATH=/nowhere/absent.so:" INJECTION, NULL};

    (void)state;
    assert_int_equal(run_child("be_injected", NULL, settings), 0);
}

static void the_oracle_survives_a_kill(void **state)
{
    const char *settings[] = {oracle_setting, NULL};
    struct gpusim_oracle totals;

    (void)state;
    assert_int_equal(run_child("die", NULL, settings), 128 + 9);
    read_oracle(oracle_path, &totals);
    assert_int_equal(totals.device[0].kind[GPUSIM_DEVICE].live, 12345);
    assert_int_equal(totals.device[0].peak, 12345);
}

/* The exit code of a child with that role, which finds the handle in a file. */
static int open_in_a_child(const char *role, const void *handle, size_t size,
                           const char *settings[])
{
    char path[64];

    snprintf(path, sizeof(path), "/tmp/gpumem-sim-handle.%ld", (long)getpid());
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(handle, size, 1, file) == 1);
    fclose(file);
    int code = run_child(role, path, settings);
    unlink(path);
    return code;
}

static void share_an_event(const char *settings[])
{
    CUipcEventHandle handle;
    CUevent event, own;

    assert_ok(cuEventCreate(&own, CU_EVENT_DISABLE_TIMING));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuIpcGetEventHandle(&handle, own));
    assert_ok(cuEventDestroy(own));
    assert_ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    assert_ok(cuEventRecord(event, NULL));
    assert_ok(cuIpcGetEventHandle(&handle, event));
    assert_cuda(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenEventHandle(&own, handle));
    assert_int_equal(open_in_a_child("open_event", &handle, sizeof(handle), settings), 0);
    assert_ok(cuEventDestroy(event));
}

static void memory_and_events_are_shared_between_processes(void **state)
{
    const char *settings[] = {oracle_setting, NULL};
    struct gpusim_oracle totals;
    CUipcMemHandle handle;
    CUdeviceptr pointer, same;
    int value = 1234;

    (void)state;
    start_driver(NULL);
    start_test(NULL);
    assert_ok(cuMemAlloc(&same, 777)); /* so that the memory shared does not start a page */
    assert_ok(cuMemAlloc(&pointer, 9000));
    assert_ok(cuMemcpyHtoD(pointer, &value, sizeof(value)));
    assert_ok(cuIpcGetMemHandle(&handle, pointer));
    assert_ok(cuMemFree(same));
    assert_cuda(CUDA_ERROR_INVALID_CONTEXT,
                cuIpcOpenMemHandle(&same, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    assert_int_equal(open_in_a_child("open_handle", &handle, sizeof(handle), settings), 0);
    assert_ok(cuMemcpyDtoH(&value, pointer + 100, sizeof(value)));
    assert_int_equal(value, 4321);
    read_oracle(oracle_path, &totals);
    assert_int_equal(totals.device[0].kind[GPUSIM_EXTERNAL].allocs, 1);
    assert_int_equal(totals.device[0].kind[GPUSIM_EXTERNAL].frees, 1);
    assert_ok(cuMemFree(pointer));
    share_an_event(settings);
    end_test(NULL);
}

static int play(const char *role, const char *argument)
{
    static const struct {
        const char *name;
        int (*play)(const char *argument);
    } roles[] = {
        {"fail_every_third", fail_every_third},
        {"do_nothing", do_nothing},
        {"fork_before_and_after", fork_before_and_after},
        {"read_settings", read_settings},
        {"share_pieces", share_pieces},
        {"be_injected", be_injected},
        {"open_handle", open_handle},
        {"open_event", open_event},
        {"die", die},
    };

    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        if (strcmp(roles[i].name, role) == 0)
            return roles[i].play(argument);
    }
    return 125;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_process, end_process)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(injected_failures_come_in_turn),
        TEST(the_benchmark_path_touches_nothing),
        TEST(a_fork_has_a_driver_only_when_it_came_first),
        TEST(the_environment_sets_devices_memory_and_version),
        TEST(small_allocations_share_pieces_where_that_is_asked_for),
        TEST(a_tool_is_injected_once),
        TEST(the_oracle_survives_a_kill),
        TEST(memory_and_events_are_shared_between_processes),
    };

    if (argc > 1)
        return play(argv[1], argc > 2 ? argv[2] : "");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
