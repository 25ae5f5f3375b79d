/*
 * The fixture of the tests of the simulated driver.
 */
#include "support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

const struct gpusim_oracle *oracle;
struct gpusim_oracle before;
CUcontext context;

static void map_oracle(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    oracle = mmap(NULL, sizeof(*oracle), PROT_READ, MAP_SHARED, fd, 0);
    assert_true(oracle != MAP_FAILED);
    close(fd);
    assert_memory_equal(oracle->magic, GPUSIM_ORACLE_MAGIC, 8);
    unlink(path);
}

int start_driver(void **state)
{
    char path[64];

    (void)state;
    snprintf(path, sizeof(path), "/tmp/gpumem-sim-test.%ld", (long)getpid());
    setenv("GPUMEM_SIM_ORACLE", "/tmp/gpumem-sim-test.%p", 1);
    setenv("GPUMEM_SIM_DEVICES", "2", 1);
    setenv("GPUMEM_SIM_MEMORY", "256M", 1);
    assert_ok(cuInit(0));
    map_oracle(path);
    return 0;
}

int start_test(void **state)
{
    (void)state;
    assert_ok(cuDevicePrimaryCtxRetain(&context, 0));
    assert_ok(cuCtxSetCurrent(context));
    before = *oracle;
    return 0;
}

int end_test(void **state)
{
    (void)state;
    assert_ok(cuCtxSetCurrent(NULL));
    assert_ok(cuDevicePrimaryCtxRelease(0));
    for (int device = 0; device < 2; device++) {
        assert_int_equal(oracle->device[device].live, before.device[device].live);
        assert_int_equal(KIND(device, GPUSIM_EXTERNAL)->live,
                         before.device[device].kind[GPUSIM_EXTERNAL].live);
    }
    for (int kind = 0; kind < GPUSIM_HOST_KINDS; kind++)
        assert_int_equal(oracle->host[kind].live, before.host[kind].live);
    return 0;
}

int run_child(const char *role, const char *argument, const char *const *settings)
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        for (; settings && *settings; settings++)
            putenv((char *)(uintptr_t)*settings);
        execl("/proc/self/exe", "child", role, argument ? argument : "", (char *)NULL);
        _exit(126);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void read_oracle(const char *path, struct gpusim_oracle *read_into)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(read(fd, read_into, sizeof(*read_into)), (ssize_t)sizeof(*read_into));
    close(fd);
    assert_memory_equal(read_into->magic, GPUSIM_ORACLE_MAGIC, 8);
}
