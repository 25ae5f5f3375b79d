/* See sections.h. */
#include "findings/findings.h"
#include "render/json/sections.h"
#include "render/json_where.h"

static const struct gm_frame *frame_of(struct gm_stacks *stacks, const struct gm_finding *finding)
{
    if (!finding->stack)
        return NULL;
    return gm_stack_telling_frame(gm_stacks_get(stacks, finding->stack, finding->api));
}

static void write_finding(struct gm_json *json, const struct gm_analysis *analysis,
                          struct gm_stacks *stacks, const struct gm_finding *finding)
{
    const struct gm_frame *frame = frame_of(stacks, finding);
    gm_json_open_object(json, NULL);
    gm_json_string(json, "code", gm_finding_name(finding->code));
    gm_json_string(json, "severity", gm_severity_name(finding->severity));
    if (finding->device >= 0)
        gm_json_signed(json, "device", finding->device);
    else
        gm_json_null(json, "device");
    gm_json_number(json, "bytes", finding->bytes);
    gm_json_string(json, "cause", finding->cause);
    gm_json_string(json, "remedy", finding->remedy);
    gm_json_string(json, "function", frame ? frame->function : NULL);
    gm_json_string(json, "file", frame ? frame->file : NULL);
    gm_json_number(json, "line", frame ? frame->line : 0);
    if (finding->stack)
        gm_json_where(json, stacks, analysis, finding->stack, finding->api);
    gm_json_close_object(json);
}

void gm_findings_json(struct gm_json *json, const struct gm_analysis *analysis,
                      struct gm_stacks *stacks)
{
    struct gm_findings findings = {0};
    gm_findings_collect(analysis, &findings);
    gm_json_open_array(json, "findings");
    for (size_t i = 0; i < findings.count; i++)
        write_finding(json, analysis, stacks, &findings.entries[i]);
    gm_json_close_array(json);
    gm_findings_free(&findings);
}
