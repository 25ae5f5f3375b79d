/* The tables of handles: they grow as needed, and are correct while other threads change them. */
#include "base/handles.h"
#include "fake.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* needs the headers above */

#include "assert_between.h"

GM_HANDLES(table, 256);

static int empty(void **unused)
{
    (void)unused;
    gm_handles_clear(&table);
    return 0;
}

static void a_handle_has_the_value_it_was_given_last(void **unused)
{
    (void)unused;
    assert_int_equal(gm_handles_get(&table, 0x1000), 0);
    assert_true(gm_handles_set(&table, 0x1000, 5));
    assert_true(gm_handles_set(&table, 0x1000, 6));
    assert_int_equal(gm_handles_get(&table, 0x1000), 6);
    assert_int_equal(gm_handles_add(&table, 0x1000, 7), 6);
    assert_int_equal(gm_handles_add(&table, 0x2000, 7), 7);
    assert_int_equal(gm_handles_take(&table, 0x1000), 6);
    assert_int_equal(gm_handles_take(&table, 0x1000), 0);
    assert_int_equal(gm_handles_get(&table, 0x1000), 0);
    assert_int_equal(gm_handles_get(&table, 0x2000), 7);
    gm_handles_take_if(&table, 0x2000, 6);
    assert_int_equal(gm_handles_get(&table, 0x2000), 7);
    gm_handles_take_if(&table, 0x2000, 7);
    assert_int_equal(gm_handles_get(&table, 0x2000), 0);
}

static void null_is_no_handle(void **unused)
{
    (void)unused;
    assert_false(gm_handles_set(&table, 0, 5));
    assert_int_equal(gm_handles_get(&table, 0), 0);
    assert_int_equal(gm_handles_take(&table, 0), 0);
}

static void a_table_grows_with_what_is_in_it(void **unused)
{
    (void)unused;
    for (uint64_t key = 2; key < 200000; key++)
        assert_true(gm_handles_set(&table, key * 4096, key));
    for (uint64_t key = 2; key < 200000; key++)
        assert_int_equal(gm_handles_get(&table, key * 4096), key);
    for (uint64_t key = 2; key < 200000; key++)
        assert_int_equal(gm_handles_take(&table, key * 4096), key);
    assert_int_equal(gm_handles_get(&table, 2 * 4096), 0);
}

static void a_full_table_refuses_and_keeps_what_it_has(void **unused)
{
    enum { SIZE = GM_HANDLES_MAX / 8 }; /* the next part would be too large */
    static struct gm_handle slots[SIZE];
    static _Atomic(const struct gm_handles *) more;
    const struct gm_handles full = {slots, SIZE, &more};
    uint64_t kept = 0, last = 4 * SIZE;
    (void)unused;
    for (uint64_t key = 2; key < last; key++)
        kept += gm_handles_set(&full, key * 4096, key);
    assert_between(kept, SIZE / 2, SIZE);
    assert_int_equal(counted(GM_COUNT_HANDLE_LIMIT), last - 2 - kept);
    for (uint64_t key = 2; key < last; key++) {
        const uint64_t value = gm_handles_get(&full, key * 4096);
        assert_true(value == 0 || value == key);
        kept -= value != 0;
    }
    assert_int_equal(kept, 0);
}

static void room_is_used_again_for_ever(void **unused)
{
    (void)unused;
    for (uint64_t key = 2; key < 100000; key++) {
        assert_true(gm_handles_set(&table, key * 4096, key));
        if (key > 100)
            assert_int_equal(gm_handles_take(&table, (key - 99) * 4096), key - 99);
    }
}

static void all_handles_of_a_value_are_dropped(void **unused)
{
    (void)unused;
    for (uint64_t key = 2; key < 50; key++)
        gm_handles_set(&table, key * 4096, 1 + key % 2);
    gm_handles_drop(&table, 1);
    for (uint64_t key = 2; key < 50; key++)
        assert_int_equal(gm_handles_get(&table, key * 4096), key % 2 ? 2 : 0);
}

/* ---- threads: a value is that of its key, whatever other threads do -------------------------- */

enum { THREADS = 4, ROUNDS = 2000000, KEYS = 16 };

GM_HANDLES(crowded, 4); /* the keys take each other's slots all the time */
static _Atomic uint32_t wrong;

static void *change_and_look(void *seed)
{
    uint64_t random = (uintptr_t)seed * 0x9e3779b97f4a7c15u;
    for (int round = 0; round < ROUNDS; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint64_t key = (2 + (random >> 33) % KEYS) * 4096;
        const uint64_t value = gm_handles_get(&crowded, key);
        if (value != 0 && value != key + 1)
            atomic_fetch_add(&wrong, 1);
        if (random >> 63)
            gm_handles_set(&crowded, key, key + 1);
        else
            gm_handles_take(&crowded, key);
    }
    return NULL;
}

static void a_value_is_never_that_of_another_handle(void **unused)
{
    pthread_t threads[THREADS];
    (void)unused;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, change_and_look, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
}

/* The same without a lock: each thread has keys of its own, as those who make and end an object. */

enum { OWN = 12 };

GM_HANDLES(own_table, 32); /* too small for all: it grows */
static _Atomic uint32_t lost;

static void *begin_and_end(void *number)
{
    uint64_t random = ((uintptr_t)number + 1) * 0x9e3779b97f4a7c15u, values[OWN] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const unsigned which = (unsigned)(random >> 33) % OWN;
        const uint64_t key = ((uintptr_t)number * OWN + which + 2) * 4096;
        const uint64_t others = ((random >> 40) % (THREADS * OWN) + 2) * 4096;
        const uint64_t seen = gm_handles_get(&own_table, others);
        if (seen != 0 && seen >> 32 != others)
            atomic_fetch_add(&wrong, 1);
        if (gm_handles_get(&own_table, key) != values[which])
            atomic_fetch_add(&lost, 1);
        if (random >> 63) {
            values[which] = key << 32 | (uint64_t)(round + 1);
            if (!gm_handles_begin(&own_table, key, values[which]))
                atomic_fetch_add(&lost, 1);
        } else {
            if (gm_handles_end(&own_table, key) != values[which])
                atomic_fetch_add(&lost, 1);
            values[which] = 0;
        }
    }
    return NULL;
}

static void who_makes_and_ends_needs_no_lock(void **unused)
{
    pthread_t threads[THREADS];
    (void)unused;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, begin_and_end, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
    assert_int_equal(lost, 0);
    assert_false(gm_handles_begin(&own_table, 0, 5));
    assert_int_equal(gm_handles_end(&own_table, 0), 0);
}

/* One key that several threads end: each value that was begun is got once. */
#define SHARED 0x7f0000001000u

static _Atomic uint64_t got;

static void *end_at_once(void *unused)
{
    for (int round = 0; round < ROUNDS; round++)
        atomic_fetch_add(&got, gm_handles_end(&own_table, SHARED));
    return unused;
}

static void what_is_ended_twice_is_got_once(void **unused)
{
    pthread_t threads[2];
    uint64_t begun = 0;
    (void)unused;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, end_at_once, NULL), 0);
    for (int round = 0; round < ROUNDS; round++)
        if (gm_handles_get(&own_table, SHARED) == 0)
            begun += gm_handles_begin(&own_table, SHARED, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(got + gm_handles_end(&own_table, SHARED), begun);
    assert_true(begun > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_handle_has_the_value_it_was_given_last, empty),
        cmocka_unit_test_setup(null_is_no_handle, empty),
        cmocka_unit_test_setup(a_table_grows_with_what_is_in_it, empty),
        cmocka_unit_test_setup(a_full_table_refuses_and_keeps_what_it_has, start_over),
        cmocka_unit_test_setup(room_is_used_again_for_ever, empty),
        cmocka_unit_test_setup(all_handles_of_a_value_are_dropped, empty),
        cmocka_unit_test_setup(a_value_is_never_that_of_another_handle, empty),
        cmocka_unit_test_setup(who_makes_and_ends_needs_no_lock, empty),
        cmocka_unit_test_setup(what_is_ended_twice_is_got_once, empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
