/* See print.h. */
#include "output/json.h"
#include "tools/diff/print.h"
#include <string.h>

static void put_side(struct gm_json *json, const char *key, const struct gm_model *model)
{
    bool is_complete = true;
    gm_json_open_object(json, key);
    gm_json_open_array(json, "traces");
    for (size_t i = 0; i < model->run_count; i++) {
        struct gm_text path = {model->runs[i].path, strlen(model->runs[i].path)};
        gm_json_text(json, NULL, path);
        is_complete &= model->runs[i].complete && !model->runs[i].is_overwritten;
    }
    gm_json_close_array(json);
    gm_json_bool(json, "complete", is_complete);
    gm_json_close_object(json);
}

static void put_diff_table(struct gm_json *json, enum gm_diff_tables number,
                           const struct gm_diff_table *table)
{
    gm_json_open_array(json, gm_diff_table_name(number));
    for (size_t i = 0; i < table->count; i++) {
        const struct gm_diff_row *row = &table->rows[i];
        gm_json_open_object(json, NULL);
        gm_json_string(json, "name", row->name);
        gm_json_string(json, "unit", row->is_bytes ? "bytes" : "count");
        gm_json_signed(json, "base", row->before);
        gm_json_signed(json, "new", row->after);
        gm_json_signed(json, "change", row->after - row->before);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

static void put_stack(struct gm_json *json, const struct gm_stack *stack)
{
    gm_json_open_array(json, "stack");
    for (size_t i = 0; i < stack->count; i++) {
        const struct gm_frame *frame = &stack->frames[i];
        GM_JSON_OBJECT(json, NULL, frame, function, file, line, module);
    }
    gm_json_close_array(json);
}

static void put_place(struct gm_json *json, const struct gm_diff *diff,
                      const struct gm_diff_place *place)
{
    const struct gm_stack *stack = gm_model_stack(diff->difference, place->stack);
    const struct gm_frame *frame = gm_stack_telling_frame(stack);
    gm_json_open_object(json, NULL);
    gm_json_string(json, "change", gm_diff_change(place->bytes_before, place->bytes_after));
    gm_json_signed(json, "bytes_base", place->bytes_before);
    gm_json_signed(json, "bytes_new", place->bytes_after);
    gm_json_signed(json, "count_base", place->count_before);
    gm_json_signed(json, "count_new", place->count_after);
    gm_json_string(json, "library", place->library);
    gm_json_string(json, "function", frame ? frame->function : NULL);
    gm_json_string(json, "file", frame ? frame->file : NULL);
    gm_json_number(json, "line", frame ? frame->line : 0);
    put_stack(json, stack);
    gm_json_close_object(json);
}

void gm_diff_json(FILE *out, const struct gm_diff *diff)
{
    struct gm_json json = {.out = out};
    gm_json_open_object(&json, NULL);
    gm_json_string(&json, "format", "gpumem diff");
    gm_json_number(&json, "version", 1);
    put_side(&json, "base", diff->base);
    put_side(&json, "new", diff->newer);
    gm_json_bool(&json, "differs", diff->differs);
    for (unsigned table = 0; table < GM_DIFF_TABLES; table++)
        put_diff_table(&json, table, &diff->tables[table]);
    gm_json_open_object(&json, "places");
    for (unsigned section = 0; section < GM_DIFF_SECTIONS; section++) {
        const struct gm_diff_places *places = &diff->places[section];
        gm_json_open_array(&json, gm_diff_section_name(section));
        for (size_t i = 0; i < places->count; i++)
            put_place(&json, diff, &places->entries[i]);
        gm_json_close_array(&json);
    }
    gm_json_close_object(&json);
    gm_json_close_object(&json);
    gm_json_end(&json);
}
