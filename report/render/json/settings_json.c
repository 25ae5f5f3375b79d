/* See sections.h. */
#include "render/json/sections.h"
#include "verdict/settings.h"

void gm_settings_json(struct gm_json *json, const struct gm_trace *trace)
{
    struct gm_text rest = trace->environment, one;
    gm_json_open_array(json, "settings_not_understood");
    while (gm_settings_next(&rest, &one))
        gm_json_text(json, NULL, one);
    gm_json_close_array(json);
}
