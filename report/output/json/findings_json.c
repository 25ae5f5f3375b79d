/* See sections.h. */
#include "output/json/sections.h"

static void write_finding(struct gm_json_view *view, const struct gm_model_finding *finding)
{
    struct gm_json *json = view->json;
    gm_json_open_object(json, NULL);
    gm_json_string(json, "id", ID(gm_model_finding_id(view->model, view->run, finding)));
    gm_json_string(json, "code", gm_finding_name(finding->code));
    gm_json_string(json, "severity", gm_severity_name(finding->severity));
    GM_JSON_IF(json, "device", finding->device >= 0, finding->device);
    GM_JSON_MEMBERS(json, finding, bytes, cause, remedy, evidence);
    gm_json_at(json, gm_model_finding_frame(view->model, finding));
    if (finding->stack != GM_NONE)
        gm_json_where(view, finding->stack, finding->api);
    gm_json_close_object(json);
}

void gm_findings_json(struct gm_json_view *view)
{
    gm_json_open_array(view->json, "findings");
    for (size_t i = 0; i < view->run->finding_count; i++)
        write_finding(view, &view->run->findings[i]);
    gm_json_close_array(view->json);
}
