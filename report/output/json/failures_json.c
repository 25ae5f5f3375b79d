/* See sections.h. */
#include "output/cuda_error.h"
#include "output/json/sections.h"
#include <string.h>

/* By the layer that the program called. */
static const char *status_name(const struct gm_model_failure *failure, const char *api)
{
    return gm_cuda_error_name(failure->status, strncmp(api, "cuda", 4) == 0);
}

static void write_live(struct gm_json_view *view, const struct gm_model_failure *failure)
{
    static const char *const fragmented[] = {[GM_FRAGMENTATION_NONE] = "no",
                                             [GM_FRAGMENTATION_CERTAIN] = "yes",
                                             [GM_FRAGMENTATION_UNTOLD] = "unknown"};
    const struct gm_model_moment *moment = gm_model_moment(view->run, failure->moment);
    struct gm_json *json = view->json;
    if (!moment)
        return;
    gm_json_open_object(json, "live");
    gm_json_signed(json, "bytes", moment->bytes);
    gm_owners_json(view, moment);
    gm_holes_json(json, &moment->holes);
    gm_json_number(json, "used", failure->used);
    gm_json_string(json, "fragmented", fragmented[failure->fragmentation]);
    gm_json_close_object(json);
}

void gm_failures_json(struct gm_json_view *view)
{
    struct gm_json *json = view->json;
    gm_json_open_array(json, "failed_allocations");
    for (size_t i = 0; i < view->run->failure_count; i++) {
        const struct gm_model_failure *failure = &view->run->failures[i];
        const struct gm_model_place *place = &view->model->places[failure->place];
        gm_json_open_object(json, NULL);
        gm_json_number(json, "request", failure->size);
        gm_json_string(json, "purpose", gm_purpose_name(failure->purpose));
        GM_JSON_MEMBERS(json, failure, count, status);
        gm_json_string(json, "status_name", status_name(failure, place->api));
        gm_json_bool(json, "out_of_memory", failure->out_of_memory);
        gm_json_kind(json, place->kind, place->device);
        gm_json_number(json, "time_ns", failure->time_ns);
        gm_json_where(view, place->stack, place->api);
        write_live(view, failure);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}
