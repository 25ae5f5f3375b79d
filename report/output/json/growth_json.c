/* See sections.h. */
#include "output/json/sections.h"

static void write_growing(struct gm_json_view *view, const struct gm_model_growing *growing)
{
    static const char *const kinds[] = {
        [GM_MOMENT_NONE] = "any mark",
        [GM_MOMENT_MARK] = "mark",
        [GM_MOMENT_RANGE] = "range",
    };
    const struct gm_model_place *place = &view->model->places[growing->place];
    struct gm_json *json = view->json;
    gm_json_open_object(json, NULL);
    gm_json_number(json, "growth", gm_model_growth(growing));
    gm_json_string(json, "series", kinds[growing->series]);
    GM_JSON_MEMBERS(json, growing, name, marks, over);
    gm_json_open_array(json, "bytes");
    for (size_t i = 0; i <= GM_GROWTH_PARTS; i++)
        gm_json_number(json, NULL, growing->bytes[i]);
    gm_json_close_array(json);
    gm_json_bool(json, "is_block", place->is_block);
    gm_json_kind(json, place->kind, place->device);
    gm_json_where(view, place->stack, place->api);
    gm_json_close_object(json);
}

void gm_growth_json(struct gm_json_view *view)
{
    gm_json_open_array(view->json, "growing");
    for (size_t i = 0; i < view->run->growing_count && i < view->top; i++)
        write_growing(view, &view->run->growing[i]);
    gm_json_close_array(view->json);
}
