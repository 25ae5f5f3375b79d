/* The variables that a trace gets: those of the start, and what the program has made of them. */
#include "base/environment.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define PATTERN "traces/%q{COLOUR}.%r"
#define PAGE 4096

static bool is_refused;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
    long word[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        word[i] = va_arg(list, long);
    va_end(list);
    if (is_refused && number == SYS_process_vm_readv)
        return -1;
    return __real_syscall(number, word[0], word[1], word[2], word[3], word[4], word[5]);
}

/* What exec gave: strings one behind the other, and a list of them. */
static char area[256];
static char *list[16];
static char **host;

static void start_with(const char *const *variables)
{
    char *at = area;
    size_t count = 0;
    memset(area, 0, sizeof(area));
    for (; variables[count]; count++) {
        list[count] = strcpy(at, variables[count]);
        at += strlen(at) + 1;
    }
    list[count] = NULL;
    environ = list;
    gm_environment_note(environ, PATTERN);
}

static int begin(void **unused)
{
    static const char *const variables[] = {"HOME=/root", "RANK=3",  "PYTORCH_CUDA_ALLOC_CONF=a:1",
                                            "COLOUR=red", "RANKS=9", "GPUMEM_RING=1M",
                                            "RANK=4",     NULL};
    (void)unused;
    host = environ;
    start_with(variables);
    return 0;
}

static int end(void **unused)
{
    (void)unused;
    environ = host;
    is_refused = false;
    return 0;
}

static void expect(const char *name, const char *value)
{
    const char *found = gm_environment_value(name);
    if (value)
        assert_non_null(found);
    if (value)
        assert_string_equal(found, value);
    else
        assert_null(found);
}

/* As daemons do that take the memory of exec for their title. */
static void move_environment(void)
{
    static char *moved[16];
    for (size_t i = 0; list[i]; i++)
        moved[i] = strdup(list[i]);
    environ = moved;
}

static void write_title(void)
{
    memset(area, 0, sizeof(area));
    strcpy(area, "worker: RANK=8");
}

static void expect_those_of_the_start(void)
{
    expect("RANK", "3");
    expect("PYTORCH_CUDA_ALLOC_CONF", "a:1");
    expect("COLOUR", "red");
    expect("GPUMEM_RING", "1M");
    expect("HOME", NULL);
    expect("RANKS", NULL);
    assert_int_equal(gm_environment_left_out(), 0);
}

static void what_is_unchanged_is_that_of_the_start(void **unused)
{
    (void)unused;
    expect_those_of_the_start();
    gm_environment_look(PATTERN);
    expect_those_of_the_start();
}

static void a_title_destroys_nothing(void **unused)
{
    (void)unused;
    write_title();
    gm_environment_look(PATTERN);
    expect_those_of_the_start();
}

static void nor_does_one_behind_a_moved_environment(void **unused)
{
    (void)unused;
    move_environment();
    write_title();
    gm_environment_look(PATTERN);
    expect_those_of_the_start();
    setenv("RANK", "5", 1);
    gm_environment_look(PATTERN);
    expect("RANK", "5");
}

static void what_the_program_sets_counts(void **unused)
{
    (void)unused;
    setenv("RANK", "7", 1);
    setenv("XLA_FLAGS", "new", 1);
    setenv("COLOUR", "", 1);
    setenv("GPUMEM_RING", "2M", 1); /* too late for the recorder */
    setenv("GPUMEM_DEPTH", "5", 1);
    gm_environment_look(PATTERN);
    expect("RANK", "7");
    expect("XLA_FLAGS", "new");
    expect("COLOUR", "");
    expect("GPUMEM_RING", "1M");
    expect("GPUMEM_DEPTH", NULL);
    expect("PYTORCH_CUDA_ALLOC_CONF", "a:1");
}

static void what_the_program_takes_back_is_gone(void **unused)
{
    (void)unused;
    unsetenv("PYTORCH_CUDA_ALLOC_CONF");
    gm_environment_look(PATTERN);
    expect("PYTORCH_CUDA_ALLOC_CONF", NULL);
    expect("RANK", "3");
    clearenv();
    gm_environment_look(PATTERN);
    expect("RANK", NULL);
    expect("GPUMEM_RING", "1M");
}

static void memory_that_is_gone_is_left_out(void **unused)
{
    (void)unused;
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *changed[] = {"RANK=1", pages + PAGE, pages + PAGE - 8, (char *)8, "XLA_A=b", NULL};
    memcpy(pages + PAGE - 8, "XLA_C=de", 8); /* has no end before that of the page */
    munmap(pages + PAGE, PAGE);
    environ = changed;
    gm_environment_look(PATTERN);
    expect("RANK", "1");
    expect("XLA_A", "b");
    expect("XLA_C", "de");
    environ = (char **)(pages + PAGE);
    gm_environment_look(PATTERN);
    expect_those_of_the_start();
    munmap(pages, PAGE);
}

static void where_the_kernel_refuses_it_is_that_of_the_start(void **unused)
{
    (void)unused;
    is_refused = true;
    setenv("RANK", "7", 1);
    gm_environment_look(PATTERN);
    expect_those_of_the_start();
}

static void a_long_list_is_read_to_its_end(void **unused)
{
    static char *many[3000];
    (void)unused;
    for (size_t i = 0; i < 2999; i++)
        many[i] = "NOTHING=1";
    many[2998] = "RANK=6";
    environ = many;
    gm_environment_look(PATTERN);
    expect("RANK", "6");
}

/* Lists come and go under the look, as they do where another thread calls setenv. */
static _Atomic bool is_over;

static void *change_all_the_time(void *unused)
{
    char **last = NULL;
    while (!is_over) {
        char **next = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (size_t i = 0; i < 4; i++)
            next[i] = i == 2 ? "RANK=3" : "OTHER=1";
        __atomic_store_n(&environ, next, __ATOMIC_SEQ_CST);
        if (last)
            munmap(last, PAGE);
        last = next;
    }
    return unused;
}

static void changes_meanwhile_do_no_harm(void **unused)
{
    pthread_t thread;
    (void)unused;
    is_over = false;
    pthread_create(&thread, NULL, change_all_the_time, NULL);
    for (int i = 0; i < 20000; i++) {
        gm_environment_look(PATTERN);
        expect("RANK", "3");
    }
    is_over = true;
    pthread_join(thread, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(what_is_unchanged_is_that_of_the_start),
        TEST(a_title_destroys_nothing),
        TEST(nor_does_one_behind_a_moved_environment),
        TEST(what_the_program_sets_counts),
        TEST(what_the_program_takes_back_is_gone),
        TEST(memory_that_is_gone_is_left_out),
        TEST(where_the_kernel_refuses_it_is_that_of_the_start),
        TEST(a_long_list_is_read_to_its_end),
        TEST(changes_meanwhile_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
