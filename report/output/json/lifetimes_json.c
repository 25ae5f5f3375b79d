/* See sections.h. */
#include "output/json/sections.h"

void gm_lifetimes_json(struct gm_json_view *view)
{
    struct gm_json *json = view->json;
    gm_json_open_array(json, "lifetimes");
    for (size_t i = 0; i < view->run->lifetime_count && i < view->top; i++) {
        const struct gm_model_lifetime *lifetime = &view->run->lifetimes[i];
        const struct gm_model_place *place = &view->model->places[lifetime->place];
        gm_json_open_object(json, NULL);
        GM_JSON_MEMBERS(json, lifetime, allocs, allocated, short_lived);
        gm_json_signed(json, "short_lived_bytes", lifetime->short_bytes);
        gm_json_bool(json, "temporary", lifetime->temporary);
        gm_json_signed(json, "live", lifetime->live_count);
        gm_json_signed(json, "live_bytes", lifetime->live);
        gm_json_signed(json, "peak", lifetime->peak);
        gm_json_kind(json, place->kind, place->device);
        gm_json_where(view, place->stack, place->api);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}
