/* Phases: memory between marks and inside ranges. */
#include "judge/analysis/phases.h"
#include "trace_scene.h"

static bool is_named(const struct scene *scene, uint32_t reference, const char *name)
{
    struct gm_text text = gm_trace_string(scene->trace, reference);
    return text.size == strlen(name) && memcmp(text.bytes, name, text.size) == 0;
}

/* The phase with that name: a range's own name, or "from..to" for an interval. */
static const struct gm_phase *phase(const struct scene *scene, const char *name)
{
    const struct gm_phases *phases = &scene->analysis->phases;
    for (size_t i = 0; i < phases->count; i++) {
        const struct gm_phase *entry = &phases->entries[i];
        char text[256];
        struct gm_text from = gm_trace_string(scene->trace, entry->from);
        struct gm_text to = gm_trace_string(scene->trace, entry->name);
        snprintf(text, sizeof(text), "%.*s..%.*s", (int)from.size, from.bytes, (int)to.size,
                 to.bytes);
        if (entry->is_interval ? strcmp(text, name) == 0 : is_named(scene, entry->name, name))
            return entry;
    }
    fail_msg("no phase %s", name);
    return NULL;
}

#define PUSH(name, ...) EVENT(GM_EVENT_RANGE_PUSH, .aux = (name), __VA_ARGS__)
#define POP(...) EVENT(GM_EVENT_RANGE_POP, __VA_ARGS__)
#define MARK(name) EVENT(GM_EVENT_MARK, .aux = (name))
#define NAME(text) writer_string(&scene->writer, (text))

static void a_range_sees_its_peak_growth_and_calls(void **state)
{
    struct scene *scene = *state;
    uint32_t step = NAME("step");
    DEVICE_ALLOC(0x1000, 100);
    for (int i = 0; i < 3; i++) {
        PUSH(step);
        DEVICE_ALLOC(0x2000, 50);
        FREE(0x2000);
        DEVICE_ALLOC(0x10000 + (uint64_t)i, 10);
        POP();
        DEVICE_ALLOC(0x3000, 1000); /* outside: not of the range's peak */
        FREE(0x3000);
    }
    scene_analyse(scene);
    const struct gm_phase *found = phase(scene, "step");
    assert_int_equal(found->count, 3);
    assert_int_equal(found->unfinished, 0);
    assert_int_equal(found->ticks, 3 * 40);
    assert_int_equal(found->memory[0].peak, 100 + 20 + 50);
    assert_int_equal(found->memory[0].growth, 30);
    assert_int_equal(found->memory[0].largest_growth, 10);
    assert_int_equal(found->memory[0].first, 100);
    assert_int_equal(found->memory[0].last, 130);
    assert_int_equal(found->memory[0].allocs, 6);
    assert_int_equal(found->memory[0].frees, 3);
    assert_int_equal(found->memory[0].allocated, 180);
}

static void ranges_are_told_apart_by_what_is_around_them(void **state)
{
    struct scene *scene = *state;
    uint32_t outer = NAME("outer"), inner = NAME("inner");
    PUSH(outer);
    PUSH(inner);
    DEVICE_ALLOC(0x1000, 7);
    POP();
    POP();
    PUSH(inner);
    FREE(0x1000);
    POP();
    scene_analyse(scene);
    const struct gm_phases *phases = &scene->analysis->phases;
    assert_int_equal(phases->count, 3);
    assert_int_equal(phases->entries[0].memory[0].growth, 7);
    assert_int_equal(phases->entries[1].parent, 0);
    assert_int_equal(phases->entries[1].memory[0].growth, 7);
    assert_int_equal(phases->entries[2].parent, GM_NONE);
    assert_int_equal(phases->entries[2].memory[0].growth, -7);
    assert_int_equal(phases->entries[2].memory[0].peak, 7);
    assert_int_equal(phases->order[0],
                     0); /* the same peak: the one seen first, which is the outer one, comes
                          * first */
    assert_int_equal(phases->order[2], 2);
}

static void the_highest_peak_comes_first(void **state)
{
    struct scene *scene = *state;
    uint32_t low = NAME("low"), high = NAME("high");
    PUSH(low);
    DEVICE_ALLOC(0x1000, 7);
    POP();
    PUSH(high);
    DEVICE_ALLOC(0x2000, 7);
    POP();
    scene_analyse(scene);
    assert_int_equal(scene->analysis->phases.order[0], 1);
    assert_int_equal(scene->analysis->phases.order[1], 0);
}

static void threads_have_ranges_of_their_own(void **state)
{
    struct scene *scene = *state;
    uint32_t one = NAME("one"), two = NAME("two");
    ON_LANE(0, GM_EVENT_RANGE_PUSH, .aux = one);
    ON_LANE(1, GM_EVENT_RANGE_PUSH, .aux = two);
    DEVICE_ALLOC(0x1000, 5);
    ON_LANE(0, GM_EVENT_RANGE_POP);
    DEVICE_ALLOC(0x2000, 5);
    ON_LANE(1, GM_EVENT_RANGE_POP);
    scene_analyse(scene);
    assert_int_equal(phase(scene, "one")->memory[0].growth, 5);
    assert_int_equal(phase(scene, "two")->memory[0].growth, 10);
    assert_int_equal(phase(scene, "two")->parent, GM_NONE);
}

static void domains_nest_each_by_itself(void **state)
{
    struct scene *scene = *state;
    uint32_t ours = NAME("ours"), theirs = NAME("theirs"), domain = NAME("NCCL");
    PUSH(ours);
    PUSH(theirs, .address = 77, .extra = domain);
    DEVICE_ALLOC(0x1000, 5);
    POP(); /* of ours, although theirs is the innermost */
    DEVICE_ALLOC(0x2000, 5);
    POP(.address = 77);
    POP(.address = 77);
    scene_analyse(scene);
    assert_int_equal(phase(scene, "ours")->memory[0].growth, 5);
    assert_int_equal(phase(scene, "theirs")->memory[0].growth, 10);
    assert_int_equal(phase(scene, "theirs")->from, domain);
    assert_int_equal(scene->analysis->phases.unmatched, 1);
}

static void started_ranges_end_on_any_thread_in_any_order(void **state)
{
    struct scene *scene = *state;
    uint32_t load = NAME("load"), copy = NAME("copy");
    EVENT(GM_EVENT_RANGE_START, .address = 11, .aux = load);
    EVENT(GM_EVENT_RANGE_START, .address = 12, .aux = copy);
    EVENT(GM_EVENT_RANGE_START, .address = 13, .aux = copy);
    DEVICE_ALLOC(0x1000, 5);
    ON_LANE(1, GM_EVENT_RANGE_END, .address = 11);
    DEVICE_ALLOC(0x2000, 5);
    ON_LANE(1, GM_EVENT_RANGE_END, .address = 13);
    EVENT(GM_EVENT_RANGE_END, .address = 99);
    scene_analyse(scene);
    assert_int_equal(phase(scene, "load")->memory[0].growth, 5);
    assert_int_equal(phase(scene, "copy")->memory[0].growth, 20);
    assert_int_equal(phase(scene, "copy")->count, 2);
    assert_int_equal(phase(scene, "copy")->unfinished, 1);
    assert_int_equal(scene->analysis->phases.unmatched, 1);
}

static void ranges_end_with_their_thread_and_with_the_trace(void **state)
{
    struct scene *scene = *state;
    uint32_t lost = NAME("lost"), open = NAME("open");
    EVENT(GM_EVENT_THREAD, .address = 100);
    PUSH(lost);
    EVENT(GM_EVENT_THREAD, .address = 100); /* only its name is new */
    DEVICE_ALLOC(0x1000, 5);
    EVENT(GM_EVENT_THREAD, .address = 101);
    PUSH(open);
    DEVICE_ALLOC(0x2000, 6);
    scene_analyse(scene);
    assert_int_equal(phase(scene, "lost")->unfinished, 1);
    assert_int_equal(phase(scene, "lost")->memory[0].growth, 5);
    assert_int_equal(phase(scene, "open")->parent, GM_NONE);
    assert_int_equal(phase(scene, "open")->unfinished, 1);
    assert_int_equal(phase(scene, "open")->memory[0].growth, 6);
}

static void marks_divide_the_time_of_the_process(void **state)
{
    struct scene *scene = *state;
    uint32_t step = NAME("step"), library = NAME("NCCL");
    DEVICE_ALLOC(0x1000, 100);
    FREE(0x1000);
    MARK(step);
    DEVICE_ALLOC(0x2000, 10);
    ON_LANE(1, GM_EVENT_MARK, .aux = step);
    EVENT(GM_EVENT_MARK, .aux = step, .extra = library); /* a library's mark divides nothing */
    DEVICE_ALLOC(0x3000, 10);
    MARK(step);
    FREE(0x2000);
    scene_analyse(scene);
    assert_int_equal(phase(scene, "..step")->memory[0].peak, 100);
    assert_int_equal(phase(scene, "..step")->memory[0].growth, 0);
    assert_int_equal(phase(scene, "step..step")->count, 2);
    assert_int_equal(phase(scene, "step..step")->memory[0].growth, 20);
    assert_int_equal(phase(scene, "step..step")->memory[0].peak, 20);
    assert_int_equal(phase(scene, "step..")->memory[0].growth, -10);
    assert_int_equal(scene->analysis->phases.marks, 3);
}

static void pools_and_pinned_memory_are_told_apart(void **state)
{
    struct scene *scene = *state;
    uint32_t step = NAME("step");
    PUSH(step);
    DEVICE_ALLOC(0x100000, 2 * MIB, .device = 1);
    EVENT(GM_EVENT_BLOCK_ALLOC, .address = 0x100000, .size = 512, .device = 1);
    EVENT(GM_EVENT_BLOCK_ALLOC, .address = 0x100200, .size = 1024, .device = 1);
    EVENT(GM_EVENT_BLOCK_FREE, .address = 0x100200, .size = 1024, .device = 1);
    EVENT(GM_EVENT_ALLOC, .address = 0x7000, .size = 64, .kind = GM_KIND_PINNED);
    EVENT(GM_EVENT_ALLOC, .address = 0x8000, .size = 64, .kind = GM_KIND_EXTERNAL);
    POP();
    scene_analyse(scene);
    const struct gm_phases *phases = &scene->analysis->phases;
    const struct gm_phase *found = phase(scene, "step");
    assert_int_equal(phases->place_count, 3);
    assert_int_equal(phases->places[0].where, GM_PHASE_DEVICE);
    assert_int_equal(phases->places[0].device, 1);
    assert_int_equal(found->memory[0].growth, 2 * MIB);
    assert_int_equal(phases->places[1].where, GM_PHASE_POOL);
    assert_int_equal(found->memory[1].peak, 1536);
    assert_int_equal(found->memory[1].growth, 512);
    assert_int_equal(found->memory[1].allocated, 1536);
    assert_int_equal(phases->places[2].where, GM_PHASE_PINNED);
    assert_int_equal(found->memory[2].growth, 64);
}

static void a_free_that_failed_is_no_change(void **state)
{
    struct scene *scene = *state;
    uint32_t step = NAME("step");
    PUSH(step);
    DEVICE_ALLOC(0x1000, 5);
    FREE(0x1000);
    EVENT(GM_EVENT_UNDO, .address = 0x1000, .kind = GM_EVENT_FREE, .extra = 1);
    POP();
    scene_analyse(scene);
    assert_int_equal(phase(scene, "step")->memory[0].growth, 5);
    assert_int_equal(phase(scene, "step")->memory[0].frees, 0);
}

static void too_much_of_anything_is_bounded(void **state)
{
    struct scene *scene = *state;
    uint32_t deep = NAME("deep"), after = NAME("after");
    for (int i = 0; i < 1000; i++)
        PUSH(deep);
    for (int i = 0; i < 1000; i++)
        POP();
    for (uint64_t i = 0; i < 2 * GM_PHASES_OPEN_MAX; i++)
        EVENT(GM_EVENT_RANGE_START, .address = i + 1, .aux = deep);
    for (uint32_t i = 0; i < 2 * GM_PHASES_KEPT; i++)
        MARK(i << 1);
    for (uint64_t i = 0; i < 2 * GM_PHASES_OPEN_MAX; i++)
        EVENT(GM_EVENT_RANGE_END, .address = i + 1);
    PUSH(after);
    POP();
    scene_analyse(scene);
    const struct gm_phases *phases = &scene->analysis->phases;
    assert_int_equal(phases->count, GM_PHASES_KEPT - 1);
    assert_true(phases->not_kept > 0);
    assert_int_equal(phases->entries[0].count, 1 + GM_PHASES_OPEN_MAX - 1);
}

/* ---- against a model that looks at every moment ---------------------------------------------- */

#define RANDOM_LANES 3
#define RANDOM_EVENTS 20000
#define RANDOM_NAMES 500

struct open_range {
    uint32_t name;
    uint64_t peak, start;
};

struct model {
    uint64_t live, peak[RANDOM_NAMES], count[RANDOM_NAMES];
    int64_t growth[RANDOM_NAMES];
    struct open_range open[RANDOM_LANES][8];
    int depth[RANDOM_LANES];
};

static void note_peaks(struct model *model)
{
    for (int lane = 0; lane < RANDOM_LANES; lane++)
        for (int i = 0; i < model->depth[lane]; i++)
            if (model->live > model->open[lane][i].peak)
                model->open[lane][i].peak = model->live;
}

static void close_range(struct model *model, int lane)
{
    struct open_range *range = &model->open[lane][--model->depth[lane]];
    model->count[range->name]++;
    model->growth[range->name] += (int64_t)(model->live - range->start);
    if (range->peak > model->peak[range->name])
        model->peak[range->name] = range->peak;
}

static void random_ranges_equal_the_model(void **state)
{
    struct scene *scene = *state;
    struct model *model = calloc(1, sizeof(*model));
    uint32_t names[RANDOM_NAMES];
    uint64_t sizes[64] = {0};
    unsigned seed = 1;
    assert_non_null(model);
    for (int i = 0; i < RANDOM_NAMES; i++)
        names[i] = writer_text(&scene->writer, &i, sizeof(i));
    for (int n = 0; n < RANDOM_EVENTS; n++) {
        int lane = rand_r(&seed) % RANDOM_LANES, slot = rand_r(&seed) % 64;
        unsigned name = (unsigned)rand_r(&seed) % RANDOM_NAMES;
        switch (rand_r(&seed) % 4) {
        case 0:
            if (model->depth[lane] == 8)
                break;
            model->open[lane][model->depth[lane]++] =
                (struct open_range){name, model->live, model->live};
            ON_LANE((unsigned)lane, GM_EVENT_RANGE_PUSH, .aux = names[name]);
            break;
        case 1:
            if (model->depth[lane] == 0)
                break;
            close_range(model, lane);
            ON_LANE((unsigned)lane, GM_EVENT_RANGE_POP);
            break;
        default:
            if (sizes[slot]) {
                model->live -= sizes[slot];
                sizes[slot] = 0;
                FREE(0x1000u * (uint64_t)(slot + 1));
            } else {
                sizes[slot] = 1 + (uint64_t)rand_r(&seed) % 4000;
                model->live += sizes[slot];
                DEVICE_ALLOC(0x1000u * (uint64_t)(slot + 1), sizes[slot]);
            }
            note_peaks(model);
        }
    }
    for (int lane = 0; lane < RANDOM_LANES; lane++)
        while (model->depth[lane])
            close_range(model, lane);
    scene_analyse(scene);
    /* The model distinguishes names, but not their outer ranges. */
    for (int i = 0; i < RANDOM_NAMES; i++) {
        uint64_t count = 0, peak = 0;
        int64_t growth = 0;
        for (size_t n = 0; n < scene->analysis->phases.count; n++) {
            const struct gm_phase *entry = &scene->analysis->phases.entries[n];
            if (entry->name != names[i])
                continue;
            count += entry->count;
            growth += entry->memory[0].growth;
            peak = entry->memory[0].peak > peak ? entry->memory[0].peak : peak;
        }
        assert_int_equal(count, model->count[i]);
        assert_int_equal(growth, model->growth[i]);
        assert_int_equal(peak, model->peak[i]);
    }
    free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(a_range_sees_its_peak_growth_and_calls),
        SCENE_TEST(ranges_are_told_apart_by_what_is_around_them),
        SCENE_TEST(the_highest_peak_comes_first),
        SCENE_TEST(threads_have_ranges_of_their_own),
        SCENE_TEST(domains_nest_each_by_itself),
        SCENE_TEST(started_ranges_end_on_any_thread_in_any_order),
        SCENE_TEST(ranges_end_with_their_thread_and_with_the_trace),
        SCENE_TEST(marks_divide_the_time_of_the_process),
        SCENE_TEST(pools_and_pinned_memory_are_told_apart),
        SCENE_TEST(a_free_that_failed_is_no_change),
        SCENE_TEST(too_much_of_anything_is_bounded),
        SCENE_TEST(random_ranges_equal_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
