/* The index of report/replay/ledger/index.h, held against the array that it is of. */
#include "replay/ledger/index.h"
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ADDRESSES 400000u /* among so many some 18 pairs have one hash: 400,000^2 / 2 / 2^32 */
#define TURNS 3000000u

struct element {
    uint64_t address;
    bool is_in;
};

static struct element *elements;
static const size_t stride = sizeof(struct element);

/* xorshift64, so that a failure can be repeated. */
static uint64_t draw(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static struct gm_indexed all(void)
{
    return (struct gm_indexed){elements, stride};
}

static void put(struct gm_index *index, uint32_t number)
{
    struct gm_index_slot *slot = gm_index_place(index, elements[number].address, all());
    assert_non_null(slot);
    assert_int_equal(slot->number, GM_NONE);
    gm_index_fill(index, slot, number);
    elements[number].is_in = true;
}

static void take(struct gm_index *index, uint32_t number)
{
    struct gm_index_slot *slot = gm_index_get(index, elements[number].address, all());
    assert_non_null(slot);
    assert_int_equal(slot->number, number);
    gm_index_empty(index, slot);
    elements[number].is_in = false;
}

static void check_all(const struct gm_index *index)
{
    for (uint32_t number = 0; number < ADDRESSES; number++) {
        const struct gm_index_slot *slot = gm_index_get(index, elements[number].address, all());
        assert_int_equal(slot ? slot->number : GM_NONE, elements[number].is_in ? number : GM_NONE);
    }
}

/* Addresses as a driver gives them: multiples of 512 from one start, each once, in any order. */
static void make_addresses(void)
{
    elements = calloc(ADDRESSES, stride);
    assert_non_null(elements);
    for (uint32_t i = 0; i < ADDRESSES; i++)
        elements[i].address = 0x7f0000000000u + 512u * (uint64_t)i;
    for (uint32_t i = ADDRESSES - 1; i > 0; i--) {
        uint32_t other = (uint32_t)(draw() % (i + 1));
        uint64_t address = elements[i].address;
        elements[i].address = elements[other].address;
        elements[other].address = address;
    }
}

static void an_element_is_found_while_it_is_in_and_only_then(void **state)
{
    struct gm_index index = {0};
    (void)state;
    make_addresses();
    assert_null(gm_index_get(&index, elements[0].address, all()));
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        uint32_t number = (uint32_t)(draw() % ADDRESSES);
        (elements[number].is_in ? take : put)(&index, number);
    }
    check_all(&index);
    for (uint32_t number = 0; number < ADDRESSES; number++)
        if (!elements[number].is_in)
            put(&index, number);
    check_all(&index);
    assert_int_equal(index.count, ADDRESSES);
    for (uint32_t number = 0; number < ADDRESSES; number++)
        take(&index, number);
    check_all(&index);
    assert_int_equal(index.count, 0);
    gm_index_free(&index);
    free(elements);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_element_is_found_while_it_is_in_and_only_then),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
