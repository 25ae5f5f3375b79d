/* NDJSON, a JSON object on each line, for DuckDB, jq and log pipelines. "type" says what the line is:
 * the run, then stacks, then allocations and blocks in the order in which they began; with a moment,
 * the places that held memory then instead of allocations. */
#include "output/export/rows.h"
#include "output/json.h"
#include <inttypes.h>
#include <stdlib.h>

static struct gm_json begin_line(FILE *out, const char *type)
{
    struct gm_json json = {.out = out, .on_one_line = true};
    gm_json_open_object(&json, NULL);
    gm_json_string(&json, "type", type);
    return json;
}

static void end_line(struct gm_json *json)
{
    gm_json_close_object(json);
    gm_json_end(json);
}

static void write_ndjson_run(FILE *out, const struct gm_model_run *run)
{
    struct gm_json json = begin_line(out, "run");
    GM_JSON_MEMBERS(&json, run, executable, host_name, pid, start_realtime_ns, duration_ns,
                    complete, simulated);
    end_line(&json);
}

static void write_ndjson_stacks(FILE *out, const struct gm_model *model,
                                const struct gm_export_stacks *stacks)
{
    for (size_t i = 0; i < stacks->count; i++) {
        const struct gm_stack *stack = gm_model_stack(model, stacks->stacks[i]);
        size_t count = gm_export_frame_count(stack);
        struct gm_json json = begin_line(out, "stack");
        gm_json_number(&json, "stack", i);
        gm_json_open_array(&json, "frames");
        for (size_t frame = 0; frame < count; frame++) {
            GM_JSON_OBJECT(&json, NULL, &stack->frames[frame], function, file, line);
        }
        gm_json_close_array(&json);
        gm_json_bool(&json, "cut", stack->cut || count < stack->count);
        end_line(&json);
    }
}

static void write_ndjson_place(struct gm_json *json, const struct gm_model_place *place,
                               const char *where, uint32_t stack)
{
    GM_JSON_IF(json, "device", !gm_kind_is_host(place->kind), place->device);
    gm_json_string(json, "kind", gm_kind_name(place->kind));
    GM_JSON_MEMBERS(json, place, is_block, api, library, pool);
    gm_json_string(json, "place", where);
    gm_json_number(json, "stack", stack);
}

static void write_life(FILE *out, const struct gm_export_rows *rows, size_t number)
{
    const struct gm_model_life *life = &rows->history.lives[number];
    const struct gm_export_row_place *row = &rows->places[life->place];
    struct gm_json json = begin_line(out, "allocation");
    char address[24];
    snprintf(address, sizeof(address), "0x%" PRIx64, life->address);
    gm_json_number(&json, "id", number);
    gm_json_number(&json, "begin_ns", life->begin_ns);
    GM_JSON_IF(&json, "end_ns", life->end_step != GM_NONE, life->end_ns);
    gm_json_string(&json, "ended", gm_export_ended(life));
    gm_json_string(&json, "address", address);
    gm_json_number(&json, "bytes", life->size);
    write_ndjson_place(&json, &rows->model->places[life->place], row->place, row->stack);
    end_line(&json);
}

static void write_ndjson_lives(FILE *out, const struct gm_model *model)
{
    struct gm_export_rows rows;
    gm_export_rows_begin(&rows, model);
    write_ndjson_stacks(out, model, &rows.stacks);
    for (size_t i = 0; i < rows.history.count; i++)
        write_life(out, &rows, i);
    gm_export_rows_end(&rows);
}

static void write_ndjson_held(FILE *out, const struct gm_model *model, const struct gm_when *when)
{
    struct gm_model_held held;
    struct gm_export_stacks stacks = {0};
    gm_model_held_at(model, when, &held);
    for (size_t i = 0; i < held.count; i++)
        gm_export_stack(&stacks, model, model->places[held.samples[i].place].stack);
    write_ndjson_stacks(out, model, &stacks);
    for (size_t i = 0; i < held.count; i++) {
        const struct gm_model_place *place = &model->places[held.samples[i].place];
        struct gm_json json = begin_line(out, "held");
        char *where = gm_export_place(model, place);
        GM_JSON_MEMBERS(&json, &held.samples[i], bytes, count);
        if (place->leak_class)
            gm_json_string(&json, "class", gm_leak_class_name(place->leak_class));
        write_ndjson_place(&json, place, where, gm_export_stack(&stacks, model, place->stack));
        end_line(&json);
        free(where);
    }
    gm_export_stacks_free(&stacks);
    gm_model_held_free(&held);
}

static void write_ndjson(FILE *out, const struct gm_model *model,
                         const struct gm_output_options *options)
{
    write_ndjson_run(out, &model->runs[0]);
    if (options->when.kind == GM_WHEN_DEFAULT)
        write_ndjson_lives(out, model);
    else
        write_ndjson_held(out, model, &options->when);
}

const struct gm_output gm_export_ndjson = {
    .name = "ndjson", .needs = GM_NEEDS_MOMENTS, .write = write_ndjson};
