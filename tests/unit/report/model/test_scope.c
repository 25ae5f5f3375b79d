/* Who held memory of one thread's, or of a phase's: scope.h, history.h. */
#include "trace_scene.h"

#include "model/history.h"
#include "model/scope.h"
#include "names/stacks/stacks.h"

/* ---- what is asked ---------------------------------------------------------------------------- */

/* Bytes on devices that were held in a scope. */
static int64_t held(struct scene *scene, const struct gm_when *when, const char *thread,
                    const char *phase)
{
    struct gm_stacks *stacks = gm_stacks_new(scene->trace, &(struct gm_stacks_options){0});
    struct gm_model *model = gm_model_of(scene->analysis, stacks, GM_NEEDS_ALL);
    struct gm_scope_request request = {thread, phase};
    struct gm_model_held all;
    int64_t bytes = 0;
    assert_true(gm_model_held_in_scope(model, when, &request, &all));
    for (size_t i = 0; i < all.count; i++)
        bytes += all.samples[i].bytes;
    gm_model_held_free(&all);
    gm_model_free(model);
    gm_stacks_free(stacks);
    return bytes;
}

static const struct gm_when at_peak = {GM_WHEN_DEFAULT, 0};
static const struct gm_when at_end = {GM_WHEN_END, 0};

/* ---- scenes ----------------------------------------------------------------------------------- */

static void a_thread_is_its_lane_or_what_the_trace_says(void **state)
{
    struct scene *scene = *state;
    uint32_t name = writer_string(&scene->writer, "loader");
    DEVICE_ALLOC(0x1000, 3);
    ON_LANE(1, GM_EVENT_THREAD, .address = 4242, .aux = name);
    ON_LANE(1, GM_EVENT_ALLOC, .address = 0x2000, .size = 40, .kind = GM_KIND_DEVICE);
    ON_LANE(2, GM_EVENT_ALLOC, .address = 0x3000, .size = 500, .kind = GM_KIND_DEVICE);
    ON_LANE(2, GM_EVENT_FREE, .address = 0x2000); /* another thread frees it */
    ON_LANE(1, GM_EVENT_ALLOC, .address = 0x4000, .size = 30, .kind = GM_KIND_DEVICE);
    scene_analyse(scene);
    assert_int_equal(held(scene, &at_peak, "0", NULL), 3);
    assert_int_equal(held(scene, &at_peak, "4242", NULL), 40);
    assert_int_equal(held(scene, &at_peak, "loader", NULL), 40);
    assert_int_equal(held(scene, &at_end, "loader", NULL), 30);
    assert_int_equal(held(scene, &at_end, "2", NULL), 500);
    assert_int_equal(held(scene, &at_end, "1", NULL), 0); /* its thread has a number of its own */
    assert_int_equal(held(scene, &at_end, "load", NULL), 0);
    size_t count;
    struct gm_scope_thread *threads = gm_scope_threads(scene->trace, &count);
    assert_int_equal(count, 3);
    assert_int_equal(threads[1].number, 4242);
    assert_int_equal(threads[2].number, 2);
    free(threads);
}

static void a_phase_is_open_for_all_threads(void **state)
{
    struct scene *scene = *state;
    uint32_t step = writer_string(&scene->writer, "step");
    uint32_t inner = writer_string(&scene->writer, "inner");
    uint32_t load = writer_string(&scene->writer, "load");
    DEVICE_ALLOC(0x1000, 1);
    EVENT(GM_EVENT_RANGE_PUSH, .aux = step);
    DEVICE_ALLOC(0x2000, 20);
    EVENT(GM_EVENT_RANGE_PUSH, .aux = inner);
    ON_LANE(1, GM_EVENT_ALLOC, .address = 0x3000, .size = 300, .kind = GM_KIND_DEVICE);
    EVENT(GM_EVENT_RANGE_POP, .address = 7); /* of an owner that has none open */
    EVENT(GM_EVENT_RANGE_POP);
    DEVICE_ALLOC(0x4000, 4000);
    FREE(0x2000);
    EVENT(GM_EVENT_RANGE_POP);
    DEVICE_ALLOC(0x5000, 50000);
    EVENT(GM_EVENT_RANGE_START, .address = 9, .aux = load);
    DEVICE_ALLOC(0x6000, 600000);
    EVENT(GM_EVENT_RANGE_END, .address = 9);
    EVENT(GM_EVENT_MARK, .aux = load);
    DEVICE_ALLOC(0x7000, 7000000);
    EVENT(GM_EVENT_MARK, .aux = step);
    DEVICE_ALLOC(0x8000, 80000000);
    scene_analyse(scene);
    assert_int_equal(held(scene, &at_end, NULL, "step"), 80000000 + 4000 + 300);
    assert_int_equal(held(scene, &at_peak, NULL, "inner"), 300);
    assert_int_equal(held(scene, &at_peak, "0", "inner"), 0);
    assert_int_equal(held(scene, &at_end, NULL, "load"), 7600000);
    assert_int_equal(held(scene, &at_end, "1", "step"), 300);
    assert_int_equal(held(scene, &at_end, NULL, "ste"), 0);
}

/* A lane's next thread does not inherit the ranges of the one before. */
static void a_range_ends_with_its_thread(void **state)
{
    struct scene *scene = *state;
    uint32_t step = writer_string(&scene->writer, "step");
    EVENT(GM_EVENT_THREAD, .address = 5);
    for (unsigned i = 0; i < 70; i++) /* more than are looked at */
        EVENT(GM_EVENT_RANGE_PUSH, .aux = step);
    DEVICE_ALLOC(0x1000, 1);
    EVENT(GM_EVENT_THREAD, .address = 5); /* only its name is new */
    DEVICE_ALLOC(0x2000, 20);
    EVENT(GM_EVENT_THREAD, .address = 6);
    DEVICE_ALLOC(0x3000, 300);
    scene_analyse(scene);
    assert_int_equal(held(scene, &at_end, NULL, "step"), 21);
    assert_int_equal(held(scene, &at_end, "6", NULL), 300);
}

/* Of each group its own peak, and what the scope holds in all adds up to what everybody holds. */
static void a_peak_is_that_of_what_is_asked_for(void **state)
{
    struct scene *scene = *state;
    uint32_t step = writer_string(&scene->writer, "step");
    DEVICE_ALLOC(0x1000, 1000);
    FREE(0x1000);
    EVENT(GM_EVENT_RANGE_PUSH, .aux = step);
    DEVICE_ALLOC(0x2000, 10);
    DEVICE_ALLOC(0x3000, 20);
    EVENT(GM_EVENT_ALLOC, .address = 0x9000, .size = 5, .kind = GM_KIND_PINNED, .device = -1);
    FREE(0x3000);
    EVENT(GM_EVENT_ALLOC, .address = 0xa000, .size = 6, .kind = GM_KIND_DEVICE, .device = 1);
    scene_analyse(scene);
    assert_int_equal(held(scene, &at_peak, NULL, "step"), 30 + 5 + 6);
    assert_int_equal(held(scene, &at_end, NULL, "step"), 10 + 5 + 6);
    assert_int_equal(held(scene, &at_peak, "0", NULL), 1000 + 5 + 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(a_thread_is_its_lane_or_what_the_trace_says),
        SCENE_TEST(a_phase_is_open_for_all_threads),
        SCENE_TEST(a_range_ends_with_its_thread),
        SCENE_TEST(a_peak_is_that_of_what_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
