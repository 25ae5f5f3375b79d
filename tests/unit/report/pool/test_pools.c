/* The report on PyTorch's pools: segments, holes, the blocks that hold them, by moment and by
 * line. */
#include "base/curve.h"
#include "input/trace/environment.h"
#include "judge/pool/holes.h"
#include "judge/pool/pool_lines.h"
#include "pool_scene.h"

#include "assert_between.h"

#define DEVICE 0x7f0000000000u

static const struct gm_pool_snapshot *at_peak(struct scene *scene)
{
    const struct gm_pool_snapshot *peak = gm_analysis_pool_peak(scene_analyse(scene), 0);
    assert_non_null(peak);
    return peak;
}

static void holes_are_measured_inside_segments(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t line = line_of(scene, 3);
    segment(&pool, DEVICE, 20 * MIB);
    segment(&pool, DEVICE + 20 * MIB, 20 * MIB); /* it touches the first: no hole spans both */
    segment(&pool, DEVICE + 100 * MIB, 2 * MIB);
    segment(&pool, DEVICE + 200 * MIB, 40 * MIB); /* empty */
    block(&pool, DEVICE + 4 * MIB, 9 * MIB, line);
    block(&pool, DEVICE + 20 * MIB, 16 * MIB, line);
    block(&pool, DEVICE + 100 * MIB, 512, line);
    const struct gm_pool_snapshot *peak = at_peak(scene);
    const struct gm_segment_sums *large = &peak->segments.sums[GM_SEGMENTS_LARGE];
    const struct gm_segment_sums *small = &peak->segments.sums[GM_SEGMENTS_SMALL];
    assert_int_equal(large->count, 3);
    assert_int_equal(large->size, 80 * MIB);
    assert_int_equal(large->free, 55 * MIB);
    assert_int_equal(large->largest_hole, 40 * MIB);
    assert_int_equal(large->returnable, 40 * MIB);
    assert_int_equal(large->empty, 1);
    assert_int_equal(small->count, 1);
    assert_int_equal(small->free, 2 * MIB - 512);
    assert_int_equal(peak->reserved, 82 * MIB);
    assert_int_equal(peak->allocated, 25 * MIB + 512);
}

static void the_blocks_that_hold_a_segment_are_named(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t tiny = line_of(scene, 3), larger = line_of(scene, 4), other = line_of(scene, 5);
    for (unsigned i = 0; i < 3; i++) {
        segment(&pool, DEVICE + i * 32 * MIB, 20 * MIB);
        block(&pool, DEVICE + i * 32 * MIB, 2 * MIB, tiny);
        block(&pool, DEVICE + i * 32 * MIB + 4 * MIB, 3 * MIB, larger);
    }
    segment(&pool, DEVICE + 200 * MIB, 30 * MIB);
    block(&pool, DEVICE + 200 * MIB, 11 * MIB, other);
    const struct gm_segments *segments = &at_peak(scene)->segments;
    assert_int_equal(segments->kept_count, 2);
    assert_int_equal(segments->kept[0].free, 19 * MIB);
    assert_int_equal(segments->kept[0].pins[0].stack, other);
    assert_false(segments->kept[0].pins[1].alive);
    assert_int_equal(segments->kept[1].count, 3);
    assert_int_equal(segments->kept[1].pins[0].stack, larger);
    assert_int_equal(segments->kept[1].pins[1].stack, tiny);
}

/* Segments of the device that do not belong to PyTorch. */
static void memory_of_others_is_no_segment(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    DEVICE_ALLOC(DEVICE + 512 * MIB, 64 * MIB, .stack = line_of(scene, 8));
    segment(&pool, DEVICE, 20 * MIB);
    block(&pool, DEVICE, 20 * MIB, line_of(scene, 3));
    struct gm_segment_sums all = gm_segments_all(at_peak(scene)->segments.sums);
    assert_int_equal(all.count, 1);
    assert_int_equal(all.free, 0);
}

/* Physical memory and a mapping of it. */
static void map(struct pool *pool, uint64_t address, uint64_t size, uint64_t handle)
{
    struct scene *scene = pool->scene;
    EVENT(GM_EVENT_VMM_CREATE, .address = handle, .size = size, .kind = GM_KIND_VMM,
          .stack = pool->segments);
    EVENT(GM_EVENT_VMM_MAP, .address = address, .size = size, .aux = handle);
    EVENT(GM_EVENT_DETAIL, .address = 0);
    pool->reserved += size;
}

static void mappings_that_touch_are_one_expandable_segment(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    EVENT(GM_EVENT_VMM_RESERVE, .address = DEVICE, .size = 1024 * MIB);
    for (unsigned i = 0; i < 4; i++)
        map(&pool, DEVICE + i * 20 * MIB, 20 * MIB, 0x100 + i);
    map(&pool, DEVICE + 400 * MIB, 2 * MIB, 0x200);
    block(&pool, DEVICE + 15 * MIB, 10 * MIB, line_of(scene, 3)); /* across two pieces */
    const struct gm_pool_snapshot *peak = at_peak(scene);
    const struct gm_segment_sums *large = &peak->segments.sums[GM_SEGMENTS_LARGE];
    assert_int_equal(large->count, 1);
    assert_int_equal(large->size, 80 * MIB);
    assert_int_equal(large->largest_hole, 55 * MIB);
    assert_int_equal(large->returnable, 40 * MIB);
    assert_true(peak->segments.kept[0].expandable);
    assert_int_equal(peak->segments.sums[GM_SEGMENTS_SMALL].returnable, 2 * MIB);
}

/* An interpreter that ends frees all tensors, and the program may empty the cache before. */
static void what_lived_after_the_last_use_is_known(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t line = line_of(scene, 3);
    segment(&pool, DEVICE, 20 * MIB);
    segment(&pool, DEVICE + 64 * MIB, 20 * MIB);
    block(&pool, DEVICE, 9 * MIB, line);
    block(&pool, DEVICE + 64 * MIB, 12 * MIB, line);
    unblock(&pool, DEVICE, 9 * MIB);
    block(&pool, DEVICE, 2 * MIB, line);
    unblock(&pool, DEVICE, 2 * MIB);
    unblock(&pool, DEVICE + 64 * MIB, 12 * MIB);
    FREE(DEVICE);
    FREE(DEVICE + 64 * MIB);
    const struct gm_analysis *analysis = scene_analyse(scene);
    const struct gm_pool_snapshot *last = &analysis->pool_lasts[0];
    struct gm_segment_sums all = gm_segments_all(last->segments.sums);
    assert_int_equal(last->allocated, 14 * MIB);
    assert_int_equal(last->reserved, 40 * MIB);
    assert_int_equal(all.size, 40 * MIB);
    assert_int_equal(all.free, 26 * MIB);
    assert_int_equal(analysis->pool_peaks[0].allocated, 21 * MIB);
    assert_int_equal(analysis->blocks.device[1].live, 0);
}

static void blocks_of_one_line_are_one_owner(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t line = line_of(scene, 3), other = line_of(scene, 4);
    segment(&pool, DEVICE, 64 * MIB);
    block(&pool, DEVICE, 3 * MIB, operation_of(scene, line, 0x10));
    block(&pool, DEVICE + 8 * MIB, 4 * MIB, operation_of(scene, line, 0x20));
    block(&pool, DEVICE + 16 * MIB, 5 * MIB, operation_of(scene, other, 0x20));
    const struct gm_pool_snapshot *peak = at_peak(scene);
    struct gm_pool_lines lines = gm_pool_lines_of(scene->analysis->callers, &peak->owners);
    assert_int_equal(peak->owners.count, 3);
    assert_int_equal(lines.count, 2);
    assert_int_equal(lines.entries[0].caller, line);
    assert_int_equal(lines.entries[0].bytes, 7 * MIB);
    assert_int_equal(lines.entries[0].count, 2);
    gm_pool_lines_free(&lines);
}

static uint32_t python(struct scene *scene, uint32_t parent, const char *file)
{
    uint32_t frame = writer_script_frame(&scene->writer, file, "function", 1);
    return writer_node(&scene->writer, parent, 0, frame, GM_NODE_SCRIPT);
}

static uint32_t native(struct scene *scene, uint32_t parent, const char *file)
{
    uint16_t module = writer_module(&scene->writer, file);
    return writer_node(&scene->writer, parent, module, 0x10, GM_NODE_NATIVE);
}

static void the_caller_is_the_innermost_frame_of_the_application(void **state)
{
    struct scene *scene = *state;
    uint32_t program = native(scene, 0, "/home/me/app");
    uint32_t outer = python(scene, program, "/home/me/train.py");
    uint32_t inner = python(scene, outer, "/home/me/model.py");
    uint32_t package = python(scene, inner, "/v/site-packages/torch/nn/linear.py");
    uint32_t extension = native(scene, package, "/home/me/extension.so");
    uint32_t library = native(scene, extension, "/v/libc10_cuda.so");
    uint32_t alone = native(scene, python(scene, 0, "/v/site-packages/torch/x.py"), "libcuda.so.1");
    uint32_t nobody = native(scene, native(scene, 0, "/v/libtorch.so"), "/v/libc10_cuda.so");
    uint32_t thread = python(scene, outer, "/usr/lib/python3.11/threading.py");
    uint32_t installed = python(scene, outer, "/usr/lib/python3.11/site-packages/mine/x.py");
    uint32_t own = native(scene, native(scene, 0, "/home/me/app"), "/v/libc10_cuda.so");
    scene_analyse(scene);
    struct gm_callers *callers = scene->analysis->callers;
    assert_int_equal(gm_callers_get(callers, library), inner);
    assert_int_equal(gm_callers_get(callers, outer), outer);
    assert_int_equal(gm_callers_get(callers, alone), alone - 1); /* of Python at least */
    assert_int_equal(gm_callers_get(callers, own), own - 1);
    assert_int_equal(gm_callers_get(callers, nobody), nobody);
    assert_int_equal(gm_callers_get(callers, thread), outer);
    assert_int_equal(gm_callers_get(callers, installed), outer);
    assert_int_equal(gm_callers_get(callers, 0), 0);
}

/* CPython rewrites its bytecode: later calls of a line come from another place of the
 * interpreter. */
static void where_the_interpreter_stands_makes_no_other_line(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint16_t interpreter = writer_module(&scene->writer, "/usr/bin/python3.13");
    uint16_t library = writer_module(&scene->writer, "/v/libc10_cuda.so");
    uint32_t main_line = python(scene, 0, "/home/me/train.py"), stacks[3], alone[2];
    segment(&pool, DEVICE, 64 * MIB);
    for (uint32_t i = 0; i < 3; i++) { /* the interpreter calls the line, and the line C */
        uint32_t call =
            writer_node(&scene->writer, main_line, interpreter, 0x10 + i, GM_NODE_NATIVE);
        uint32_t line = writer_node(&scene->writer, call, 0, 0, GM_NODE_SCRIPT);
        uint32_t leave = writer_node(&scene->writer, line, interpreter, 0x20 + i, GM_NODE_NATIVE);
        stacks[i] = writer_node(&scene->writer, leave, library, i / 2, GM_NODE_NATIVE);
        block(&pool, DEVICE + i * 4 * MIB, MIB, stacks[i]);
    }
    for (uint32_t i = 0; i < 2; i++) { /* without Python frames there is nothing else */
        alone[i] = writer_node(&scene->writer, 0, interpreter, 0x10 + i, GM_NODE_NATIVE);
        block(&pool, DEVICE + (20 + i * 4) * MIB, 5 * MIB, alone[i]);
    }
    const struct gm_sites *owners = &at_peak(scene)->owners;
    assert_int_equal(owners->count, 4);
    assert_int_equal(owners->entries[2].stack, stacks[0]);
    assert_int_equal(owners->entries[2].bytes, 2 * MIB);
    struct gm_callers *callers = scene->analysis->callers;
    assert_int_equal(gm_callers_get(callers, stacks[1]), gm_callers_get(callers, stacks[2]));
    assert_int_not_equal(gm_callers_get(callers, alone[0]), gm_callers_get(callers, alone[1]));
}

static void a_failure_knows_what_lived(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t line = line_of(scene, 3);
    segment(&pool, DEVICE, 64 * MIB);
    block(&pool, DEVICE, 60 * MIB, line);
    unblock(&pool, DEVICE, 60 * MIB);
    block(&pool, DEVICE, 10 * MIB, line);
    EVENT(GM_EVENT_DEVICE_SAMPLE, .size = 70 * MIB, .aux = 90 * MIB);
    DEVICE_ALLOC(DEVICE + 512 * MIB, 7 * MIB);
    refuse(&pool, 100 * MIB, line);
    const struct gm_analysis *analysis = scene_analyse(scene);
    const struct gm_pool_failure *failure = &analysis->pool_failures.entries[0];
    assert_int_equal(analysis->pool_failures.count, 1);
    assert_int_equal(failure->snapshot.owners.bytes, 10 * MIB);
    assert_int_equal(failure->snapshot.reserved, 64 * MIB);
    assert_int_equal(failure->tracked, 71 * MIB);
    assert_int_equal(failure->elsewhere, 20 * MIB);
    assert_int_equal(gm_pool_failure_reason(failure).largest_hole, 54 * MIB);
    assert_false(failure->survived);
}

/* What XLA could not compute is an array, too, and so is what is made of it. */
static void a_program_of_xla_survives_if_it_gets_as_much_as_was_refused(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t line = line_of(scene, 3);
    pool.owner = GM_BLOCK_OF_XLA;
    segment(&pool, DEVICE, 64 * MIB);
    block(&pool, DEVICE, 60 * MIB, line);
    refuse(&pool, 10 * MIB, line);
    block(&pool, DEVICE + 60 * MIB, MIB, line_of(scene, 4));
    refuse(&pool, 9 * MIB, line_of(scene, 5));
    block(&pool, DEVICE + 61 * MIB, 9 * MIB, line_of(scene, 4));
    refuse(&pool, 8 * MIB, line_of(scene, 6));
    block(&pool, DEVICE + 70 * MIB, 7 * MIB, line_of(scene, 4));
    const struct gm_analysis *analysis = scene_analyse(scene);
    assert_int_equal(analysis->pool_failures.count, 3);
    assert_true(analysis->pool_failures.entries[0].survived);
    assert_true(analysis->pool_failures.entries[1].survived);
    assert_false(analysis->pool_failures.entries[2].survived);
}

static void a_failure_whose_history_is_gone_has_its_totals(void **state)
{
    struct scene *scene = *state;
    struct gm_record record = {.type = GM_EVENT_BLOCK_OOM, .size = 64 * MIB, .aux = 10 * MIB};
    struct gm_record detail = {.type = GM_EVENT_DETAIL, .address = 20 * MIB};
    struct gm_entry entry = {.record = &record, .detail = &detail, .carried = true};
    struct gm_pool_failures failures = {0};
    struct gm_blocks *blocks = calloc(1, sizeof(*blocks));
    assert_non_null(blocks);
    scene_analyse(scene);
    gm_blocks_note(blocks, &entry);
    gm_pool_failures_note(&failures, scene->analysis->callers, blocks, &entry);
    assert_int_equal(failures.entries[0].snapshot.record, 0);
    assert_int_equal(failures.entries[0].snapshot.allocated, 10 * MIB);
    assert_int_equal(failures.entries[0].snapshot.reserved, 20 * MIB);
    entry.carried = false;
    gm_blocks_note(blocks, &entry);
    gm_pool_failures_note(&failures, scene->analysis->callers, blocks, &entry);
    assert_int_equal(failures.entries[0].snapshot.record, 2);
    gm_pool_failures_free(&failures);
    gm_blocks_free(blocks);
    free(blocks);
}

static void the_newer_setting_counts_more(void **state)
{
    static const char environment[] =
        "PYTORCH_CUDA_ALLOC_CONF=a:1\0PYTORCH_ALLOC_CONFUSED=b\0PYTORCH_ALLOC_CONF="
        "max_split_size_mb:64,expandable_segments:True";
    struct gm_trace trace = {.environment = {environment, sizeof(environment)}};
    const char *name;
    struct gm_text value;
    (void)state;
    assert_true(gm_environment_allocator(&trace, &name, &value));
    assert_string_equal(name, "PYTORCH_ALLOC_CONF");
    assert_int_equal(value.bytes[0], 'm');
}

/* ---- holes --------------------------------------------------------------------------------------- */

/* 1,000 places out of order, half as long as the way to the next: at all distances that addresses have. */
static void holes_are_found_whatever_the_distance(void **state)
{
    enum { COUNT = 1000 };
    struct gm_range places[COUNT];
    (void)state;
    for (uint64_t base = 1; base < UINT64_MAX / 4; base = base * 8 + 5)
        for (uint64_t step = 2; step < (UINT64_MAX - base) / COUNT; step *= 2) {
            for (uint64_t i = 0; i < COUNT; i++) {
                uint64_t start = base + i * 7919 % COUNT * step;
                places[i] = (struct gm_range){start, start + step / 2, 0};
            }
            struct gm_holes holes = gm_holes_between(places, COUNT);
            assert_int_equal(holes.allocations, COUNT);
            assert_int_equal(holes.count, COUNT - 1);
            assert_int_equal(holes.largest, step - step / 2);
            assert_int_equal(holes.free, (COUNT - 1) * (step - step / 2));
            assert_int_equal(holes.live, COUNT * (step / 2));
            assert_int_equal(holes.span, (COUNT - 1) * step + step / 2);
        }
}

static void one_place_has_no_holes(void **state)
{
    struct gm_range places[] = {{UINT64_MAX - 1, UINT64_MAX, 0}};
    (void)state;
    assert_int_equal(gm_holes_between(places, 0).span, 0);
    assert_int_equal(gm_holes_between(places, 1).span, 1);
    assert_int_equal(gm_holes_between(places, 1).count, 0);
}

/* ---- the curve ------------------------------------------------------------------------------- */

static void a_curve_keeps_the_most_of_each_time(void **state)
{
    struct gm_curve curve = {0};
    (void)state;
    for (uint64_t i = 0; i < 1000000; i++)
        gm_curve_set(&curve, 77 + i * 1000, i == 500000 ? 9 : 5, i);
    gm_curve_finish(&curve, 77 + 1000000000);
    assert_between(curve.count, GM_CURVE_BUCKETS / 2, GM_CURVE_BUCKETS);
    assert_int_equal(gm_curve_most(&curve, 0, 0, 1, 1), 9);
    assert_int_equal(gm_curve_most(&curve, 0, 0, 1, 4), 5);
    assert_int_equal(gm_curve_most(&curve, 0, 3, 4, 4), 5);
    assert_int_equal(gm_curve_most(&curve, 1, 7, 8, 8), 999999);
    assert_between(gm_curve_most(&curve, 1, 0, 1, 2), 490000, 510000);
}

static void a_curve_holds_its_value_through_silence(void **state)
{
    struct gm_curve curve = {0};
    (void)state;
    gm_curve_set(&curve, 1000, 3, 0);
    gm_curve_set(&curve, 901000, 1, 0);
    gm_curve_set(&curve, 500, 2, 0); /* out of order: now */
    gm_curve_finish(&curve, 1001000);
    assert_int_equal(gm_curve_most(&curve, 0, 1, 2, 4), 3);
    assert_int_equal(gm_curve_most(&curve, 0, 31, 32, 32), 2);
    gm_curve_set(&curve, UINT64_MAX, 7, 0);
    gm_curve_finish(&curve, UINT64_MAX);
    assert_int_equal(gm_curve_most(&curve, 0, 0, 1, 1), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(holes_are_measured_inside_segments),
        SCENE_TEST(the_blocks_that_hold_a_segment_are_named),
        SCENE_TEST(memory_of_others_is_no_segment),
        SCENE_TEST(mappings_that_touch_are_one_expandable_segment),
        SCENE_TEST(what_lived_after_the_last_use_is_known),
        SCENE_TEST(blocks_of_one_line_are_one_owner),
        SCENE_TEST(the_caller_is_the_innermost_frame_of_the_application),
        SCENE_TEST(where_the_interpreter_stands_makes_no_other_line),
        SCENE_TEST(a_failure_knows_what_lived),
        SCENE_TEST(a_program_of_xla_survives_if_it_gets_as_much_as_was_refused),
        SCENE_TEST(a_failure_whose_history_is_gone_has_its_totals),
        cmocka_unit_test(holes_are_found_whatever_the_distance),
        cmocka_unit_test(one_place_has_no_holes),
        cmocka_unit_test(the_newer_setting_counts_more),
        cmocka_unit_test(a_curve_keeps_the_most_of_each_time),
        cmocka_unit_test(a_curve_holds_its_value_through_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
