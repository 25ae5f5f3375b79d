/*
 * The order of the recorder's locks, which builds with GPUMEM_CHECK_LOCKS check: the tests of the
 * recorder and the debug build. A wrong order aborts the process, so a child tries each order.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h> /* needs the headers above */

#include "base/change.h"

static struct gm_lock modules = GM_LOCK(GM_RANK_MODULES), packer = GM_LOCK(GM_RANK_PACKER),
                      strings = GM_LOCK(GM_RANK_STRINGS), file = GM_LOCK(GM_RANK_FILE),
                      handles = GM_LOCK(GM_RANK_ALONE), no_rank;

/* Takes the locks in a child, one inside the other, up to a NULL. Returns the signal that ended the
 * child; 0: none. */
static int take_all(struct gm_lock *const locks[])
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) /* hide the expected message */
            _exit(1);
        unsigned count = 0;
        for (; locks[count]; count++)
            gm_lock_take(locks[count]);
        while (count)
            gm_lock_release(locks[--count]);
        gm_lock_take(locks[0]); /* the child holds none any more */
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

#define TAKE(...) take_all((struct gm_lock *const[]){__VA_ARGS__, NULL})

static void locks_of_higher_ranks_may_be_taken_inside(void **state)
{
    (void)state;
    assert_int_equal(TAKE(&modules, &strings, &file, &gm_seal_lock), 0);
    assert_int_equal(TAKE(&packer, &file), 0);
    assert_int_equal(TAKE(&handles, &gm_seal_lock), 0);
}

static void a_lock_of_a_lower_rank_aborts(void **state)
{
    (void)state;
    assert_int_equal(TAKE(&file, &strings), SIGABRT);
    assert_int_equal(TAKE(&strings, &file, &modules), SIGABRT);
    assert_int_equal(TAKE(&gm_seal_lock, &file), SIGABRT);
    assert_int_equal(TAKE(&handles, &file), SIGABRT);
}

static void a_second_lock_of_the_same_rank_aborts(void **state)
{
    (void)state;
    assert_int_equal(TAKE(&modules, &packer), SIGABRT);
}

static void a_lock_without_a_rank_aborts(void **state)
{
    (void)state;
    assert_int_equal(TAKE(&no_rank), SIGABRT);
}

static void a_lock_that_is_only_tried_counts_too(void **state)
{
    (void)state;
    assert_true(gm_lock_try(&packer));
    assert_int_equal(TAKE(&modules), SIGABRT);
    assert_int_equal(TAKE(&file), 0);
    gm_lock_release(&packer);
    assert_int_equal(TAKE(&modules), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locks_of_higher_ranks_may_be_taken_inside),
        cmocka_unit_test(a_lock_of_a_lower_rank_aborts),
        cmocka_unit_test(a_second_lock_of_the_same_rank_aborts),
        cmocka_unit_test(a_lock_without_a_rank_aborts),
        cmocka_unit_test(a_lock_that_is_only_tried_counts_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
