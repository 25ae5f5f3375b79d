/* See sections.h. */
#include "output/json/sections.h"

static const char *const pool_names[GM_SEGMENT_POOLS] = {
    [GM_SEGMENTS_SMALL] = "small",
    [GM_SEGMENTS_LARGE] = "large",
};

static void write_sums(struct gm_json *json, const char *key, const struct gm_segment_sums *sums)
{
    gm_json_open_object(json, key);
    gm_json_number(json, "segments", sums->count);
    gm_json_number(json, "empty_segments", sums->empty);
    GM_JSON_MEMBERS(json, sums, size, free, largest_hole, returnable, blocks);
    gm_json_close_object(json);
}

static void write_pins(struct gm_json_view *view, const struct gm_model_segment *segment)
{
    struct gm_json *json = view->json;
    gm_json_open_array(json, "pins");
    for (size_t i = 0; i < GM_SEGMENT_PINS && segment->segment.pins[i].alive; i++) {
        const struct gm_pool_block *block = &segment->segment.pins[i];
        const struct gm_model_place *place = &view->model->places[segment->pins[i]];
        gm_json_open_object(json, NULL);
        GM_JSON_MEMBERS(json, block, address, size);
        gm_json_where(view, place->stack, place->api);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

static void write_segment(struct gm_json_view *view, const struct gm_model_segment *own)
{
    const struct gm_segment *segment = &own->segment;
    struct gm_json *json = view->json;
    gm_json_open_object(json, NULL);
    GM_JSON_MEMBERS(json, segment, address, size, free, largest_hole, returnable, blocks, count);
    gm_json_string(json, "pool", pool_names[segment->pool]);
    gm_json_bool(json, "expandable", segment->expandable);
    write_pins(view, own);
    gm_json_close_object(json);
}

static void write_lines(struct gm_json_view *view, const struct gm_model_pool_state *state)
{
    struct gm_json *json = view->json;
    gm_json_open_array(json, "lines");
    for (size_t i = 0; i < state->line_count && i < view->top; i++) {
        const struct gm_model_line *line = &state->lines[i];
        gm_json_open_object(json, NULL);
        GM_JSON_MEMBERS(json, line, bytes, count);
        gm_json_at(json, gm_stack_telling_frame(gm_model_stack(view->model, line->stack)));
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

/* Those with bytes. */
static void write_categories(struct gm_json *json, const struct gm_model_pool_state *state)
{
    gm_json_open_array(json, "categories");
    for (unsigned i = 0; i < GM_CATEGORIES; i++) {
        if (!state->categories[i].bytes)
            continue;
        gm_json_open_object(json, NULL);
        gm_json_string(json, "category", gm_category_name((enum gm_category)i));
        GM_JSON_MEMBERS(json, &state->categories[i], bytes, count);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

static void write_moment(struct gm_json_view *view, const char *key, uint32_t number)
{
    const struct gm_model_moment *moment = gm_model_moment(view->run, number);
    const struct gm_model_pool_state *state = moment ? moment->pool : NULL;
    struct gm_json *json = view->json;
    if (!state)
        return;
    gm_json_open_object(json, key);
    gm_json_number(json, "time_ns", moment->time_ns);
    GM_JSON_MEMBERS(json, state, allocated, reserved, in_use, rounding);
    write_categories(json, state);
    for (unsigned pool = 0; pool < GM_SEGMENT_POOLS; pool++)
        write_sums(json, pool_names[pool], &state->sums[pool]);
    gm_json_open_array(json, "segments");
    for (size_t i = 0; i < state->segment_count && i < view->top; i++)
        write_segment(view, &state->segments[i]);
    gm_json_close_array(json);
    write_lines(view, state);
    gm_owners_json(view, moment);
    gm_json_close_object(json);
}

static void write_curve(struct gm_json *json, const struct gm_model_pool *pool)
{
    static const char *const names[GM_CURVE_VALUES] = {"allocated", "reserved"};
    if (!pool->curve)
        return;
    gm_json_open_object(json, "curve");
    gm_json_number(json, "start_ns", pool->curve_start_ns);
    gm_json_number(json, "bucket_ns", pool->bucket_ns);
    for (unsigned value = 0; value < GM_CURVE_VALUES; value++) {
        gm_json_open_array(json, names[value]);
        for (size_t i = 0; i < pool->curve->count; i++)
            gm_json_number(json, NULL, pool->curve->buckets[i].most[value]);
        gm_json_close_array(json);
    }
    gm_json_close_object(json);
}

static void write_pool_failure(struct gm_json_view *view,
                               const struct gm_model_pool_failure *failure)
{
    const struct gm_model_place *place = &view->model->places[failure->place];
    struct gm_json *json = view->json;
    gm_json_open_object(json, NULL);
    gm_json_number(json, "request", failure->size);
    gm_json_number(json, "first_request", failure->first);
    GM_JSON_MEMBERS(json, failure, count, survived);
    gm_json_bool(json, "succeeded_later", failure->succeeded);
    GM_JSON_MEMBERS(json, &failure->reason, free, largest_hole, fragmentation);
    GM_JSON_MEMBERS(json, failure, tracked, residual);
    gm_json_number(json, "other_processes", failure->elsewhere);
    GM_JSON_IF(json, "limit", failure->limit, failure->limit);
    gm_json_where(view, place->stack, place->api);
    write_moment(view, "at", failure->moment);
    gm_json_close_object(json);
}

static void write_in_use_peak(struct gm_json_view *view, const struct gm_model_in_use_peak *peak)
{
    if (!peak->bytes) {
        gm_json_null(view->json, "in_use_peak");
        return;
    }
    const struct gm_model_place *place = &view->model->places[peak->place];
    gm_json_open_object(view->json, "in_use_peak");
    GM_JSON_MEMBERS(view->json, peak, bytes, arrays, temporaries, time_ns);
    GM_JSON_IF(view->json, "executable", peak->executable.size, peak->executable);
    gm_json_bool(view->json, "compiling", peak->is_compiling);
    gm_json_where(view, place->stack, place->api);
    gm_json_close_object(view->json);
}

static void write_told(struct gm_json *json, const struct gm_model_pool *pool)
{
    gm_json_open_array(json, "in_use_told");
    for (size_t i = 0; i < pool->told_count; i++) {
        gm_json_open_object(json, NULL);
        GM_JSON_MEMBERS(json, &pool->told[i], time_ns, in_use, allocated, rounding);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

static void write_pool(struct gm_json_view *view, const struct gm_model_pool *pool)
{
    const struct gm_model_run *run = view->run;
    struct gm_json *json = view->json;
    gm_json_open_object(json, NULL);
    gm_json_signed(json, "device", pool->device);
    gm_json_string(json, "framework", pool->owner);
    GM_JSON_MEMBERS(json, pool, allocs, frees, live, peak, peak_time_ns);
    GM_JSON_IF(json, "requested_peak", pool->is_requested_known, pool->requested_peak);
    GM_JSON_MEMBERS(json, pool, reserved, reserved_peak, reserved_peak_time_ns, out_of_memory);
    write_in_use_peak(view, &pool->in_use_peak);
    write_told(json, pool);
    GM_JSON_IF(json, "settings", run->allocator_variable, run->allocator_settings);
    gm_json_open_object(json, "at_end");
    gm_owners_json(view, gm_model_moment(run, pool->at_end));
    gm_json_close_object(json);
    write_moment(view, "at_peak", pool->at_peak);
    write_moment(view, "after_last_use", pool->last);
    write_curve(json, pool);
    gm_json_open_array(json, "failures");
    for (size_t i = 0; i < run->pool_failure_count; i++)
        if (run->pool_failures[i].device == pool->device)
            write_pool_failure(view, &run->pool_failures[i]);
    gm_json_close_array(json);
    gm_json_close_object(json);
}

void gm_pools_json(struct gm_json_view *view)
{
    if (!view->run->has_blocks)
        return;
    gm_json_open_array(view->json, "framework_blocks");
    for (size_t i = 0; i < view->run->pool_count; i++)
        write_pool(view, &view->run->pools[i]);
    gm_json_close_array(view->json);
}
