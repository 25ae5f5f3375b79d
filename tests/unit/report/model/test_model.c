/* Models of random runs and of the corpus: merged in any order and grouping they are the same, a
 * model minus itself is nothing, and events add up to what the model says. */
#include "trace_scene.h"

#include "model/merge.h"
#include "model/tables.h"
#include "names/stacks/stacks.h"
#include "output/json/report_json.h"
#include "output/text/report_text.h"
#include "replay/ledger/counters.h"
#include "tools/diff/subtract.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 60u

static const char *corpus; /* the folder */

/* ---- what a model says ----------------------------------------------------------------------- */

static char *print(const struct gm_model *model, const struct gm_output *output)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    output->write(out, model, &(struct gm_output_options){.verbose = true});
    fclose(out);
    return text;
}

static void assert_same(const struct gm_model *one, const struct gm_model *other)
{
    const struct gm_output *const outputs[] = {&gm_output_json, &gm_output_text};
    for (size_t i = 0; i < 2; i++) {
        char *a = print(one, outputs[i]), *b = print(other, outputs[i]);
        assert_string_equal(a, b);
        free(a);
        free(b);
    }
    assert_int_equal(one->place_count, other->place_count);
    for (size_t i = 0; i < one->place_count; i++) {
        const struct gm_model_place *a = &one->places[i], *b = &other->places[i];
        assert_int_equal(a->stack, b->stack);
        assert_int_equal(a->kind, b->kind);
        assert_int_equal(a->device, b->device);
        assert_string_equal(a->api, b->api);
    }
}

static void assert_nothing(const struct gm_model *model)
{
    for (size_t i = 0; i < model->run_count; i++) {
        const struct gm_model_run *run = &model->runs[i];
        for (size_t at = 0; at < run->moment_count; at++) {
            assert_int_equal(run->moments[at].sample_count, 0);
            assert_int_equal(run->moments[at].bytes, 0);
        }
        for (size_t at = 0; at < run->device_count; at++) {
            assert_int_equal(run->devices[at].all.live, 0);
            assert_int_equal(run->devices[at].all.peak, 0);
            for (unsigned kind = 0; kind <= GM_KIND_EXTERNAL; kind++)
                assert_int_equal(run->devices[at].kinds[kind].allocs, 0);
        }
        assert_int_equal(run->lifetime_count, 0);
        assert_int_equal(run->transfer_count, 0);
        assert_int_equal(run->direction_count, 0);
        assert_int_equal(run->leaked[GM_LEAK], 0);
        assert_int_equal(run->failed, 0);
    }
}

/* ---- random models --------------------------------------------------------------------------- */

static uint64_t state_of_random;

static unsigned random_below(unsigned end)
{
    state_of_random = state_of_random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(state_of_random >> 33) % end;
}

/* Few names, so that stacks of different models are often the same, or the same but for a line. */
static uint32_t random_stack(struct gm_model *model, unsigned shift)
{
    static const char *const functions[] = {"load", "step", "forward", "backward"};
    static const char *const files[] = {"train.py", "model.py", NULL};
    struct gm_frame frames[4];
    struct gm_stack stack = {frames, 1 + random_below(4), random_below(8) == 0};
    for (size_t i = 0; i < stack.count; i++)
        frames[i] = (struct gm_frame){.function = functions[random_below(4)],
                                      .file = files[random_below(3)],
                                      .line = 1 + random_below(3) + shift,
                                      .module = random_below(2) ? "libmodel.so" : NULL,
                                      .script = random_below(2)};
    return gm_model_add_stack(model, &stack);
}

static uint32_t random_place(struct gm_model *model, unsigned shift, unsigned leak_class)
{
    static const char *const apis[] = {"cudaMalloc", "cuMemAlloc_v2"};
    static const char *const libraries[] = {"application", "PyTorch", "NCCL"};
    static const uint8_t kinds[] = {GM_KIND_DEVICE, GM_KIND_MANAGED, GM_KIND_PINNED};
    struct gm_model_place place = {.stack = random_stack(model, shift),
                                   .api = apis[random_below(2)],
                                   .library = libraries[random_below(3)],
                                   .pool = random_below(4) ? NULL : "PyTorch",
                                   .kind = kinds[random_below(3)],
                                   .leak_class = (uint8_t)leak_class};
    place.device = gm_kind_is_host(place.kind) ? -1 : (int8_t)random_below(2);
    return gm_model_add_place(model, &place);
}

static int64_t random_bytes(void)
{
    return (int64_t)random_below(1u << 20) << random_below(16);
}

static int most_bytes_first(const void *a, const void *b)
{
    int64_t one = ((const struct gm_model_sample *)a)->bytes;
    int64_t other = ((const struct gm_model_sample *)b)->bytes;
    return (one < other) - (one > other);
}

/* A moment with samples, each place once. */
static uint32_t random_moment(struct gm_model *model, struct gm_model_run *run, unsigned shift,
                              enum gm_model_moment_kind kind, int device)
{
    struct gm_model_moment *moment = &run->moments[run->moment_count];
    *moment = (struct gm_model_moment){.kind = kind, .device = device, .time_ns = random_below(99)};
    moment->samples = GM_MODEL_ARRAY(model, struct gm_model_sample, 8);
    for (unsigned i = random_below(9); i-- > 0;) {
        unsigned leak_class = kind == GM_MODEL_END ? 1 + random_below(GM_LEAK_CLASSES - 1) : 0;
        uint32_t place = random_place(model, shift, leak_class);
        size_t at = 0;
        while (at < moment->sample_count && moment->samples[at].place != place)
            at++;
        if (at < moment->sample_count)
            continue;
        moment->samples[moment->sample_count++] =
            (struct gm_model_sample){place, 1 + random_bytes(), 1 + random_below(9)};
        moment->bytes += moment->samples[at].bytes;
    }
    qsort(moment->samples, moment->sample_count, sizeof(*moment->samples), most_bytes_first);
    return (uint32_t)run->moment_count++;
}

static void random_device(struct gm_model *model, struct gm_model_run *run, unsigned shift, int id)
{
    struct gm_model_device *device = &run->devices[run->device_count++];
    *device = (struct gm_model_device){.id = id, .is_listed = true, .seen = true, .name = {"", 0}};
    device->all = (struct gm_model_tally){.live = random_bytes(), .peak = random_bytes()};
    device->kinds[GM_KIND_DEVICE].allocs = random_below(99);
    device->peak = random_moment(model, run, shift, GM_MODEL_PEAK, id);
}

static void random_history(struct gm_model *model, struct gm_model_run *run, unsigned shift)
{
    run->lifetimes = GM_MODEL_ARRAY(model, struct gm_model_lifetime, 4);
    for (run->lifetime_count = 0; run->lifetime_count < random_below(5); run->lifetime_count++)
        run->lifetimes[run->lifetime_count] =
            (struct gm_model_lifetime){.place = random_place(model, shift, 0),
                                       .allocs = 1 + random_below(99),
                                       .allocated = 1 + random_bytes()};
    run->transfers = GM_MODEL_ARRAY(model, struct gm_model_transfer, 4);
    for (run->transfer_count = 0; run->transfer_count < random_below(5); run->transfer_count++)
        run->transfers[run->transfer_count] =
            (struct gm_model_transfer){.stack = random_stack(model, shift),
                                       .api = "cudaMemcpy",
                                       .direction = random_below(GM_DIRECTIONS),
                                       .bytes = 1 + random_bytes(),
                                       .count = 1 + random_below(9)};
    run->findings = GM_MODEL_ARRAY(model, struct gm_model_finding, 1);
    run->finding_count = random_below(2);
    if (run->finding_count)
        run->findings[0] = (struct gm_model_finding){.code = GM_FINDING_RETAINED,
                                                     .severity = GM_SEVERITY_NOTE,
                                                     .device = -1,
                                                     .stack = random_stack(model, shift),
                                                     .api = "cudaMalloc",
                                                     .cause = "It stays."};
}

static void random_run(struct gm_model *model, unsigned shift)
{
    struct gm_model_run run = *gm_model_add_run(model);
    char host[] = {(char)('a' + random_below(3)), 0};
    struct gm_text none = {"", 0};
    run.path = gm_arena_string(&model->tables->arena, host);
    run.host_name = gm_arena_text(&model->tables->arena, (struct gm_text){host, 1});
    run.run_id = run.executable = run.tool_version = run.python = run.command_line = none;
    run.pid = 1 + random_below(1000000);
    run.rank = (struct gm_model_rank){(int64_t)random_below(4) - 1, -1, -1};
    run.complete = run.is_recorded = true;
    run.verdict.state = GM_VERDICT_LEAKS;
    run.moments = GM_MODEL_ARRAY(model, struct gm_model_moment, 8);
    run.devices = GM_MODEL_ARRAY(model, struct gm_model_device, 2);
    for (int id = 0; id < 2; id++)
        random_device(model, &run, shift, id);
    run.end = random_moment(model, &run, shift, GM_MODEL_END, -1);
    if (random_below(2))
        run.pinned_peak = random_moment(model, &run, shift, GM_MODEL_PINNED_PEAK, -1);
    run.leaked[GM_LEAK] = random_bytes();
    run.failed = random_below(9);
    random_history(model, &run, shift);
    model->runs[model->run_count - 1] = run;
}

/* The same seed gives the same model, but for `shift` added to all lines. */
static struct gm_model *random_model(uint64_t seed, unsigned runs, unsigned shift)
{
    struct gm_model *model = gm_model_new();
    state_of_random = seed * 77 + 1;
    for (unsigned i = 0; i < runs; i++)
        random_run(model, shift);
    return model;
}

/* ---- merging --------------------------------------------------------------------------------- */

static struct gm_model *merge_two(const struct gm_model *one, const struct gm_model *other)
{
    const struct gm_model *const models[] = {one, other};
    return gm_model_merge(models, 2);
}

static void no_order_and_no_grouping_changes_what_is_merged(void **state)
{
    static const unsigned orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                         {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct gm_model *models[3];
        for (unsigned i = 0; i < 3; i++)
            models[i] = random_model(3 * round + i, 1 + round % 3, 0);
        struct gm_model *all = gm_model_merge((const struct gm_model *const *)models, 3);
        for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
            const unsigned *order = orders[i];
            struct gm_model *two = merge_two(models[order[0]], models[order[1]]);
            struct gm_model *left = merge_two(two, models[order[2]]);
            struct gm_model *right = merge_two(models[order[2]], two);
            assert_same(all, left);
            assert_same(all, right);
            gm_model_free(two);
            gm_model_free(left);
            gm_model_free(right);
        }
        gm_model_free(all);
        for (unsigned i = 0; i < 3; i++)
            gm_model_free(models[i]);
    }
}

static void samples_of(const struct gm_model *model, uint64_t *count, int64_t *bytes)
{
    for (size_t i = 0; i < model->run_count; i++)
        for (size_t at = 0; at < model->runs[i].moment_count; at++) {
            const struct gm_model_moment *moment = &model->runs[i].moments[at];
            for (size_t s = 0; s < moment->sample_count; s++) {
                assert_in_range(moment->samples[s].place, 0, model->place_count - 1);
                (*count)++;
                *bytes += moment->samples[s].bytes;
            }
        }
}

static void a_merged_model_has_each_sample_of_each_run_and_each_stack_once(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct gm_model *one = random_model(round, 2, 0), *other = random_model(round + 1, 1, 0);
        struct gm_model *merged = merge_two(one, other);
        uint64_t count[2] = {0}, stacks = merged->tables->stack_count;
        int64_t bytes[2] = {0};
        samples_of(one, &count[0], &bytes[0]);
        samples_of(other, &count[0], &bytes[0]);
        samples_of(merged, &count[1], &bytes[1]);
        assert_int_equal(merged->run_count, 3);
        assert_int_equal(count[0], count[1]);
        assert_int_equal(bytes[0], bytes[1]);
        for (uint32_t i = 0; i < stacks; i++)
            assert_int_equal(gm_model_same_stack(merged, i), i);
        gm_model_free(one);
        gm_model_free(other);
        gm_model_free(merged);
    }
}

/* ---- differences ----------------------------------------------------------------------------- */

static void a_model_minus_itself_is_nothing_and_lines_do_not_matter(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct gm_model *model = random_model(round, 1 + round % 3, 0);
        struct gm_model *edited = random_model(round, 1 + round % 3, 5);
        struct gm_model *same = gm_model_subtract(model, model, GM_MATCH_EXACTLY);
        struct gm_model *moved = gm_model_subtract(edited, model, GM_MATCH_EXACTLY);
        assert_int_equal(same->run_count, model->run_count);
        assert_int_equal(moved->run_count, model->run_count);
        assert_nothing(same);
        assert_nothing(moved);
        free(print(moved, &gm_output_text));
        gm_model_free(model);
        gm_model_free(edited);
        gm_model_free(same);
        gm_model_free(moved);
    }
}

/* Bytes of a moment by what is matched, as one number. */
static int64_t weigh(const struct gm_model *model, const struct gm_model_moment *moment)
{
    int64_t sum = 0;
    for (size_t i = 0; i < moment->sample_count; i++) {
        const struct gm_model_place *place = &model->places[moment->samples[i].place];
        const struct gm_stack *stack = gm_model_stack(model, place->stack);
        int64_t weight = place->kind * 7 + place->device * 31 + place->leak_class * 131;
        for (size_t at = 0; at < stack->count; at++)
            weight = weight * 3 + stack->frames[at].function[0] +
                     (stack->frames[at].file ? stack->frames[at].file[0] : 1);
        sum += weight % 1009 * moment->samples[i].bytes;
    }
    return sum;
}

static void a_difference_is_what_was_added_place_by_place(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct gm_model *newer = random_model(round, 1, 0), *older = random_model(round + 7, 1, 2);
        struct gm_model *difference = gm_model_subtract(newer, older, GM_MATCH_EXACTLY);
        struct gm_model *back = gm_model_subtract(older, newer, GM_MATCH_EXACTLY);
        const struct gm_model_run *runs[] = {&newer->runs[0], &older->runs[0], &difference->runs[0],
                                             &back->runs[0]};
        assert_int_equal(difference->run_count, 1);
        const struct gm_model_moment *ends[4];
        for (size_t i = 0; i < 4; i++)
            ends[i] = gm_model_moment(runs[i], runs[i]->end);
        int64_t changed = weigh(newer, ends[0]) - weigh(older, ends[1]);
        assert_int_equal(weigh(difference, ends[2]), changed);
        assert_int_equal(weigh(back, ends[3]), -changed);
        assert_int_equal(ends[2]->bytes, ends[0]->bytes - ends[1]->bytes);
        assert_int_equal(runs[2]->devices[1].all.peak,
                         runs[0]->devices[1].all.peak - runs[1]->devices[1].all.peak);
        assert_int_equal(runs[2]->leaked[GM_LEAK], -runs[3]->leaked[GM_LEAK]);
        free(print(difference, &gm_output_text));
        free(print(difference, &gm_output_json));
        gm_model_free(newer);
        gm_model_free(older);
        gm_model_free(difference);
        gm_model_free(back);
    }
}

/* ---- the corpus ------------------------------------------------------------------------------ */

struct read {
    struct gm_trace *trace;
    struct gm_analysis *analysis;
    struct gm_stacks *stacks;
    struct gm_model *model;
};

static bool read_trace(struct read *read, const char *name)
{
    char path[4096], error[256];
    struct gm_stacks_options options = {.names = false};
    snprintf(path, sizeof(path), "%s/%s", corpus, name);
    *read = (struct read){.trace = gm_trace_open(path, error, sizeof(error))};
    if (!read->trace)
        return false;
    read->analysis = gm_analyse(read->trace);
    read->stacks = gm_stacks_new(read->trace, &options);
    read->model = gm_model_of(read->analysis, read->stacks, GM_NEEDS_ALL);
    return true;
}

static void close_trace(struct read *read)
{
    gm_model_free(read->model);
    gm_stacks_free(read->stacks);
    gm_analysis_free(read->analysis);
    gm_trace_close(read->trace);
}

/* Calls `visit` with each trace of the corpus that can be read. */
static void each_trace(void (*visit)(struct read *read))
{
    DIR *folder = opendir(corpus);
    unsigned count = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct read read;
        const char *end = strrchr(entry->d_name, '.');
        if (!end || strcmp(end, ".trace") != 0 || !read_trace(&read, entry->d_name))
            continue;
        visit(&read);
        close_trace(&read);
        count++;
    }
    closedir(folder);
    assert_in_range(count, 10, 1000);
}

static void merge_and_subtract(struct read *read)
{
    struct read other;
    assert_true(read_trace(&other, "leak.trace"));
    struct gm_model *one = merge_two(read->model, other.model);
    struct gm_model *two = merge_two(other.model, read->model);
    struct gm_model *alone = merge_two(read->model, read->model);
    struct gm_model *nothing = gm_model_subtract(read->model, read->model, GM_MATCH_EXACTLY);
    struct gm_model *difference = gm_model_subtract(read->model, other.model, GM_MATCH_EXACTLY);
    close_trace(&other); /* nothing of what was made depends on it */
    assert_same(one, two);
    assert_nothing(nothing);
    assert_int_equal(alone->run_count, 2);
    assert_int_equal(difference->run_count, 1);
    const struct gm_output *const outputs[] = {&gm_output_json, &gm_output_text};
    for (size_t i = 0; i < 2; i++) {
        free(print(one, outputs[i]));
        free(print(difference, outputs[i]));
    }
    struct gm_model *const models[] = {one, two, alone, nothing, difference};
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
        gm_model_free(models[i]);
}

static void models_of_traces_merge_and_subtract(void **state)
{
    (void)state;
    each_trace(merge_and_subtract);
}

struct sums {
    int64_t *live; /* [place] */
    int64_t *allocs;
    size_t capacity;
};

static void add_event(void *argument, const struct gm_model_event *event)
{
    struct sums *sums = argument;
    assert_in_range(event->place, 0, sums->capacity - 1);
    int64_t size = (int64_t)event->size;
    sums->live[event->place] += event->what == GM_MODEL_ENDS ? -size : size;
    sums->allocs[event->place] += event->what == GM_MODEL_BEGINS;
}

static void add_up(struct read *read)
{
    const struct gm_model_run *run = &read->model->runs[0];
    struct sums sums = {.capacity = read->model->place_count + 1000};
    sums.live = calloc(sums.capacity, sizeof(*sums.live));
    sums.allocs = calloc(sums.capacity, sizeof(*sums.allocs));
    assert_true(gm_model_events(read->model, NULL, add_event, &sums));
    for (size_t i = 0; i < run->lifetime_count; i++) {
        const struct gm_model_lifetime *lifetime = &run->lifetimes[i];
        assert_int_equal(sums.live[lifetime->place], lifetime->live);
        assert_int_equal(sums.allocs[lifetime->place], lifetime->allocs);
    }
    for (size_t i = 0; i < run->pool_count; i++) {
        int64_t live = 0, allocs = 0;
        for (size_t place = 0; place < read->model->place_count; place++)
            if (read->model->places[place].is_block &&
                read->model->places[place].device == run->pools[i].device) {
                live += sums.live[place];
                allocs += sums.allocs[place];
            }
        assert_int_equal(live, run->pools[i].live);
        assert_int_equal(allocs, run->pools[i].allocs);
    }
    free(sums.live);
    free(sums.allocs);
}

static void events_add_up_to_what_the_model_says(void **state)
{
    (void)state;
    each_trace(add_up);
    struct gm_model *made = random_model(1, 1, 0);
    assert_false(gm_model_events(made, NULL, add_event, NULL));
    gm_model_free(made);
}

/* ---- use over time --------------------------------------------------------------------------- */

struct curves {
    const struct gm_model *model;
    struct gm_curve devices[GM_DEVICES]; /* [device + 1] */
    uint64_t live[GM_DEVICES];
    uint64_t changes;
};

static void draw_event(void *argument, const struct gm_model_event *event)
{
    struct curves *curves = argument;
    if (event->what == GM_MODEL_MARK || event->what == GM_MODEL_CLOSES)
        return;
    const struct gm_model_place *place = &curves->model->places[event->place];
    if (place->is_block || gm_kind_is_host(place->kind) || place->kind == GM_KIND_EXTERNAL)
        return;
    uint64_t *live = &curves->live[place->device + 1];
    *live += event->what == GM_MODEL_ENDS ? 0 - event->size : event->size;
    bool is_simulated = curves->model->runs[0].simulated;
    gm_curve_set(&curves->devices[place->device + 1],
                 is_simulated ? curves->changes : event->time_ns, *live, 0);
    curves->changes++;
}

static void draw(struct read *read)
{
    const struct gm_model_run *run = &read->model->runs[0];
    struct curves *curves = calloc(1, sizeof(*curves));
    assert_non_null(curves);
    curves->model = read->model;
    assert_true(gm_model_events(read->model, NULL, draw_event, curves));
    assert_int_equal(run->device_changes, curves->changes);
    for (size_t i = 0; i < run->device_count; i++) {
        const struct gm_curve *drawn = run->devices[i].curve;
        struct gm_curve *expected = &curves->devices[run->devices[i].id + 1];
        gm_curve_finish(expected, run->simulated ? run->device_changes : run->duration_ns);
        assert_int_equal(drawn ? drawn->count : 0, expected->count);
        for (unsigned column = 0; drawn && column < GM_CURVE_BUCKETS; column++)
            assert_int_equal(gm_curve_most(drawn, 0, column, column + 1, GM_CURVE_BUCKETS),
                             gm_curve_most(expected, 0, column, column + 1, GM_CURVE_BUCKETS));
    }
    free(curves);
}

static void the_curve_of_a_device_is_that_of_the_events(void **state)
{
    struct scene *scene = *state;
    struct gm_trace_header *header = &scene->writer.header;
    each_trace(draw);
    header->clock = GM_CLOCK_TICKS; /* of which no whole number makes a nanosecond */
    header->clock_start.ticks = 1000;
    header->clock_latest[header->clock_latest_index & 1] = (struct gm_clock_pair){
        .ticks = 1000 + 7000000, .monotonic_ns = header->clock_start.monotonic_ns + 3000000};
    for (uint64_t i = 0; i < 3000; i++) {
        /* One to three ticks later, as the writer adds ten; now and then much later. */
        scene->writer.clock += random_below(500) ? 0 - (7 + (uint64_t)random_below(3)) : 300;
        if (random_below(3))
            DEVICE_ALLOC(0x1000 + i * 0x1000, random_below(1000));
        else
            FREE(0x1000 + random_below((unsigned)i + 1) * UINT64_C(0x1000));
        if (random_below(50) == 0)
            EVENT(GM_EVENT_UNDO, .address = 0x1000, .kind = GM_EVENT_FREE, .extra = 1);
    }
    header->flags &= ~(uint32_t)GM_HEADER_SIMULATED; /* by time */
    scene_analyse(scene);
    struct gm_stacks_options options = {.names = false};
    struct read read = {.trace = scene->trace,
                        .analysis = scene->analysis,
                        .stacks = gm_stacks_new(scene->trace, &options)};
    read.model = gm_model_of(read.analysis, read.stacks, GM_NEEDS_ALL);
    draw(&read);
    gm_model_free(read.model);
    gm_stacks_free(read.stacks);
}

static void an_event_tells_that_a_free_failed(void **state)
{
    struct scene *scene = *state;
    DEVICE_ALLOC(0x1000, 100);
    FREE(0x1000);
    EVENT(GM_EVENT_UNDO, .address = 0x1000, .kind = GM_EVENT_FREE, .extra = 1);
    scene_analyse(scene);
    struct gm_stacks_options options = {.names = false};
    struct read read = {.trace = scene->trace,
                        .analysis = scene->analysis,
                        .stacks = gm_stacks_new(scene->trace, &options)};
    read.model = gm_model_of(read.analysis, read.stacks, GM_NEEDS_ALL);
    assert_int_equal(read.model->runs[0].lifetimes[0].live, 100);
    add_up(&read);
    gm_model_free(read.model);
    gm_stacks_free(read.stacks);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_order_and_no_grouping_changes_what_is_merged),
        cmocka_unit_test(a_merged_model_has_each_sample_of_each_run_and_each_stack_once),
        cmocka_unit_test(a_model_minus_itself_is_nothing_and_lines_do_not_matter),
        cmocka_unit_test(a_difference_is_what_was_added_place_by_place),
        cmocka_unit_test(models_of_traces_merge_and_subtract),
        cmocka_unit_test(events_add_up_to_what_the_model_says),
        SCENE_TEST(the_curve_of_a_device_is_that_of_the_events),
        SCENE_TEST(an_event_tells_that_a_free_failed),
    };
    if (count != 2)
        return 2;
    corpus = arguments[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
