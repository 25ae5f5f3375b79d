/* See sections.h. */
#include "output/json/sections.h"

static void write_transfer(struct gm_json *json, const struct gm_model_transfer *transfer)
{
    gm_json_string(json, "direction", gm_direction_name(transfer->direction));
    GM_JSON_MEMBERS(json, transfer, bytes, count, call_ns, tiny, pageable_bytes, pageable_count);
}

void gm_transfers_json(struct gm_json_view *view)
{
    const struct gm_model_run *run = view->run;
    struct gm_json *json = view->json;
    gm_json_open_object(json, "transfers");
    gm_json_open_array(json, "directions");
    for (size_t i = 0; i < run->direction_count; i++) {
        gm_json_open_object(json, NULL);
        write_transfer(json, &run->directions[i]);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
    gm_json_number(json, "site_count", run->transfer_count);
    gm_json_open_array(json, "sites");
    for (size_t i = 0; i < run->transfer_count && i < view->top; i++) {
        gm_json_open_object(json, NULL);
        write_transfer(json, &run->transfers[i]);
        gm_json_where(view, run->transfers[i].stack, run->transfers[i].api);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
    gm_json_close_object(json);
}

void gm_contexts_json(struct gm_json_view *view)
{
    struct gm_json *json = view->json;
    gm_json_open_array(json, "contexts");
    for (size_t i = 0; i < view->run->context_count; i++) {
        const struct gm_model_context *context = &view->run->contexts[i];
        gm_json_open_object(json, NULL);
        GM_JSON_MEMBERS(json, context, device, primary, time_ns);
        gm_json_where(view, context->stack, context->api);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}
