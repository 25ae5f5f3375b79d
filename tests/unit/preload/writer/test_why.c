/* The ring of reasons of the debug build, with memory in the place of a trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* needs what stands above */

#include "base/process_state.h"
#include "writer/trace_file.h"
#include "writer/why.h"

static struct gm_trace_header header;
static struct {
    struct gm_extent extent;
    struct gm_why_ring ring;
} trace;
struct gm_trace_file gm_file = {.lock = GM_LOCK(GM_RANK_FILE)};
static bool is_full;

struct gm_extent *gm_trace_map_extents(enum gm_extent_type type, uint32_t index, uint64_t length,
                                       uint32_t count)
{
    assert_int_equal(type, GM_EXTENT_WHY);
    assert_int_equal(index, 0);
    assert_int_equal(count, 1);
    assert_true(length >= sizeof(trace) && length % GM_TRACE_PAGE == 0);
    memset(&trace, 0, sizeof(trace));
    return is_full ? NULL : &trace.extent;
}

void gm_trace_publish_extents(struct gm_extent *first, uint32_t count, uint32_t used)
{
    assert_ptr_equal(first, &trace.extent);
    assert_int_equal(count, 1);
    assert_int_equal(used, 0); /* it goes on changing */
}

static void assert_entry(uint32_t n, enum gm_why reason, uint64_t address, const char *name,
                         uint32_t count)
{
    const struct gm_why_entry *entry = &trace.ring.entry[n];
    assert_int_equal(entry->reason, reason);
    assert_int_equal(entry->address, address);
    assert_string_equal(entry->name, name);
    assert_int_equal(entry->count, count);
}

/* One process from its first reason on: the order of the tests counts. */
static void reasons_of_before_the_trace_are_in_it(void **state)
{
    (void)state;
    gm_why_note(GM_WHY_ROAD_ABSENT, 0, "cudaMalloc");
    gm_why_note(GM_WHY_ROAD_ABSENT, 0, "cudaMalloc");
    is_full = true;
    gm_why_begin(); /* no trace can be told */
    is_full = false;
    gm_process_page->header = &header;
    gm_why_begin();
    assert_int_equal(trace.ring.begun, 1);
    assert_entry(0, GM_WHY_ROAD_ABSENT, 0, "cudaMalloc", 2);
}

static void the_same_reason_for_the_same_thing_is_one_entry(void **state)
{
    (void)state;
    gm_why_note(GM_WHY_ROAD_ABSENT, 0, "cudaFree");
    gm_why_note(GM_WHY_STEP_NO_RULE, 4096, NULL);
    gm_why_note(GM_WHY_STEP_NO_RULE, 8192, NULL);
    gm_why_note(GM_WHY_STEP_NO_RULE, 4096, NULL);
    assert_int_equal(trace.ring.begun, 4);
    assert_entry(1, GM_WHY_ROAD_ABSENT, 0, "cudaFree", 1);
    assert_entry(2, GM_WHY_STEP_NO_RULE, 4096, "", 2);
    assert_entry(3, GM_WHY_STEP_NO_RULE, 8192, "", 1);
}

static void a_long_name_is_cut_and_still_one_entry(void **state)
{
    char name[200], cut[48];
    (void)state;
    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = 0;
    snprintf(cut, sizeof(cut), "%.47s", name);
    gm_why_note(GM_WHY_PYTHON_OFF, 0, name);
    gm_why_note(GM_WHY_PYTHON_OFF, 0, name);
    assert_int_equal(trace.ring.begun, 5);
    assert_entry(4, GM_WHY_PYTHON_OFF, 0, cut, 2);
}

static void a_child_does_not_touch_its_parents_trace(void **state)
{
    (void)state;
    gm_process_page->header = NULL; /* as the kernel wipes it */
    gm_why_note(GM_WHY_CALL_FORKED, 1, NULL);
    assert_int_equal(trace.ring.begun, 5);
    gm_why_forget();
    gm_process_page->header = &header;
    gm_why_note(GM_WHY_CALL_FORKED, 1, NULL);
    assert_int_equal(trace.ring.begun, 5);
    gm_why_begin(); /* its own trace: with what its parent knew */
    assert_entry(0, GM_WHY_ROAD_ABSENT, 0, "cudaMalloc", 2);
    assert_entry(5, GM_WHY_CALL_FORKED, 1, "", 2);
}

static void the_oldest_makes_room(void **state)
{
    (void)state;
    for (uint64_t n = 6; n < GM_WHY_ENTRIES + 2; n++)
        gm_why_note(GM_WHY_STEP_DECLINED, n, NULL);
    assert_int_equal(trace.ring.begun, GM_WHY_ENTRIES + 2);
    assert_entry(0, GM_WHY_STEP_DECLINED, GM_WHY_ENTRIES, "", 1);
    assert_entry(1, GM_WHY_STEP_DECLINED, GM_WHY_ENTRIES + 1, "", 1);
    assert_entry(2, GM_WHY_STEP_NO_RULE, 4096, "", 2);
    assert_entry(GM_WHY_ENTRIES - 1, GM_WHY_STEP_DECLINED, GM_WHY_ENTRIES - 1, "", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasons_of_before_the_trace_are_in_it),
        cmocka_unit_test(the_same_reason_for_the_same_thing_is_one_entry),
        cmocka_unit_test(a_long_name_is_cut_and_still_one_entry),
        cmocka_unit_test(a_child_does_not_touch_its_parents_trace),
        cmocka_unit_test(the_oldest_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
