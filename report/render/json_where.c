/* See json_where.h. */
#include "render/json_where.h"
#include "base/limit.h"
#include "ledger/counters.h"

static void write_stack(struct gm_json *json, const struct gm_stack *stack)
{
    size_t i = 0;
    gm_json_open_array(json, "stack");
    for (; i < stack->count && gm_limits_take_frame(); i++) {
        const struct gm_frame *frame = &stack->frames[i];
        gm_json_open_object(json, NULL);
        gm_json_string(json, "function", frame->function);
        gm_json_string(json, "file", frame->file);
        gm_json_number(json, "line", frame->line);
        gm_json_string(json, "module", frame->module);
        if (frame->script)
            gm_json_string(json, "language", "python");
        if (frame->trouble)
            gm_json_string(json, "module_status", frame->trouble);
        if (frame->inlined)
            gm_json_bool(json, "inlined", true);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
    if (stack->cut || i < stack->count)
        gm_json_bool(json, "stack_cut", true);
}

void gm_json_where(struct gm_json *json, struct gm_stacks *stacks,
                   const struct gm_analysis *analysis, uint32_t stack, uint16_t api)
{
    gm_json_string(json, "api", gm_trace_api(analysis->trace, api));
    write_stack(json, gm_stacks_get(stacks, stack, api));
}

void gm_json_kind(struct gm_json *json, unsigned kind, int device)
{
    gm_json_string(json, "kind", gm_kind_name(kind));
    if (gm_kind_is_host(kind))
        gm_json_null(json, "device");
    else
        gm_json_signed(json, "device", device);
}
