/*
 * Shared by the tests of the simulated driver: a fresh driver with a primary context, its oracle,
 * and children that are this program again with the name of a role.
 */
#ifndef GPUMEM_TESTS_SIM_DRIVER_SUPPORT_H
#define GPUMEM_TESTS_SIM_DRIVER_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include <cmocka.h> /* needs the headers above */

#include "oracle.h"

#define MIB (1ull << 20)
#define CAPACITY (256 * MIB)

#define assert_cuda(expected, call) assert_int_equal(call, expected)
#define assert_ok(call) assert_cuda(CUDA_SUCCESS, call)

/* The totals of this process, mapped, and those from the beginning of the current test. */
extern const struct gpusim_oracle *oracle;
extern struct gpusim_oracle before;
extern CUcontext context;

/* Two devices of CAPACITY, driver initialised, primary context of device 0 retained and current. */
int start_driver(void **state);
/* A fresh primary context and the totals remembered. */
int start_test(void **state);
/* Requires that nothing is live that was not live before. */
int end_test(void **state);

/* Runs this program again as "program role argument", with settings like "NAME=value"; gives its
 * exit code, or 128 + signal. The driver of the child is its own. */
int run_child(const char *role, const char *argument, const char *const *settings);
/* The oracle that a child left in the file; fails the test if there is none. */
void read_oracle(const char *path, struct gpusim_oracle *read);

#define KIND(device_id, of_kind) (&oracle->device[device_id].kind[of_kind])
#define DELTA(device_id, of_kind, field)                                                           \
    (oracle->device[device_id].kind[of_kind].field - before.device[device_id].kind[of_kind].field)
#define HOST_DELTA(of_kind, field) (oracle->host[of_kind].field - before.host[of_kind].field)

#endif
