/*
 * What the recorder leaves out because it has a limit, it counts: each limit is passed, and the counter read back.
 * docs/reliability.md has the list, which limits.py holds against the code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h> /* needs what stands above */

#include "preload/record/current.h"
#include "preload/sources/nvml.h"
#include "preload/sources/nvtx_names.h"
#include "preload/writer/modules.h"
#include "scene.h"

#define TRACE "t.trace"

/* ---- threads that never end ------------------------------------------------------------------ */

static bool has_fake_threads;
static uint32_t fake_tid;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

/* While there are fake threads, each that asks who it is is another one, and all of them live. */
long __wrap_syscall(long number, ...)
{
    long argument[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        argument[i] = va_arg(list, long);
    va_end(list);
    if (has_fake_threads && number == SYS_gettid)
        return ++fake_tid;
    if (has_fake_threads && number == SYS_tgkill)
        return 0;
    return __real_syscall(number, argument[0], argument[1], argument[2], argument[3], argument[4],
                          argument[5]);
}

static void claim_all_lanes(void *unused)
{
    (void)unused;
    scene_put(0, 0);
    fake_tid = 1u << 24;
    has_fake_threads = true;
    uint32_t claimed = 1;
    while (claimed < GM_LANES_MAX && gm_thread_claim())
        claimed++;
    for (int n = 0; n < 3; n++)
        if (gm_thread_claim())
            _exit(1);
    has_fake_threads = false;
    if (claimed != GM_LANES_MAX)
        _exit(2);
}

/* ---- each limit ------------------------------------------------------------------------------ */

/* The counter of a process that runs `body`. */
static uint64_t count_of(void (*body)(void *), void *argument, enum gm_counter counter)
{
    scene_begin(TRACE);
    int status = scene_play(body, argument);
    assert_int_equal(status, 0);
    struct scene_found found = scene_read(TRACE);
    scene_end();
    return found.header.counters[counter];
}

static void calls_of_threads_beyond_the_lanes_are_counted(void **state)
{
    (void)state;
    assert_int_equal(count_of(claim_all_lanes, NULL, GM_COUNT_LANE_LIMIT), 3);
}

static void look_for_modules_without_descriptors(void *unused)
{
    (void)unused;
    struct rlimit none;
    uint64_t offset;
    scene_put(0, 0);
    getrlimit(RLIMIT_NOFILE, &none);
    none.rlim_cur = 0;
    if (setrlimit(RLIMIT_NOFILE, &none) != 0)
        _exit(98);
    if (gm_module_of((uintptr_t)look_for_modules_without_descriptors, &offset) != 0)
        _exit(1);
    if (offset != (uintptr_t)look_for_modules_without_descriptors)
        _exit(2);
}

static void a_module_that_cannot_be_looked_up_is_counted(void **state)
{
    (void)state;
    assert_int_equal(count_of(look_for_modules_without_descriptors, NULL, GM_COUNT_MODULE_UNREAD),
                     1);
}

static void record_only(void *unused)
{
    (void)unused;
    scene_put(0, 0);
}

static void a_variable_that_has_no_room_is_counted(void **state)
{
    enum { VARIABLES = 20, LENGTH = 4000 };
    static char long_one[5000], many[VARIABLES][LENGTH];
    char *environment[VARIABLES + 2] = {long_one};
    (void)state;
    memset(long_one, 'x', sizeof(long_one) - 1);
    memcpy(long_one, "XLA_", 4);
    for (int n = 0; n < VARIABLES; n++) {
        memset(many[n], 'x', LENGTH - 1);
        memcpy(many[n], "XLA_", 4);
        environment[n + 1] = many[n];
    }
    char **before = environ;
    scene_begin(TRACE);
    environ = environment;
    assert_int_equal(scene_play(record_only, NULL), 0);
    environ = before;
    struct scene_found found = scene_read(TRACE);
    scene_end();
    /* 16 of 4,000 bytes fill 64 KiB; and the long one has no room in any. */
    assert_int_equal(found.header.counters[GM_COUNT_ENVIRONMENT_LIMIT], 1 + VARIABLES - 16);
}

static void register_names(unsigned first, unsigned count)
{
    for (unsigned n = first; n < first + count; n++) {
        char name[32];
        snprintf(name, sizeof(name), "name %u", n);
        gm_nvtx_name_register(gm_nvtx_narrow(name));
    }
}

static void register_before_and_behind_the_beginning(void *unused)
{
    (void)unused;
    register_names(0, 4096 + 5); /* before there is a trace to count them in */
    scene_put(0, 0);
    register_names(5000, 2);
    register_names(0, 4096); /* known ones */
}

static void a_name_that_has_no_room_is_counted(void **state)
{
    (void)state;
    assert_int_equal(count_of(register_before_and_behind_the_beginning, NULL, GM_COUNT_NAME_LIMIT),
                     7);
}

static void register_long_names(void *unused)
{
    char name[1024];
    (void)unused;
    scene_put(0, 0);
    for (unsigned n = 0; n < 257; n++) {
        memset(name, 'a', sizeof(name));
        memcpy(name, &n, sizeof(n));
        gm_nvtx_name_register((struct gm_name){name, sizeof(name)});
    }
}

static void a_name_for_whose_bytes_there_is_no_room_is_counted(void **state)
{
    (void)state;
    assert_int_equal(count_of(register_long_names, NULL, GM_COUNT_NAME_LIMIT), 1);
}

static void ask_about_devices(void *unused)
{
    (void)unused;
    scene_put(0, 0);
    if (!gm_device_is_followed(GM_DEVICES_MAX - 1) || gm_device_is_followed(GM_DEVICES_MAX) ||
        gm_device_is_followed(-1)) /* which is unknown, not beyond */
        _exit(1);
}

static void a_device_beyond_those_followed_is_counted(void **state)
{
    (void)state;
    assert_int_equal(count_of(ask_about_devices, NULL, GM_COUNT_DEVICE_LIMIT), 1);
}

static void sample_a_device_too_many(void *unused)
{
    (void)unused;
    scene_put(0, 0);
    gm_nvml_context(64);
}

static void a_device_that_is_not_sampled_is_counted(void **state)
{
    (void)state;
    assert_int_equal(count_of(sample_a_device_too_many, NULL, GM_COUNT_SAMPLE_LIMIT), 1);
}

static void map_too_much(void *unused)
{
    (void)unused;
    scene_put(0, 0);
    gm_lock_take(&gm_file.lock);
    for (unsigned n = 0; n < 16384; n++) /* so are the header, a lane and strings */
        if (!gm_trace_map_extents(GM_EXTENT_LANE, 0, GM_TRACE_PAGE, 1))
            _exit(1);
    gm_lock_release(&gm_file.lock);
}

static void a_mapping_that_could_not_be_lent_is_counted(void **state)
{
    (void)state;
    assert_int_equal(count_of(map_too_much, NULL, GM_COUNT_LEND_LIMIT), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_threads_beyond_the_lanes_are_counted),
        cmocka_unit_test(a_module_that_cannot_be_looked_up_is_counted),
        cmocka_unit_test(a_variable_that_has_no_room_is_counted),
        cmocka_unit_test(a_name_that_has_no_room_is_counted),
        cmocka_unit_test(a_name_for_whose_bytes_there_is_no_room_is_counted),
        cmocka_unit_test(a_device_beyond_those_followed_is_counted),
        cmocka_unit_test(a_device_that_is_not_sampled_is_counted),
        cmocka_unit_test(a_mapping_that_could_not_be_lent_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
