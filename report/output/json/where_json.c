/* See sections.h. */
#include "base/limit.h"
#include "base/memory.h"
#include "output/json/sections.h"

void gm_json_at(struct gm_json *json, const struct gm_frame *frame)
{
    static const struct gm_frame none;
    GM_JSON_MEMBERS(json, frame ? frame : &none, function, file, line);
}

void gm_json_where(struct gm_json_view *view, uint32_t stack, const char *api)
{
    uint32_t same = gm_model_same_stack(view->model, stack);
    uint32_t number = gm_map_get(&view->numbers, same);
    if (number == GM_NONE) {
        number = (uint32_t)view->stack_count;
        GM_APPEND(view->stacks, view->stack_capacity, view->stack_count, same);
        gm_map_set(&view->numbers, same, number);
    }
    gm_json_string(view->json, "api", api);
    gm_json_number(view->json, "stack", number);
}

void gm_json_kind(struct gm_json *json, unsigned kind, int device)
{
    gm_json_string(json, "kind", gm_kind_name(kind));
    GM_JSON_IF(json, "device", !gm_kind_is_host(kind), device);
}

static void write_frame(struct gm_json *json, const struct gm_frame *frame)
{
    gm_json_open_object(json, NULL);
    GM_JSON_MEMBERS(json, frame, function, file, line, module);
    if (frame->script)
        gm_json_string(json, "language", "python");
    if (frame->trouble)
        gm_json_string(json, "module_status", frame->trouble);
    if (frame->inlined)
        gm_json_bool(json, "inlined", true);
    gm_json_close_object(json);
}

void gm_json_stacks(struct gm_json_view *view)
{
    struct gm_json *json = view->json;
    gm_json_open_array(json, "stacks");
    for (size_t number = 0; number < view->stack_count; number++) {
        const struct gm_stack *stack = gm_model_stack(view->model, view->stacks[number]);
        size_t i = 0;
        gm_json_open_object(json, NULL);
        gm_json_string(json, "id", ID(gm_model_site_id(view->model, view->stacks[number])));
        gm_json_open_array(json, "frames");
        for (; i < stack->count && gm_limits_take_frame(); i++)
            write_frame(json, &stack->frames[i]);
        gm_json_close_array(json);
        if (stack->cut || i < stack->count)
            gm_json_bool(json, "cut", true);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

void gm_owners_json(struct gm_json_view *view, const struct gm_model_moment *moment)
{
    struct gm_json *json = view->json;
    size_t count = moment ? moment->sample_count : 0;
    gm_json_number(json, "owner_count", count);
    gm_json_open_array(json, "owners");
    for (size_t i = 0; i < count && i < view->top; i++) {
        const struct gm_model_sample *sample = &moment->samples[i];
        const struct gm_model_place *place = &view->model->places[sample->place];
        gm_json_open_object(json, NULL);
        GM_JSON_MEMBERS(json, sample, bytes, count);
        gm_json_kind(json, place->kind, place->device);
        gm_json_where(view, place->stack, place->api);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}
