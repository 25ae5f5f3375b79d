/* See sections.h. */
#include "output/json/sections.h"

void gm_leaks_json(struct gm_json_view *view)
{
    const struct gm_model_run *run = view->run;
    const struct gm_model_moment *end = gm_model_moment(run, run->end);
    struct gm_json *json = view->json;
    gm_json_open_object(json, "leaked");
    for (unsigned leak_class = GM_LEAK; leak_class < GM_LEAK_CLASSES; leak_class++) {
        gm_json_open_object(json, gm_leak_class_name(leak_class));
        gm_json_signed(json, "bytes", run->leaked[leak_class]);
        gm_json_signed(json, "count", run->leaked_count[leak_class]);
        gm_json_close_object(json);
    }
    gm_json_close_object(json);
    gm_json_open_array(json, "leaks");
    for (size_t i = 0; end && i < end->sample_count; i++) {
        const struct gm_model_sample *sample = &end->samples[i];
        const struct gm_model_place *place = &view->model->places[sample->place];
        gm_json_open_object(json, NULL);
        GM_JSON_MEMBERS(json, sample, bytes, count);
        gm_json_string(json, "class", gm_leak_class_name(place->leak_class));
        gm_json_kind(json, place->kind, place->device);
        gm_json_at(json, gm_model_place_frame(view->model, place));
        gm_json_where(view, place->stack, place->api);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}
