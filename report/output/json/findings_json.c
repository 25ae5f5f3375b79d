/* See sections.h. */
#include "output/json/sections.h"

static void write_finding(struct gm_json_view *view, const struct gm_model_finding *finding)
{
    struct gm_json *json = view->json;
    const struct gm_frame *frame = gm_model_finding_frame(view->model, finding);
    gm_json_open_object(json, NULL);
    gm_json_string(json, "id", ID(gm_model_finding_id(view->model, view->run, finding)));
    gm_json_string(json, "code", gm_finding_name(finding->code));
    gm_json_string(json, "severity", gm_severity_name(finding->severity));
    if (finding->device >= 0)
        gm_json_signed(json, "device", finding->device);
    else
        gm_json_null(json, "device");
    gm_json_number(json, "bytes", finding->bytes);
    gm_json_string(json, "cause", finding->cause);
    gm_json_string(json, "remedy", finding->remedy);
    gm_json_string(json, "evidence", finding->evidence);
    gm_json_string(json, "function", frame ? frame->function : NULL);
    gm_json_string(json, "file", frame ? frame->file : NULL);
    gm_json_number(json, "line", frame ? frame->line : 0);
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
