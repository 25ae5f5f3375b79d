/*
 * Which call a record is named after, when calls are not returned from: signal handlers and
 * callbacks jump out of them, and coroutines are left inside them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "scene.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h> /* needs what stands above */

enum { RUNTIME = 1, DRIVER = 2 };

/* The api of the record that this call makes, 0 if it makes none. */
static __attribute__((noinline)) uint16_t name_of_call(uint16_t api, void (*inside)(void))
{
    struct gm_call call;
    uint16_t name = 0;
    gm_call_begin(&call, api, __builtin_frame_address(0));
    if (inside)
        inside();
    if (gm_call_active(&call)) {
        const struct gm_thread *thread = call.thread;
        uint64_t before = thread->head;
        struct gm_record record = scene_record(0, 0);
        gm_call_record(&call, &record, NULL);
        if (thread->head != before)
            name = thread->records[before & thread->mask].api;
    }
    gm_call_end(&call);
    return name;
}

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static bool is_idle(void)
{
    return gm_tls.thread->depth == 0;
}

static void play(void (*body)(void *))
{
    assert_int_equal(scene_play(body, NULL), 0);
}

/* ---- nothing out of the way ------------------------------------------------------------------ */

static void call_driver_below(void)
{
    expect(name_of_call(DRIVER, NULL) == RUNTIME);
}

static __attribute__((noinline)) void call_driver_far_below(void)
{
    char room[300000]; /* initialisation of the driver can go that deep */
    __asm__ volatile("" : : "r"(room) : "memory");
    call_driver_below();
    __asm__ volatile("" : : "r"(room) : "memory");
}

static void nest(void *unused)
{
    (void)unused;
    expect(name_of_call(RUNTIME, call_driver_below) == RUNTIME);
    expect(name_of_call(RUNTIME, call_driver_far_below) == RUNTIME);
    expect(name_of_call(DRIVER, NULL) == DRIVER);
    expect(is_idle());
}

static void a_call_inside_another_bears_its_name(void **unused)
{
    (void)unused;
    play(nest);
}

/* ---- jumps ----------------------------------------------------------------------------------- */

static sigjmp_buf back;

static void jump(void)
{
    siglongjmp(back, 1);
}

static void jump_from_below(void)
{
    name_of_call(DRIVER, jump);
}

static void jump_out(void *from_below)
{
    for (int i = 0; i < 3; i++) {
        if (sigsetjmp(back, 1) == 0)
            name_of_call(RUNTIME, from_below ? jump_from_below : jump);
        expect(name_of_call(DRIVER, NULL) == DRIVER);
        expect(is_idle());
        nest(NULL);
    }
}

static void a_call_that_was_jumped_out_of_names_no_other(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(jump_out, NULL), 0);
    assert_int_equal(scene_play(jump_out, jump), 0);
}

/* Only the inner one: the outer goes on, and so does its name. */
static void jump_out_of_inner(void)
{
    if (sigsetjmp(back, 1) == 0)
        name_of_call(DRIVER, jump);
    expect(name_of_call(DRIVER, NULL) == RUNTIME);
}

static void jump_inside(void *unused)
{
    (void)unused;
    expect(name_of_call(RUNTIME, jump_out_of_inner) == RUNTIME);
    expect(is_idle());
}

static void a_jump_inside_a_call_leaves_its_name(void **unused)
{
    (void)unused;
    play(jump_inside);
}

/* The recorder itself is interrupted, and left. */
static void jump_out_of_recorder(void *unused)
{
    (void)unused;
    expect(name_of_call(DRIVER, NULL) == DRIVER);
    fake_capture = jump;
    if (sigsetjmp(back, 1) == 0)
        name_of_call(RUNTIME, NULL);
    fake_capture = NULL;
    expect(name_of_call(DRIVER, NULL) == DRIVER);
    expect(is_idle());
}

static void a_thread_that_left_the_recorder_by_a_jump_records_on(void **unused)
{
    (void)unused;
    play(jump_out_of_recorder);
}

/* ---- other stacks ---------------------------------------------------------------------------- */

static bool handler_jumps;

static void handle(int signal)
{
    (void)signal;
    expect(name_of_call(DRIVER, handler_jumps ? jump : NULL) == DRIVER);
}

static void interrupt_on_another_stack(void)
{
    raise(SIGUSR1);
    if (!handler_jumps)
        expect(name_of_call(DRIVER, NULL) == RUNTIME);
}

static void use_signal_stack(void *jumps)
{
    stack_t stack = {.ss_sp = malloc(1 << 18), .ss_size = 1 << 18};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    handler_jumps = jumps != NULL;
    for (int i = 0; i < 3; i++) {
        if (sigsetjmp(back, 1) == 0)
            expect(name_of_call(RUNTIME, interrupt_on_another_stack) == RUNTIME);
        expect(name_of_call(DRIVER, NULL) == DRIVER);
        expect(is_idle());
        nest(NULL);
    }
}

static void a_handler_on_its_own_stack_has_its_own_name(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(use_signal_stack, NULL), 0);
    assert_int_equal(scene_play(use_signal_stack, jump), 0);
}

static ucontext_t outside, coroutine;

static void leave_coroutine(void)
{
    swapcontext(&coroutine, &outside);
}

static void run_coroutine(void)
{
    name_of_call(RUNTIME, leave_coroutine);
    for (;;) {
        nest(NULL);
        leave_coroutine();
    }
}

static void make_coroutine(void)
{
    getcontext(&coroutine);
    coroutine.uc_stack = (stack_t){.ss_sp = malloc(1 << 20), .ss_size = 1 << 20};
    coroutine.uc_link = NULL;
    makecontext(&coroutine, run_coroutine, 0);
}

static void use_coroutines(void *gives_up)
{
    expect(name_of_call(DRIVER, NULL) == DRIVER);
    for (int i = 0; i < 3; i++) {
        make_coroutine();
        swapcontext(&outside, &coroutine); /* it is inside of a call now */
        expect(name_of_call(DRIVER, NULL) == DRIVER);
        expect(name_of_call(RUNTIME, call_driver_below) == RUNTIME);
        if (gives_up)
            continue;
        swapcontext(&outside, &coroutine);
        nest(NULL);
        expect(is_idle());
    }
}

static void a_call_left_in_a_coroutine_names_no_other(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(use_coroutines, NULL), 0);
    assert_int_equal(scene_play(use_coroutines, jump), 0);
}

static void *jump_in_thread(void *from_below)
{
    jump_out(from_below);
    jump_out_of_recorder(NULL);
    use_signal_stack(from_below);
    return NULL;
}

static void run_in_thread(void *unused)
{
    (void)unused;
    pthread_t thread;
    pthread_create(&thread, NULL, jump_in_thread, (void *)jump);
    pthread_join(thread, NULL);
}

static void all_of_it_holds_on_the_stack_of_a_thread(void **unused)
{
    (void)unused;
    play(run_in_thread);
}

static int begin(void **unused)
{
    (void)unused;
    scene_begin("calls.trace");
    return 0;
}

static int end(void **unused)
{
    (void)unused;
    fake_capture = NULL;
    scene_end();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_call_inside_another_bears_its_name, begin, end),
        cmocka_unit_test_setup_teardown(a_call_that_was_jumped_out_of_names_no_other, begin, end),
        cmocka_unit_test_setup_teardown(a_jump_inside_a_call_leaves_its_name, begin, end),
        cmocka_unit_test_setup_teardown(a_thread_that_left_the_recorder_by_a_jump_records_on, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_handler_on_its_own_stack_has_its_own_name, begin, end),
        cmocka_unit_test_setup_teardown(a_call_left_in_a_coroutine_names_no_other, begin, end),
        cmocka_unit_test_setup_teardown(all_of_it_holds_on_the_stack_of_a_thread, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
