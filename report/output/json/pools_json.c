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
    gm_json_number(json, "size", sums->size);
    gm_json_number(json, "free", sums->free);
    gm_json_number(json, "largest_hole", sums->largest_hole);
    gm_json_number(json, "returnable", sums->returnable);
    gm_json_number(json, "blocks", sums->blocks);
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
        gm_json_number(json, "address", block->address);
        gm_json_number(json, "size", block->size);
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
    gm_json_number(json, "address", segment->address);
    gm_json_number(json, "size", segment->size);
    gm_json_number(json, "free", segment->free);
    gm_json_number(json, "largest_hole", segment->largest_hole);
    gm_json_number(json, "returnable", segment->returnable);
    gm_json_number(json, "blocks", segment->blocks);
    gm_json_number(json, "count", segment->count);
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
        const struct gm_frame *frame =
            gm_stack_telling_frame(gm_model_stack(view->model, line->stack));
        gm_json_open_object(json, NULL);
        gm_json_number(json, "bytes", line->bytes);
        gm_json_number(json, "count", line->count);
        gm_json_string(json, "function", frame ? frame->function : NULL);
        gm_json_string(json, "file", frame ? frame->file : NULL);
        gm_json_number(json, "line", frame ? frame->line : 0);
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
        gm_json_number(json, "bytes", state->categories[i].bytes);
        gm_json_number(json, "count", state->categories[i].count);
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
    gm_json_number(json, "allocated", state->allocated);
    gm_json_number(json, "reserved", state->reserved);
    gm_json_number(json, "in_use", state->in_use);
    gm_json_number(json, "rounding", state->rounding);
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

static void write_failure(struct gm_json_view *view, const struct gm_model_pool_failure *failure)
{
    const struct gm_model_place *place = &view->model->places[failure->place];
    struct gm_json *json = view->json;
    gm_json_open_object(json, NULL);
    gm_json_number(json, "request", failure->size);
    gm_json_number(json, "first_request", failure->first);
    gm_json_number(json, "count", failure->count);
    gm_json_bool(json, "survived", failure->survived);
    gm_json_bool(json, "succeeded_later", failure->succeeded);
    gm_json_number(json, "free", failure->reason.free);
    gm_json_number(json, "largest_hole", failure->reason.largest_hole);
    gm_json_bool(json, "fragmentation", failure->reason.fragmentation);
    gm_json_number(json, "tracked", failure->tracked);
    gm_json_number(json, "residual", failure->residual);
    gm_json_number(json, "other_processes", failure->elsewhere);
    gm_json_where(view, place->stack, place->api);
    write_moment(view, "at", failure->moment);
    gm_json_close_object(json);
}

static void write_pool(struct gm_json_view *view, const struct gm_model_pool *pool)
{
    const struct gm_model_run *run = view->run;
    struct gm_json *json = view->json;
    gm_json_open_object(json, NULL);
    gm_json_signed(json, "device", pool->device);
    gm_json_string(json, "framework", pool->owner);
    gm_json_amount(json, "allocs", pool->allocs);
    gm_json_amount(json, "frees", pool->frees);
    gm_json_amount(json, "live", pool->live);
    gm_json_amount(json, "peak", pool->peak);
    gm_json_number(json, "peak_time_ns", pool->peak_time_ns);
    if (pool->is_requested_known)
        gm_json_amount(json, "requested_peak", pool->requested_peak);
    else
        gm_json_null(json, "requested_peak");
    gm_json_amount(json, "reserved", pool->reserved);
    gm_json_amount(json, "reserved_peak", pool->reserved_peak);
    gm_json_number(json, "reserved_peak_time_ns", pool->reserved_peak_time_ns);
    gm_json_amount(json, "out_of_memory", pool->out_of_memory);
    if (run->allocator_variable)
        gm_json_text(json, "settings", run->allocator_settings);
    else
        gm_json_null(json, "settings");
    gm_json_open_object(json, "at_end");
    gm_owners_json(view, gm_model_moment(run, pool->at_end));
    gm_json_close_object(json);
    write_moment(view, "at_peak", pool->at_peak);
    write_moment(view, "after_last_use", pool->last);
    write_curve(json, pool);
    gm_json_open_array(json, "failures");
    for (size_t i = 0; i < run->pool_failure_count; i++)
        if (run->pool_failures[i].device == pool->device)
            write_failure(view, &run->pool_failures[i]);
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
