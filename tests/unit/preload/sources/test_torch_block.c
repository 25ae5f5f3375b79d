/*
 * What the recorder reads of PyTorch's structure of a block: it is found in a register or in the
 * caller's frame, nothing is believed that contradicts the report, and nothing is read that is not there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h> /* needs the headers above */

#include "sources/torch_block.h"

#define MIB ((uint64_t)1 << 20)
#define FRAME 33u /* words of a caller's frame: more than are looked at */

/* As in PyTorch, with `size` in word 6 or 7. */
struct fake {
    uint64_t words[24];
};

static struct fake fake_block(unsigned size_word, const struct gm_torch_report *report,
                              uint64_t requested)
{
    struct fake fake = {0};
    fake.words[0] = (uint64_t)0xabcdef00u | (uint8_t)report->device;
    fake.words[1] = 0x1234; /* stream */
    fake.words[size_word] = report->size;
    fake.words[size_word + 1] = requested;
    fake.words[size_word + 2] = 0x7000; /* pool */
    fake.words[size_word + 3] = report->address;
    fake.words[size_word + 4] = 0x0101; /* in use, mapped */
    return fake;
}

/* Each test has call instructions of its own. */
static uint64_t new_code(void)
{
    static uint64_t last = 0x400000;
    return last += 16;
}

static bool give(uint64_t code, const struct fake *held, const uint64_t *frame,
                 const struct gm_torch_report *report, struct gm_torch_told *told)
{
    struct gm_torch_caller caller = {code, (uintptr_t)held, 0x7000 - 1024, frame};
    memset(told, 0, sizeof(*told));
    return gm_torch_block_given(&caller, report, told);
}

static void check_told(const struct gm_torch_told *told, uint64_t requested)
{
    assert_int_equal(told->requested, requested);
    assert_int_equal(told->stream, 0x1234);
    assert_int_equal(told->pool, 0x7000 / 8);
    assert_true(told->is_common);
}

/* Test order: the first sites are used up by the tests that need one. */
static void test_nothing_there(void **state)
{
    (void)state;
    static const uint64_t frame[FRAME];
    struct gm_torch_report report = {2 * MIB, 512, 0};
    struct gm_torch_told told;
    uint64_t code = new_code();
    void *closed = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(closed, MAP_FAILED);
    for (unsigned i = 0; i < 400; i++)
        assert_false(give(code, i % 2 ? closed : NULL, frame, &report, &told));
    /* It was tried often enough. */
    struct fake fake = fake_block(6, &report, 500);
    assert_false(give(code, &fake, frame, &report, &told));
    munmap(closed, 4096);
}

static void test_register_and_contradiction(void **state)
{
    (void)state;
    static const uint64_t frame[FRAME];
    struct gm_torch_told told;
    uint64_t code = new_code();
    for (unsigned i = 0; i < 100; i++) {
        struct gm_torch_report report = {2 * MIB + i * 512, 1024 * (i + 1), 3};
        struct fake fake = fake_block(6, &report, 1000 + i);
        assert_true(give(code, &fake, frame, &report, &told));
        check_told(&told, 1000 + i);
    }
    struct gm_torch_report report = {4 * MIB, 1024, 3}, other = {4 * MIB, 512, 3};
    struct fake fake = fake_block(6, &other, 500);
    assert_false(give(code, &fake, frame, &report, &told));
    struct fake right = fake_block(6, &report, 1000);
    assert_false(give(code, &right, frame, &report, &told)); /* nothing more is believed */
}

static void test_frame_and_ends(void **state)
{
    (void)state;
    uint64_t frame[FRAME] = {1, 0x7000000000, UINT64_MAX};
    struct gm_torch_told told;
    uint64_t given = new_code(), returned = new_code();
    for (unsigned i = 0; i < 50; i++) {
        struct gm_torch_report report = {2 * MIB + i * 512, 2 * MIB, 0};
        struct fake fake = fake_block(7, &report, MIB + i);
        struct fake wrong = fake_block(7, &report, 3 * MIB); /* more asked for than given */
        frame[5] = (uintptr_t)&wrong;
        frame[9] = (uintptr_t)&fake;
        assert_true(give(given, NULL, frame, &report, &told));
        check_told(&told, MIB + i);

        struct gm_torch_caller caller = {returned, 0, 0, frame};
        fake.words[11] = 0x0100; /* no longer in use */
        bool waits = i % 3 == 0;
        fake.words[14] = waits ? 2 : 0;
        if (!waits) { /* joined with both neighbours */
            fake.words[10] -= 512;
            fake.words[7] += 1024;
        }
        assert_int_equal(gm_torch_block_returned(&caller, &report),
                         waits ? GM_BLOCK_END_WAITS : GM_BLOCK_END_AT_ONCE);
    }
    struct gm_torch_report report = {64 * MIB, 512, 0};
    struct gm_torch_caller caller = {returned, 0, 0, frame};
    struct fake elsewhere = fake_block(7, &(struct gm_torch_report){2 * MIB, 512, 0}, 1);
    frame[9] = (uintptr_t)&elsewhere;
    assert_int_equal(gm_torch_block_returned(&caller, &report), GM_BLOCK_END_UNTOLD);

    /* A place that held the structure so far, and now the address of something that cannot be read. */
    void *closed = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(closed, MAP_FAILED);
    frame[9] = (uintptr_t)closed;
    assert_false(give(given, NULL, frame, &report, &told));
    munmap(closed, 4096);
}

static void test_other_devices(void **state)
{
    (void)state;
    static const uint64_t frame[FRAME];
    struct gm_torch_report report = {2 * MIB, 512, 1}, other = {2 * MIB, 512, 0};
    struct gm_torch_told told;
    struct fake fake = fake_block(6, &other, 500);
    assert_false(give(new_code(), &fake, frame, &report, &told));
    assert_false(
        give(new_code(), &fake, frame, &report, &told)); /* more sites than there is room for */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_there),
        cmocka_unit_test(test_register_and_contradiction),
        cmocka_unit_test(test_frame_and_ends),
        cmocka_unit_test(test_other_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
