/* The lifetimes of allocations, by the place that makes them. */
#include "judge/analysis/lifetimes.h"
#include "names/stacks/stacks.h"
#include "output/text/sections.h"
#include "trace_scene.h"

#define MILLISECOND 1000000u

static const struct gm_active_site *site(const struct scene *scene, size_t number)
{
    assert_true(number < scene->analysis->activity.count);
    return &scene->analysis->activity.sites[number];
}

/* An allocation of 100 bytes at a place, freed after so many ns. */
static void live_for(struct scene *scene, uint32_t stack, uint64_t nanoseconds)
{
    DEVICE_ALLOC(0x1000, 100, .stack = stack);
    scene->writer.clock += nanoseconds - 10;
    FREE(0x1000);
}

static void lives_are_short_below_a_millisecond(void **state)
{
    struct scene *scene = *state;
    uint32_t one = writer_node(&scene->writer, 0, 0, 1, GM_NODE_NATIVE);
    live_for(scene, one, 10);
    live_for(scene, one, MILLISECOND - 1);
    live_for(scene, one, MILLISECOND);
    live_for(scene, one, 5 * MILLISECOND);
    DEVICE_ALLOC(0x2000, 7, .stack = one);
    scene_analyse(scene);
    assert_int_equal(site(scene, 0)->allocs, 5);
    assert_int_equal(site(scene, 0)->allocated, 407);
    assert_int_equal(site(scene, 0)->short_lived, 2);
    assert_int_equal(site(scene, 0)->short_bytes, 200);
    assert_int_equal(site(scene, 0)->live_count, 1);
    assert_int_equal(site(scene, 0)->live, 7);
    assert_int_equal(site(scene, 0)->peak, 100);
}

static void ticks_are_not_taken_for_nanoseconds(void **state)
{
    struct scene *scene = *state;
    struct gm_trace_header *header = &scene->writer.header;
    header->clock = GM_CLOCK_TICKS;
    header->clock_start = (struct gm_clock_pair){.ticks = 1000, .monotonic_ns = 1000};
    header->clock_latest[0] =
        (struct gm_clock_pair){.ticks = 1000 + 3 * 1000, .monotonic_ns = 1000 + 1000};
    live_for(scene, 0, 3 * MILLISECOND - 1); /* ticks, three to a nanosecond */
    live_for(scene, 0, 3 * MILLISECOND);
    scene_analyse(scene);
    assert_int_equal(site(scene, 0)->short_lived, 1);
}

static void a_free_that_failed_was_no_end(void **state)
{
    struct scene *scene = *state;
    live_for(scene, 0, 10);
    DEVICE_ALLOC(0x3000, 50);
    FREE(0x3000);
    EVENT(GM_EVENT_UNDO, .address = 0x3000, .kind = GM_EVENT_FREE, .extra = 1);
    scene_analyse(scene);
    assert_int_equal(site(scene, 0)->short_lived, 1);
    assert_int_equal(site(scene, 0)->short_bytes, 100);
    assert_int_equal(site(scene, 0)->live, 50);
    assert_int_equal(site(scene, 0)->allocs, 2);
}

/* The section as text, "" if there is none. */
static void text_of(const struct scene *scene, size_t top, char text[4096])
{
    struct gm_stacks_options options = {.names = false};
    struct gm_stacks *stacks = gm_stacks_new(scene->trace, &options);
    FILE *out = fmemopen(text, 4096, "w");
    assert_non_null(out);
    struct gm_page page = {.out = out};
    struct gm_model *model = gm_model_of(scene->analysis, stacks, GM_NEEDS_HISTORY);
    gm_lifetimes_text(
        &(struct gm_view){.page = &page, .model = model, .run = &model->runs[0], .top = top});
    fclose(out);
    gm_model_free(model);
    gm_stacks_free(stacks);
}

static void places_with_many_temporaries_are_told_and_pools_are_not(void **state)
{
    struct scene *scene = *state;
    char text[4096] = "";
    uint16_t api = writer_api(&scene->writer, "cudaMalloc");
    uint16_t pooled = writer_api(&scene->writer, "cudaMallocAsync");
    uint32_t places[4];
    for (uint64_t i = 0; i < 4; i++)
        places[i] = writer_node(&scene->writer, 0, 0, 0x10 * (i + 1), GM_NODE_NATIVE);
    for (unsigned i = 0; i < 2 * GM_TEMPORARIES_TOLD; i++) {
        for (unsigned place = 0; place < 2; place++)
            if (place == 0 || i < GM_TEMPORARIES_TOLD - 1) { /* the second: one too few */
                DEVICE_ALLOC(0x1000, MIB, .stack = places[place], .api = api);
                FREE(0x1000);
            }
        DEVICE_ALLOC(0x2000, MIB, .stack = places[3], .api = pooled);
        FREE(0x2000);
        EVENT(GM_EVENT_BLOCK_ALLOC, .address = 0x9000, .size = 512, .stack = places[2]);
        EVENT(GM_EVENT_BLOCK_FREE, .address = 0x9000, .size = 512);
    }
    scene_analyse(scene);
    text_of(scene, 5, text);
    assert_non_null(strstr(text, "Temporaries"));
    assert_non_null(strstr(text, "128 of 128 x cudaMalloc"));
    assert_non_null(strstr(text, "128 MiB in all, at most 1.00 MiB at a time"));
    assert_null(strstr(text, "63 of"));
    assert_null(strstr(text, "0x30"));
    assert_null(strstr(text, "Async"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(lives_are_short_below_a_millisecond),
        SCENE_TEST(ticks_are_not_taken_for_nanoseconds),
        SCENE_TEST(a_free_that_failed_was_no_end),
        SCENE_TEST(places_with_many_temporaries_are_told_and_pools_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
