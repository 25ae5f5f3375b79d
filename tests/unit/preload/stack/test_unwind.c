/*
 * The unwinder in the situations that a random call tree does not reach. unwind_oracle compares
 * its answers with libunwind's at large.
 */
#include "base/platform.h"
#include "stack/native/unwind.h"
#include "unwind_oracle/plugin.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#include <cmocka.h> /* needs the headers above */

#include "assert_between.h"

#define APART __attribute__((noinline))
/* For is_in: no other of these functions may begin in the same 512 bytes. */
#define KNOWN __attribute__((noinline, aligned(512)))
#define KEEP(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

#if GM_UNWIND_HAS_RULES
#define ORDINARY 0u /* flags of a complete stack */
#else
#define ORDINARY ((unsigned)GM_WALK_FALLBACK) /* libunwind walks all stacks there */
#endif

static __thread struct gm_unwind_thread state;

/* The stack from the caller outwards. */
static APART void walk_from_caller(struct gm_walk *walk, uint32_t depth)
{
    gm_unwind_walk(&state, gm_registers_of_caller(__builtin_frame_address(0)), depth, walk);
    KEEP(walk);
}

static void forget(void)
{
    memset(&state, 0, sizeof state);
}

static uint64_t innermost(const struct gm_walk *walk, uint32_t index)
{
    return walk->frames[walk->count - 1 - index].pc;
}

static bool is_in(uint64_t pc, const void *function)
{
    return pc - (uint64_t)(uintptr_t)function < 512;
}

/* ---- against the C library's answer ---------------------------------------------------------- */

/*
 * Both answers have the same frames outside of the calling function. A sanitizer's own backtrace()
 * adds one inside.
 */
static APART void assert_as_backtrace(void)
{
    void *expected[GM_UNWIND_DEPTH_MAX];
    struct gm_walk walk;
    int count = backtrace(expected, GM_UNWIND_DEPTH_MAX);
    walk_from_caller(&walk, GM_UNWIND_DEPTH_MAX);
    assert_int_equal(walk.flags, ORDINARY);
    assert_between(count, walk.count, walk.count + 1);
    for (uint32_t i = 1; i < walk.count; i++)
        assert_ptr_equal(innermost(&walk, i), expected[i + (uint32_t)count - walk.count]);
}

static int compare_looking(const void *left, const void *right)
{
    assert_as_backtrace();
    return left < right;
}

static void frames_are_those_of_backtrace(void **unused)
{
    (void)unused;
    int numbers[] = {3, 1, 2};
    forget();
    assert_as_backtrace();
    qsort(numbers, 3, sizeof numbers[0], compare_looking);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

#if GM_UNWIND_HAS_RULES

static void frames_are_kept_once_they_have_nodes(void **unused)
{
    (void)unused;
    struct gm_walk walk[3];
    forget();
    for (int i = 0; i < 3; i++) {
        walk_from_caller(&walk[i], GM_UNWIND_DEPTH_MAX);
        if (i == 1)
            gm_unwind_interned(&state, walk[i].count);
    }
    assert_int_equal(walk[0].kept, 0);
    assert_int_equal(walk[1].kept, 0); /* the same stack, but without nodes */
    /* all except this function's, if the compiler unrolled the loop */
    assert_true(walk[2].kept >= walk[2].count - 1);
}

#endif

/* ---- depth ----------------------------------------------------------------------------------- */

static void recur(unsigned levels, uint32_t depth, struct gm_walk *walk);

/* Calls go through this, so that no compiler merges several frames into one. */
static void (*volatile recur_again)(unsigned, uint32_t, struct gm_walk *) = recur;

static KNOWN void recur(unsigned levels, uint32_t depth, struct gm_walk *walk)
{
    if (levels > 0)
        recur_again(levels - 1, depth, walk);
    else
        walk_from_caller(walk, depth);
    KEEP(walk);
}

static void a_deeper_stack_keeps_the_innermost_frames(void **unused)
{
    (void)unused;
    struct gm_walk walk;
    forget();
    for (unsigned levels = 1000; levels > 64; levels /= 2) {
        recur(levels, 64, &walk);
        assert_int_equal(walk.count, 64);
        assert_int_equal(walk.flags, ORDINARY | GM_WALK_TRUNCATED);
        assert_true(is_in(innermost(&walk, 0), recur));
        assert_true(is_in(innermost(&walk, 63), recur));
        gm_unwind_interned(&state, walk.count);
    }
}

/* In any order, so that each answer follows a shallower, a deeper and an equal stack once. */
static void truncation_does_not_depend_on_earlier_walks(void **unused)
{
    (void)unused;
    static const unsigned levels[] = {10, 70, 70, 10, 69, 200, 70, 5, 200, 200, 63, 64, 62, 65};
    struct gm_walk walk;
    forget();
    walk_from_caller(&walk, GM_UNWIND_DEPTH_MAX);
    uint32_t outside = walk.count; /* this function and what called it */
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        uint32_t full = outside + levels[i] + 1;
        recur(levels[i], 64, &walk);
        assert_int_equal(walk.count, full < 64 ? full : 64);
        assert_int_equal(walk.flags, ORDINARY | (full > 64 ? GM_WALK_TRUNCATED : 0));
        assert_true(is_in(innermost(&walk, 0), recur));
        gm_unwind_interned(&state, walk.count);
    }
}

/* ---- code that goes away --------------------------------------------------------------------- */

struct plugin_result {
    struct gm_walk walk;
    uint64_t pc; /* of the plugin's frame */
};

static void look_for_plugin(void *data, unsigned depth)
{
    struct plugin_result *result = data;
    walk_from_caller(&result->walk, depth);
    result->pc = innermost(&result->walk, 1);
}

static APART void call_plugin(int build, struct plugin_result *result)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/oracle_plugin_%d.so", PLUGIN_FOLDER, build);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    void (*call)(void (*)(void *, unsigned), void *, unsigned);
    void *symbol = dlsym(library, "plugin_call");
    assert_non_null(symbol);
    memcpy(&call, &symbol, sizeof call);
    call(look_for_plugin, result, GM_UNWIND_DEPTH_MAX);
    gm_unwind_new_generation();
    dlclose(library);
    gm_unwind_new_generation();
}

static void other_code_in_the_place_of_a_closed_library_has_its_own_rules(void **unused)
{
    (void)unused;
    struct plugin_result first, second;
    uint64_t pcs[GM_UNWIND_DEPTH_MAX];
    forget();
    for (int attempt = 0; attempt < 10; attempt++) {
        call_plugin(0, &first);
        uint32_t count = first.walk.count;
        assert_int_equal(first.walk.flags, ORDINARY);
        for (uint32_t i = 0; i < count; i++)
            pcs[i] = first.walk.frames[i].pc;
        call_plugin(1, &second);
        if (first.pc != second.pc)
            continue; /* the loader put it elsewhere: this proves nothing */
        assert_int_equal(second.walk.flags, ORDINARY);
        assert_int_equal(second.walk.count, count);
        for (uint32_t i = 0; i < count; i++)
            if (i != count - 4) /* the function here, which calls from two places */
                assert_int_equal(second.walk.frames[i].pc, pcs[i]);
        return;
    }
#if defined(__x86_64__)
    fail_msg("the two libraries were never loaded at one address");
#else
    skip(); /* their code may differ in length there */
#endif
}

/* ---- other stacks ---------------------------------------------------------------------------- */

static void *look_on_small_stack(void *data)
{
    assert_as_backtrace();
    KEEP(data);
    return data;
}

static void a_thread_with_the_smallest_stack_is_walked(void **unused)
{
    (void)unused;
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    /* room for cmocka and backtrace, and a page: far below the usual 8 MiB */
    pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN + 128 * 1024);
    assert_int_equal(pthread_create(&thread, &attributes, look_on_small_stack, NULL), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}

static ucontext_t starter, coroutine;
static void (*coroutine_body)(void);

static void coroutine_enter(void)
{
    coroutine_body();
    setcontext(&starter);
}

static void run_on(void *memory, size_t size, void (*body)(void))
{
    coroutine_body = body;
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = memory;
    coroutine.uc_stack.ss_size = size;
    makecontext(&coroutine, coroutine_enter, 0);
    swapcontext(&starter, &coroutine);
}

static struct gm_walk coroutine_walk;

static void look_deep(void)
{
    recur(20, GM_UNWIND_DEPTH_MAX, &coroutine_walk);
}

static void look_deep_with_errno(void)
{
    errno = EXDEV;
    recur(200, GM_UNWIND_DEPTH_MAX, &coroutine_walk);
    assert_int_equal(errno, EXDEV);
}

static void *map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

/* On a stack that the unwinder must find by system calls, which fail on purpose. */
static void errno_is_kept(void **unused)
{
    (void)unused;
    size_t size = 256 * 1024;
    void *memory = map(size);
    forget();
    run_on(memory, size, look_deep_with_errno);
    assert_int_equal(coroutine_walk.flags, ORDINARY);
    munmap(memory, size);
}

static void a_stack_that_was_left_is_not_read_again(void **unused)
{
    (void)unused;
    size_t size = 256 * 1024;
    struct gm_walk walk;
    forget();
    walk_from_caller(&walk, GM_UNWIND_DEPTH_MAX);
    uint32_t here = walk.count;
    for (int i = 0; i < 20; i++) {
        void *memory = map(size);
        run_on(memory, size, look_deep);
        assert_true(coroutine_walk.count >= 22);
        munmap(memory, size);
        walk_from_caller(&walk, GM_UNWIND_DEPTH_MAX);
        assert_int_equal(walk.count, here);
    }
}

/* A stack in the upper half of a former larger one, whose end is now beyond a guard. */
static void a_stack_in_the_place_of_a_larger_one_is_walked_to_its_own_end(void **unused)
{
    (void)unused;
    size_t size = 512 * 1024;
    char *memory = map(size);
    forget();
    run_on(memory, size, look_deep);
    uint32_t count = coroutine_walk.count;
    assert_int_equal(mprotect(memory + size / 2, size / 2, PROT_NONE), 0);
    run_on(memory, size / 2, look_deep);
    assert_int_equal(coroutine_walk.count, count);
    munmap(memory, size);
}

/* ---- signals --------------------------------------------------------------------------------- */

static struct gm_walk signal_walk;

static KNOWN void look_in_handler(int number)
{
    walk_from_caller(&signal_walk, GM_UNWIND_DEPTH_MAX);
    KEEP(&number);
}

static KNOWN void raise_looking(void)
{
    struct sigaction action = {.sa_handler = look_in_handler};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    KEEP(&action);
}

static bool walk_passes(const struct gm_walk *walk, const void *function)
{
    for (uint32_t i = 0; i < walk->count; i++)
        if (is_in(walk->frames[i].pc, function))
            return true;
    return false;
}

static void a_stack_with_a_signal_frame_is_walked_by_libunwind(void **unused)
{
    (void)unused;
#if defined(__ARM_FEATURE_PAC_DEFAULT)
    skip(); /* libunwind 1.6 does not know signed return addresses */
#endif
    forget();
    raise_looking();
    assert_int_equal(signal_walk.flags, GM_WALK_FALLBACK);
    assert_true(walk_passes(&signal_walk, raise_looking));
    unsigned exact = 0;
    for (uint32_t i = 0; i < signal_walk.count; i++)
        exact += (signal_walk.frames[i].flags & GM_FRAME_EXACT) != 0;
    assert_int_equal(exact, 1);
    struct gm_walk walk;
    walk_from_caller(&walk, GM_UNWIND_DEPTH_MAX);
    assert_int_equal(walk.kept, 0); /* nothing of that answer can be checked again */
    assert_int_equal(walk.flags, ORDINARY);
}

/* Signals interrupt the walk all the time, at every instruction. */
static volatile sig_atomic_t nested, nested_busy;
static sigjmp_buf leave;
static bool leaves;

static void walk_in_walk(int number)
{
    struct gm_walk walk;
    (void)number;
    bool busy = state.busy != 0;
    if (busy) { /* else it would be a walk after the walk, which may change its frames */
        walk_from_caller(&walk, GM_UNWIND_DEPTH_MAX);
        nested++;
        nested_busy += walk.flags == GM_WALK_BUSY && walk.count == 0;
        if (leaves)
            siglongjmp(leave, 1);
    }
}

static void start_timer(long microseconds)
{
    struct sigaction action = {.sa_handler = walk_in_walk};
    struct itimerval interval = {.it_interval = {.tv_usec = microseconds},
                                 .it_value = {.tv_usec = microseconds}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &interval, NULL);
}

#define NESTED_WANTED 50

static void a_walk_in_an_interrupted_walk_is_empty_and_harmless(void **unused)
{
    (void)unused;
    struct gm_walk walk;
    forget();
    recur(40, GM_UNWIND_DEPTH_MAX, &walk);
    uint32_t count = walk.count;
    nested = nested_busy = 0;
    leaves = false;
    start_timer(100);
    while (nested < NESTED_WANTED) {
        gm_unwind_new_generation(); /* make it long */
        recur(40, GM_UNWIND_DEPTH_MAX, &walk);
        assert_int_equal(walk.count, count);
        assert_int_equal(walk.flags, ORDINARY);
        assert_true(is_in(innermost(&walk, 0), recur));
        assert_true(is_in(innermost(&walk, 39), recur));
    }
    start_timer(0);
    assert_int_equal(nested_busy, nested);
}

#if GM_UNWIND_HAS_RULES

static void without_libunwind_a_stack_is_cut_at_a_signal_frame(void **unused)
{
    (void)unused;
    forget();
    raise_looking();
    assert_int_equal(signal_walk.flags, GM_WALK_CUT);
    assert_false(walk_passes(&signal_walk, raise_looking));
    assert_true(is_in(innermost(&signal_walk, 0), look_in_handler));
}

static void a_walk_left_by_longjmp_does_not_end_all_walks(void **unused)
{
    (void)unused;
    struct gm_walk walk;
    forget();
    recur(40, GM_UNWIND_DEPTH_MAX, &walk);
    uint32_t count = walk.count;
    nested = nested_busy = 0;
    leaves = true;
    start_timer(100);
    while (nested < NESTED_WANTED) {
        if (sigsetjmp(leave, 1) == 0) {
            gm_unwind_new_generation();
            recur(40, GM_UNWIND_DEPTH_MAX, &walk);
        } else { /* out of a handler; the timer must not get here before the walk has ended */
            start_timer(0);
            walk_from_caller(&walk, GM_UNWIND_DEPTH_MAX);
            assert_int_equal(walk.flags, ORDINARY);
            recur(40, GM_UNWIND_DEPTH_MAX, &walk);
            assert_int_equal(walk.count, count);
            start_timer(100);
        }
    }
    start_timer(0);
}

/* ---- wrong tables ---------------------------------------------------------------------------- */

/* Calls a function from a frame whose unwind data say that it is `size` bytes larger than it is. */
#if defined(__x86_64__)
#define LYING_BODY(size)                                                                           \
    "    subq $8, %rsp\n"                                                                          \
    "    .cfi_def_cfa_offset 16 + " #size "\n"                                                     \
    "    call *%rdi\n"                                                                             \
    "    addq $8, %rsp\n"                                                                          \
    "    ret\n"
#elif defined(__aarch64__)
#define LYING_BODY(size)                                                                           \
    "    stp x29, x30, [sp, #-16]!\n"                                                              \
    "    .cfi_def_cfa_offset 16 + " #size "\n"                                                     \
    "    .cfi_offset 29, -16\n"                                                                    \
    "    .cfi_offset 30, -8\n"                                                                     \
    "    mov x29, sp\n"                                                                            \
    "    blr x0\n"                                                                                 \
    "    ldp x29, x30, [sp], #16\n"                                                                \
    "    ret\n"
#endif
#define LYING_FRAME(name, size)                                                                    \
    void name(void (*function)(void));                                                             \
    __asm__(".text\n.type " #name ", %function\n" #name ":\n"                                      \
            "    .cfi_startproc\n" LYING_BODY(size) "    .cfi_endproc\n"                           \
                                                    ".size " #name ", . - " #name "\n")

LYING_FRAME(lie_by_a_page, 4096);
LYING_FRAME(lie_by_much, 0x40000000);
LYING_FRAME(lie_by_one, 1);

static void look_from_liar(void)
{
    walk_from_caller(&coroutine_walk, GM_UNWIND_DEPTH_MAX);
    KEEP(&coroutine_walk);
}

static void lie_on_coroutine(void)
{
    lie_by_a_page(look_from_liar);
    assert_true(coroutine_walk.flags & (GM_WALK_CUT | GM_WALK_FALLBACK));
    lie_by_much(look_from_liar);
    assert_true(coroutine_walk.flags & (GM_WALK_CUT | GM_WALK_FALLBACK));
    lie_by_one(look_from_liar);
    assert_true(coroutine_walk.flags & (GM_WALK_CUT | GM_WALK_FALLBACK));
}

/* The page above the stack is not readable; all wrong sizes lead there or beyond. */
static void wrong_tables_do_not_make_a_walk_fault(void **unused)
{
    (void)unused;
    size_t size = 64 * 1024;
    char *memory = map(size + 4096);
    assert_int_equal(mprotect(memory + size, 4096, PROT_NONE), 0);
    forget();
    run_on(memory, size, lie_on_coroutine);
    munmap(memory, size + 4096);
}

#endif

int main(void)
{
#if GM_UNWIND_HAS_RULES
    /* Before anything is opened: there is no libunwind, and the unwinder finds images in
     * /proc/self/maps. */
    const struct CMUnitTest bare[] = {
        cmocka_unit_test(frames_are_those_of_backtrace),
        cmocka_unit_test(without_libunwind_a_stack_is_cut_at_a_signal_frame),
        cmocka_unit_test(other_code_in_the_place_of_a_closed_library_has_its_own_rules),
        cmocka_unit_test(wrong_tables_do_not_make_a_walk_fault),
    };
    int failed = cmocka_run_group_tests_name("unwind, nothing opened", bare, NULL, NULL);
#else
    int failed = 0;
#endif
    if (!gm_unwind_open_fallback()) {
        fprintf(stderr, "no libunwind.so.8\n");
        return 1;
    }
    const struct CMUnitTest opened[] = {
        cmocka_unit_test(frames_are_those_of_backtrace),
        cmocka_unit_test(errno_is_kept),
        cmocka_unit_test(a_deeper_stack_keeps_the_innermost_frames),
        cmocka_unit_test(truncation_does_not_depend_on_earlier_walks),
        cmocka_unit_test(other_code_in_the_place_of_a_closed_library_has_its_own_rules),
        cmocka_unit_test(a_thread_with_the_smallest_stack_is_walked),
        cmocka_unit_test(a_stack_that_was_left_is_not_read_again),
        cmocka_unit_test(a_stack_in_the_place_of_a_larger_one_is_walked_to_its_own_end),
        cmocka_unit_test(a_stack_with_a_signal_frame_is_walked_by_libunwind),
        cmocka_unit_test(a_walk_in_an_interrupted_walk_is_empty_and_harmless),
#if GM_UNWIND_HAS_RULES
        cmocka_unit_test(frames_are_kept_once_they_have_nodes),
        cmocka_unit_test(a_walk_left_by_longjmp_does_not_end_all_walks),
        cmocka_unit_test(wrong_tables_do_not_make_a_walk_fault),
#endif
    };
    return failed + cmocka_run_group_tests_name("unwind", opened, NULL, NULL);
}
