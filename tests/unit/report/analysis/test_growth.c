/* Places that grow from mark to mark, and places that only seem to. */
#include "judge/analysis/growing.h"
#include "judge/findings/rules.h"
#include "trace_scene.h"

#define MARK(name) EVENT(GM_EVENT_MARK, .aux = (name))
#define NAME(text) writer_string(&scene->writer, (text))
#define ENOUGH GM_GROWTH_MARKS

/* Two places in one program. */
struct places {
    uint32_t leaking, other;
};

static struct places places_of(struct scene *scene)
{
    uint16_t module = writer_module(&scene->writer, "/nowhere/program");
    uint32_t leaking = writer_node(&scene->writer, 0, module, 0x10, GM_NODE_NATIVE);
    return (struct places){leaking, writer_node(&scene->writer, 0, module, 0x20, GM_NODE_NATIVE)};
}

/* The n-th thing that is never freed. */
static void leak(struct scene *scene, const struct places *places, uint64_t n)
{
    DEVICE_ALLOC(0x100000 + n * 0x1000, 100, .stack = places->leaking);
}

static const struct gm_growing *only(struct scene *scene)
{
    const struct gm_analysis *analysis = scene_analyse(scene);
    assert_int_equal(analysis->activity.growth.found_count, 1);
    return &analysis->activity.growth.found[0];
}

static void assert_none(struct scene *scene)
{
    const struct gm_analysis *analysis = scene_analyse(scene);
    assert_int_equal(analysis->activity.growth.found_count, 0);
}

static void what_rises_at_each_mark_grows(void **state)
{
    struct scene *scene = *state;
    struct places places = places_of(scene);
    uint32_t step = NAME("step");
    DEVICE_ALLOC(0x1000, 5000, .stack = places.other);
    for (uint64_t i = 0; i < ENOUGH; i++) {
        leak(scene, &places, i);
        DEVICE_ALLOC(0x9000, 7 + i, .stack = places.other); /* more each time, but given back */
        FREE(0x9000);
        MARK(step);
    }
    const struct gm_growing *found = only(scene);
    assert_int_equal(scene->analysis->activity.sites[found->site].stack, places.leaking);
    assert_int_equal(found->series->kind, GM_MOMENT_MARK);
    assert_int_equal(found->series->marks, ENOUGH);
    for (size_t i = 0; i <= GM_GROWTH_PARTS; i++)
        assert_int_equal(found->bytes[i], 100 * (i + GM_GROWTH_WARM_UP));
    assert_int_equal(gm_growing_bytes(found), 400);
}

static void a_warm_up_is_no_growth(void **state)
{
    struct scene *scene = *state;
    struct places places = places_of(scene);
    uint32_t step = NAME("step");
    for (uint64_t i = 0; i < ENOUGH - 1; i++) {
        leak(scene, &places, i);
        MARK(step);
    }
    assert_none(scene);
}

/* Marks `count` steps of which each `every`-th leaks, until step `until`. */
static void leak_in_steps(struct scene *scene, uint64_t count, uint64_t every, uint64_t until)
{
    struct places places = places_of(scene);
    uint32_t step = NAME("step");
    for (uint64_t i = 0; i < count; i++) {
        if (i % every == 0 && i < until)
            leak(scene, &places, i);
        MARK(step);
    }
}

static void a_loss_now_and_then_grows(void **state)
{
    leak_in_steps(*state, 200, 7, 200);
    const struct gm_growing *found = only(*state);
    assert_true(found->over >= 80 && found->over <= 120);
}

static void one_part_without_growth_is_enough_to_clear_a_place(void **state)
{
    struct scene *scene = *state;
    struct places places = places_of(scene);
    uint32_t step = NAME("step");
    for (uint64_t i = 0; i < 80; i++) {
        if (i < 45 || i > 65)
            leak(scene, &places, i);
        MARK(step);
    }
    assert_none(scene);
}

static void what_has_stopped_growing_does_not_grow(void **state)
{
    leak_in_steps(*state, 80, 1, 65);
    assert_none(*state);
}

static void what_is_given_back_in_between_does_not_grow(void **state)
{
    struct scene *scene = *state;
    struct places places = places_of(scene);
    uint32_t token = NAME("token");
    for (uint64_t request = 0; request < 5; request++) {
        for (uint64_t i = 0; i < 20; i++) {
            leak(scene, &places, i);
            MARK(token);
        }
        for (uint64_t i = 0; i < 20 && request < 4; i++)
            FREE(0x100000 + i * 0x1000);
    }
    assert_none(scene);
}

/* One place makes 50 things, and for each of them another gives back `size` bytes. */
static void replace(struct scene *scene, uint64_t size)
{
    struct places places = places_of(scene);
    uint32_t step = NAME("step");
    for (uint64_t i = 0; i < 50; i++)
        DEVICE_ALLOC(0x800000 + i * 0x1000, size, .stack = places.other);
    for (uint64_t i = 0; i < 50; i++) {
        FREE(0x800000 + i * 0x1000);
        leak(scene, &places, i);
        MARK(step);
    }
}

static void what_is_replaced_does_not_grow(void **state)
{
    struct scene *scene = *state;
    replace(scene, 100);
    assert_none(scene);
}

/* The other place gives back much more: both are true. */
static void what_shrinks_beside_it_hides_no_growth(void **state)
{
    struct scene *scene = *state;
    replace(scene, 1000);
    only(scene);
}

static void what_is_cleaned_up_at_the_end_grew_all_the_same(void **state)
{
    struct scene *scene = *state;
    struct places places = places_of(scene);
    uint32_t step = NAME("step");
    for (uint64_t i = 0; i < ENOUGH; i++) {
        leak(scene, &places, i);
        MARK(step);
    }
    for (uint64_t i = 0; i < ENOUGH; i++)
        FREE(0x100000 + i * 0x1000);
    only(scene);
    assert_int_equal(scene->analysis->leaked[GM_LEAK], 0);
}

static void other_marks_in_between_do_not_matter(void **state)
{
    struct scene *scene = *state;
    struct places places = places_of(scene);
    uint32_t step = NAME("step"), forward = NAME("forward");
    for (uint64_t i = 0; i < ENOUGH; i++) {
        MARK(forward);
        leak(scene, &places, i);
        MARK(step);
    }
    const struct gm_growing *found = only(scene);
    assert_int_equal(found->series->kind, GM_MOMENT_MARK);
}

static void marks_with_a_name_each_are_one_series(void **state)
{
    struct scene *scene = *state;
    struct places places = places_of(scene);
    for (uint64_t i = 0; i < 40; i++) {
        char name[32];
        snprintf(name, sizeof(name), "step %d", (int)i);
        leak(scene, &places, i);
        uint32_t reference = NAME(name);
        MARK(reference);
    }
    const struct gm_growing *found = only(scene);
    assert_int_equal(found->series->kind, GM_MOMENT_NONE);
    assert_int_equal(found->series->marks, 40);
}

static void ends_of_outermost_ranges_are_marks(void **state)
{
    struct scene *scene = *state;
    struct places places = places_of(scene);
    uint32_t step = NAME("step"), inner = NAME("inner");
    for (uint64_t i = 0; i < ENOUGH; i++) {
        EVENT(GM_EVENT_RANGE_PUSH, .aux = step);
        for (int k = 0; k < 3; k++) {
            EVENT(GM_EVENT_RANGE_PUSH, .aux = inner);
            EVENT(GM_EVENT_RANGE_POP);
        }
        leak(scene, &places, i);
        EVENT(GM_EVENT_RANGE_POP);
    }
    const struct gm_growing *found = only(scene);
    assert_int_equal(found->series->kind, GM_MOMENT_RANGE);
    assert_int_equal(found->series->name, step);
    assert_int_equal(found->series->marks, ENOUGH);
}

static void blocks_of_a_pool_grow_and_its_segments_do_not_count(void **state)
{
    struct scene *scene = *state;
    uint32_t step = NAME("step");
    uint16_t cache = writer_module(&scene->writer, "/x/libc10_cuda.so");
    uint32_t stack = writer_node(&scene->writer, 0, cache, 0x10, GM_NODE_NATIVE);
    for (uint64_t i = 0; i < ENOUGH; i++) {
        DEVICE_ALLOC(0x1000000 + i * 0x200000, 2 * MIB, .stack = stack);
        EVENT(GM_EVENT_BLOCK_ALLOC, .address = 0x1000000 + i * 0x200000, .size = 512,
              .stack = stack);
        MARK(step);
    }
    const struct gm_analysis *analysis = scene_analyse(scene);
    const struct gm_growth *growth = &analysis->activity.growth;
    assert_int_equal(growth->found_count, 2);
    for (size_t i = 0; i < 2; i++) {
        bool is_block = analysis->activity.sites[growth->found[i].site].is_block;
        assert_int_equal(gm_growth_counts(analysis, &growth->found[i]), is_block);
    }
}

static void growth_is_a_finding(void **state)
{
    struct scene *scene = *state;
    struct places places = places_of(scene);
    struct gm_findings findings = {0};
    uint32_t step = NAME("step");
    for (uint64_t i = 0; i < ENOUGH; i++) {
        leak(scene, &places, i);
        MARK(step);
    }
    const struct gm_analysis *analysis = scene_analyse(scene);
    gm_find_growing(analysis, &findings);
    assert_int_equal(findings.count, 1);
    assert_int_equal(findings.entries[0].code, GM_FINDING_GROWING);
    assert_int_equal(findings.entries[0].bytes, 400);
    assert_int_equal(findings.entries[0].stack, places.leaking);
    assert_non_null(
        strstr(findings.entries[0].cause, "last 4 of 6 marks \"step\", from 200 B to 600 B"));
    assert_int_equal(gm_growth_bytes(analysis), 400);
    gm_findings_free(&findings);
}

/* ---- against a model that looks at every place at every mark --------------------------------- */

#define MODEL_PLACES 20
#define MODEL_MARKS 60

/* With 60 marks a bucket has four; 58 counted ones and the one before them make 15 buckets. The
 * second half begins with bucket 7, and each of its parts has two. */
static bool rises(uint64_t values[MODEL_MARKS][MODEL_PLACES], size_t place)
{
    enum { BUCKET = 4, HALF = 7 * BUCKET, PART = 2 * BUCKET };
    uint64_t before = 0;
    for (size_t n = HALF - BUCKET; n < HALF; n++)
        before = values[n + 1][place] > before ? values[n + 1][place] : before;
    for (size_t start = HALF; start < MODEL_MARKS - 1; start += PART) {
        uint64_t most = 0;
        for (size_t n = start; n < start + PART && n < MODEL_MARKS - 1; n++) {
            if (values[n + 1][place] < before)
                return false;
            most = values[n + 1][place] > most ? values[n + 1][place] : most;
        }
        if (most == before)
            return false;
        before = most;
    }
    return true;
}

static void random_places_equal_the_model(void **state)
{
    struct scene *scene = *state;
    uint16_t module = writer_module(&scene->writer, "/nowhere/program");
    uint32_t stacks[MODEL_PLACES], step = NAME("step");
    uint64_t live[MODEL_PLACES] = {0}, values[MODEL_MARKS][MODEL_PLACES], next = 0x1000,
             expected = 0;
    uint64_t held[MODEL_PLACES][4 * MODEL_MARKS];
    size_t held_count[MODEL_PLACES] = {0};
    unsigned seed = 7;
    for (size_t p = 0; p < MODEL_PLACES; p++)
        stacks[p] = writer_node(&scene->writer, 0, module, 0x10 * p, GM_NODE_NATIVE);
    for (size_t m = 0; m < MODEL_MARKS; m++) {
        for (size_t p = 0; p < MODEL_PLACES; p++) {
            /* Places with low numbers rise nearly always. */
            bool rises = (size_t)rand_r(&seed) % MODEL_PLACES >= p / 2;
            if (rises) {
                DEVICE_ALLOC(next, 16, .stack = stacks[p]);
                held[p][held_count[p]++] = next;
                live[p] += 16;
                next += 0x1000;
            } else if (held_count[p] && rand_r(&seed) % 2) {
                FREE(held[p][--held_count[p]]);
                live[p] -= 16;
            }
            values[m][p] = live[p];
        }
        MARK(step);
    }
    const struct gm_analysis *analysis = scene_analyse(scene);
    for (size_t p = 0; p < MODEL_PLACES; p++) {
        bool grows = rises(values, p), found = false;
        for (size_t i = 0; i < analysis->activity.growth.found_count; i++)
            found |= analysis->activity.sites[analysis->activity.growth.found[i].site].stack ==
                     stacks[p];
        assert_int_equal(found, grows);
        expected += grows;
    }
    assert_true(expected > 0 && expected < MODEL_PLACES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(what_rises_at_each_mark_grows),
        SCENE_TEST(a_warm_up_is_no_growth),
        SCENE_TEST(a_loss_now_and_then_grows),
        SCENE_TEST(one_part_without_growth_is_enough_to_clear_a_place),
        SCENE_TEST(what_has_stopped_growing_does_not_grow),
        SCENE_TEST(what_is_given_back_in_between_does_not_grow),
        SCENE_TEST(what_is_replaced_does_not_grow),
        SCENE_TEST(what_shrinks_beside_it_hides_no_growth),
        SCENE_TEST(what_is_cleaned_up_at_the_end_grew_all_the_same),
        SCENE_TEST(other_marks_in_between_do_not_matter),
        SCENE_TEST(marks_with_a_name_each_are_one_series),
        SCENE_TEST(ends_of_outermost_ranges_are_marks),
        SCENE_TEST(blocks_of_a_pool_grow_and_its_segments_do_not_count),
        SCENE_TEST(growth_is_a_finding),
        SCENE_TEST(random_places_equal_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
